"""Name spaces, mounts and other users are asked of the system.

class: surroundings
"""

import ctypes
import os

libc = ctypes.CDLL(None)
done = []
for flags in (0x10000000, 0x00020000, 0x40000000):
    done.append(libc.unshare(flags) == 0)
done.append(libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0)
done.append(libc.ptrace(16, os.getppid(), None, None) == 0 and os.getppid() > 1)
try:
    os.setuid(0)
    done.append(True)
except OSError:
    pass
print("leaked", done) if any(done) else None
