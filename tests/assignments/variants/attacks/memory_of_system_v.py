"""Memory is taken in System V segments, from which the process then parts.

class: resources
"""

import ctypes

libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
taken = 0
while taken < 3 * 2**29:
    number = libc.shmget(0, ctypes.c_size_t(2**25), 0o1600)
    if number < 0:
        break
    at = ctypes.c_void_p(libc.shmat(number, None, 0))
    ctypes.memset(at, 1, 2**25)
    libc.shmdt(at)
    taken += 2**25
print("leaked", taken) if taken else None
