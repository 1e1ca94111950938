"""Many processes take memory together.

class: resources
"""

import os
import time

for _ in range(60):
    if os.fork() == 0:
        kept = np.ones(20_000_000)
        time.sleep(1000)
