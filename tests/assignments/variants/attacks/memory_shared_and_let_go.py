"""Memory is taken in shared mappings whose pages the process says it needs no more, so that none count as its own.

class: resources
"""

import mmap
import time

kept = []
for _ in range(48):
    kept.append(mmap.mmap(-1, 2**25))
    kept[-1].write(b"x" * 2**25)
    kept[-1].madvise(mmap.MADV_DONTNEED)
time.sleep(2)
print("leaked", len(kept) * 2**25)
