"""Calls of the system that a sandbox refuses: those by which a kernel would get round its limits or out of its room.

A file of `memfd_create`, and what System V and POSIX keep for messages, semaphores and shared memory, stay when no
process has them, so that a limit on what processes have does not reach them; no library of the course needs them, as
shared memory goes through /dev/shm. Nobody has what `inotify` and `fanotify` have still to tell, Landlock's rules, the
tables of `bpf`, or the pages that `vmsplice` lends to a pipe either. A socket's buffers keep the size that they have
when it is new, so that their number says how much they hold. Keys stay when a sandbox has ended, in the keyring of the
session in which the grader was started, where the next one finds them. By `ptrace` and its like a kernel could change
the sandbox's first process, with which all ends. With a symbolic link in the place of one of its sockets it could lead
the grader, which connects to that, to a socket outside of the sandbox. Of sockets only those of a sandbox's own network
and files can be made: the ports of others, as `vsock`, are the whole machine's; and `io_uring` would make them unseen.
The refusal is a filter of seccomp's, in the classic language of the Berkeley Packet Filter (`man 2 seccomp`).
"""

import errno
import platform
import struct

CALLS = (  # x86_64, aarch64: their numbers there
    (319, 279),  # memfd_create
    (447, 447),  # memfd_secret
    (29, 194),  # shmget
    (64, 190),  # semget
    (68, 186),  # msgget
    (240, 180),  # mq_open
    (248, 217),  # add_key
    (249, 218),  # request_key
    (250, 219),  # keyctl
    (101, 117),  # ptrace
    (310, 270),  # process_vm_readv
    (311, 271),  # process_vm_writev
    (312, 272),  # kcmp
    (425, 425),  # io_uring_setup
    (253, 26),  # inotify_init, which aarch64 has not
    (294, 26),  # inotify_init1
    (300, 262),  # fanotify_init
    (444, 444),  # landlock_create_ruleset
    (321, 280),  # bpf
    (278, 75),  # vmsplice
    (88, 36),  # symlink, which aarch64 has not
    (266, 36),  # symlinkat
)
# numbers for the audit, of `socket` and of `setsockopt`
MACHINES = {"x86_64": (0xC000003E, 41, 54), "aarch64": (0xC00000B7, 198, 208)}
OF_SOCKETS, SIZES = 1, (7, 8)  # SOL_SOCKET; SO_SNDBUF, SO_RCVBUF
FAMILIES = (1, 2, 10, 16)  # of sockets: AF_UNIX, AF_INET, AF_INET6, AF_NETLINK
LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, (16, 24, 32)  # places in what the filter is given
OTHER_TABLE = 0x40000000  # x32's calls, on x86_64, are these and higher
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.ENOSYS


def filter_of(machine: str = platform.machine()) -> bytes:
    """The filter, as bubblewrap takes it; empty for a machine whose numbers are not known here.

    Calls of another architecture than the machine's own are refused, all of them: there the numbers mean others.
    """
    if machine not in MACHINES:
        return b""
    (architecture, socket, setsockopt), place = MACHINES[machine], list(MACHINES).index(machine)
    refused = [(AT_LEAST, OTHER_TABLE), *((EQUAL, numbers[place]) for numbers in CALLS)]
    of_sizes, of_families = 4 + len(SIZES), 2 + len(FAMILIES)  # steps
    refuse = 3 + len(refused) + of_sizes + of_families  # where this step stands
    allow = refuse + 1
    steps = [(LOAD, 0, 0, ARCHITECTURE), _test(EQUAL, architecture, 1, 2, refuse), (LOAD, 0, 0, NUMBER)]
    for code, value in refused:
        steps.append(_test(code, value, len(steps), refuse, len(steps) + 1))
    steps.append(_test(EQUAL, setsockopt, len(steps), len(steps) + 1, len(steps) + of_sizes))
    steps.append((LOAD, 0, 0, ARGUMENTS[1]))
    steps += [_test(EQUAL, OF_SOCKETS, len(steps), len(steps) + 1, allow), (LOAD, 0, 0, ARGUMENTS[2])]
    for size in SIZES:
        steps.append(_test(EQUAL, size, len(steps), refuse, allow if size == SIZES[-1] else len(steps) + 1))
    steps += [_test(EQUAL, socket, len(steps), len(steps) + 1, allow), (LOAD, 0, 0, ARGUMENTS[0])]
    for family in FAMILIES:
        steps.append(_test(EQUAL, family, len(steps), allow, len(steps) + 1))
    steps += [(RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _test(code: int, value: int, place: int, if_so: int, if_not: int) -> tuple[int, int, int, int]:
    """A step at a place that goes on at one of two others."""
    return code, if_so - place - 1, if_not - place - 1, value
