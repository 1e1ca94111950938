"""Calls of the system that a sandbox refuses: they hold memory that no process shows, and no folder.

A file of `memfd_create` and a segment of System V keep their memory when no process has them mapped, so that a limit on
what processes have does not reach it. No library of the course needs them: shared memory goes through /dev/shm. Keys
stay when a sandbox has ended, in the keyring of the session in which the grader was started, where the next one finds
them. The refusal is a filter of seccomp's, in the classic language of the Berkeley Packet Filter (`man 2 seccomp`).
"""

import errno
import platform
import struct

# machine -> its number for the audit (linux/audit.h), and memfd_create, memfd_secret, shmget, add_key, request_key and
# keyctl there
REFUSED = {
    "x86_64": (0xC000003E, (319, 447, 29, 248, 249, 250)),
    "aarch64": (0xC00000B7, (279, 447, 194, 217, 218, 219)),
}
LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
NUMBER, ARCHITECTURE = 0, 4  # places in what the filter is given
OTHER_TABLE = 0x40000000  # x32's calls, on x86_64, are these and higher
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.ENOSYS


def filter_of(machine: str = platform.machine()) -> bytes:
    """The filter, as bubblewrap takes it; empty for a machine whose numbers are not known here.

    Calls of another architecture than the machine's own are refused, all of them: there the numbers mean others.
    """
    if machine not in REFUSED:
        return b""
    architecture, calls = REFUSED[machine]
    tests = [(AT_LEAST, OTHER_TABLE), *((EQUAL, number) for number in calls)]
    steps = [(LOAD, 0, 0, ARCHITECTURE), (EQUAL, 0, len(tests) + 2, architecture), (LOAD, 0, 0, NUMBER)]
    steps += [(code, len(tests) - place, 0, value) for place, (code, value) in enumerate(tests)]
    steps += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)
