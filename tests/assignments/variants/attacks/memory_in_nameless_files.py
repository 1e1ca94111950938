"""Memory is taken in files without a name, which no process has mapped and no folder shows.

class: resources
"""

import os

kept, taken = [], 0
try:
    while taken < 3 * 2**29:
        kept.append(os.memfd_create("kept"))
        taken += os.write(kept[-1], bytes(2**25))
    print("leaked", taken)
except OSError:
    pass
