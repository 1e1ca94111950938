"""Calls of the system that a sandbox refuses: those by which a kernel would get round its limits or out of its room.

A file of `memfd_create`, and what System V and POSIX keep for messages, semaphores and shared memory, stay when no
process has them, so that a limit on what processes have does not reach them; no library of the course needs them, as
shared memory goes through /dev/shm. Memory without a file that processes share (`mmap`) stays as long as one of them
maps a single page of it, and counts as that page alone. Nobody has what `inotify` and `fanotify` have still to tell,
Landlock's rules, the tables of `bpf`, the filters of sockets and of calls, or the pages that `vmsplice` lends to a pipe
either. A socket's buffers keep the size that they have when it is new, so that their number says how much they hold.
Keys stay when a sandbox has ended, in the keyring of the session in which the grader was started, where the next one
finds them. By `ptrace` and its like a kernel could look into the sandbox's first process, with which all ends, or
change it. With a symbolic link in the place of one of its sockets it could lead the grader, which connects to that, to
a socket outside of the sandbox. With a lease on a file (`fcntl`), it lets whoever opens that wait for 45 seconds:
Python's own files are those of the grader and of all other kernels. Of sockets only those of a sandbox's own network
and files can be made: the ports of others, as `vsock`, are the whole machine's, and so is the number of `io_setup`'s
requests; and `io_uring` would make sockets unseen. The refusal is a filter of seccomp's, in the classic language of the
Berkeley Packet Filter (`man 2 seccomp`).
"""

import errno
import platform
import struct
from typing import NamedTuple

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
    (438, 438),  # pidfd_getfd
    (425, 425),  # io_uring_setup
    (206, 0),  # io_setup
    (253, 26),  # inotify_init, which aarch64 has not
    (294, 26),  # inotify_init1
    (300, 262),  # fanotify_init
    (444, 444),  # landlock_create_ruleset
    (321, 280),  # bpf
    (317, 277),  # seccomp
    (278, 75),  # vmsplice
    (88, 36),  # symlink, which aarch64 has not
    (266, 36),  # symlinkat
)
ALL = 0xFFFFFFFF
FAMILIES = (1, 2, 10, 16)  # of sockets: AF_UNIX, AF_INET, AF_INET6, AF_NETLINK


class Rule(NamedTuple):
    """A call that is refused, or else let through, where each of some of its arguments has one of some values."""

    numbers: tuple[int, int]  # as in CALLS
    refused: bool  # where they have these values; else: where they have not
    arguments: tuple[tuple[int, int, tuple[int, ...]], ...]  # place from 0 on, bits of it that count, values


RULES = (
    Rule((9, 222), True, ((3, 0x21, (0x21,)),)),  # mmap: MAP_SHARED with MAP_ANONYMOUS
    Rule((72, 25), True, ((1, ALL, (1024, 1026)),)),  # fcntl: F_SETLEASE, F_NOTIFY
    Rule((157, 167), True, ((0, ALL, (22,)),)),  # prctl: PR_SET_SECCOMP
    # setsockopt: of SOL_SOCKET, SO_SNDBUF and SO_RCVBUF, SO_ATTACH_FILTER and its like
    Rule((54, 208), True, ((1, ALL, (1,)), (2, ALL, (7, 8, 26, 50, 51, 52)))),
    Rule((41, 198), False, ((0, ALL, FAMILIES),)),  # socket
    Rule((53, 199), False, ((0, ALL, FAMILIES),)),  # socketpair
)
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # their numbers for the audit
LOAD, AND, EQUAL, AT_LEAST, RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
NUMBER, ARCHITECTURE, ARGUMENTS, EACH = 0, 4, 16, 8  # places in what the filter is given, and bytes of an argument
OTHER_TABLE = 0x40000000  # x32's calls, on x86_64, are these and higher
ALLOW, REFUSE = (RETURN, 0, 0, 0x7FFF0000), (RETURN, 0, 0, 0x00050000 | errno.ENOSYS)


def filter_of(machine: str = platform.machine()) -> bytes:
    """The filter, as bubblewrap takes it; empty for a machine whose numbers are not known here.

    Calls of another architecture than the machine's own are refused, all of them: there the numbers mean others.
    """
    if machine not in MACHINES:
        return b""
    place = list(MACHINES).index(machine)
    # A step: what is done, steps to pass over if a test succeeds and if it fails, and its value
    steps = [(LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, MACHINES[machine]), REFUSE, (LOAD, 0, 0, NUMBER)]
    steps += [(AT_LEAST, 0, 1, OTHER_TABLE), REFUSE]
    for numbers in CALLS:
        steps += [(EQUAL, 0, 1, numbers[place]), REFUSE]
    for rule in RULES:
        asked = _asked(rule)
        steps += [(EQUAL, 0, len(asked), rule.numbers[place]), *asked]
    return b"".join(struct.pack("=HBBI", *step) for step in [*steps, ALLOW])


def _asked(rule: Rule) -> list[tuple[int, int, int, int]]:
    """The steps that decide of a rule's call, each way to the end."""
    has, has_not = (REFUSE, ALLOW) if rule.refused else (ALLOW, REFUSE)
    steps = []
    for place, bits, values in rule.arguments:
        steps += [(LOAD, 0, 0, ARGUMENTS + EACH * place), (AND, 0, 0, bits)]
        steps += [(EQUAL, len(values) - number, 0, value) for number, value in enumerate(values)]
        steps.append(has_not)
    return [*steps, has]
