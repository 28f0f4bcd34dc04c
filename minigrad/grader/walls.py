"""Builds walls of the kernel around this process: Landlock for files, seccomp for system calls.

Building them needs no privileges and takes a few milliseconds. No code inside can take them down,
even if it gets around `guard.py`, which is no wall but has the good messages. Linux only, on x86-64
and arm64; elsewhere reports say what is not closed. Runs in the learner's process, before a line of
the file.

Sources: the manual pages landlock(7) and seccomp(2); the numbers are those of
Linux 6.12.
"""

from __future__ import annotations

import contextlib
import os
import platform
import struct
import sys
from collections.abc import Callable, Iterable
from typing import Any

from minigrad.grader.rights import NO_NEW_PRIVS, check, keep_reading

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same on all machines
SECCOMP, FILTER, ALL_THREADS = (317, 277), 1, 1
EXECUTE, WRITE, READ, LIST = 1, 2, 4, 8  # Landlock's rights, as bits; later kernels have more
REFER, TRUNCATE, IOCTL = 1 << 13, 1 << 14, 1 << 15
RIGHTS_OF_VERSION = {1: 13, 2: 14, 3: 15, 4: 15}  # the number of bits; 16 in later versions
REFUSED, ALLOWED, NOT_THERE = 0x00050000 | 1, 0x7FFF0000, 0x00050000 | 38  # EPERM, -, ENOSYS
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column, AUDIT_ARCH_*

CALLS = {  # always refused: (x86-64, arm64), None where a machine lacks the call
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "socket": (41, 198), "socketpair": (53, 199), "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438), "unshare": (272, 97),
    "setns": (308, 268), "mount": (165, 40), "chroot": (161, 51), "bpf": (321, 280),
    "io_uring_setup": (425, 425), "keyctl": (250, 219), "add_key": (248, 217),
    "userfaultfd": (323, 282), "perf_event_open": (298, 241), "sched_setaffinity": (203, 122),
    "setpriority": (141, 140), "ioprio_set": (251, 30), "memfd_create": (319, 279),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "migrate_pages": (256, 238),
    "move_pages": (279, 239), "kcmp": (312, 272), "request_key": (249, 218),
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "msgget": (68, 186),
    "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187), "semget": (64, 190),
    "semop": (65, 193), "semctl": (66, 191), "semtimedop": (220, 192), "mq_open": (240, 180),
    "mq_unlink": (241, 181), "open_by_handle_at": (304, 265), "personality": (135, 92),
    # These use up what the machine, or each of its users, has a fixed number of.
    "io_setup": (206, 0), "io_destroy": (207, 1), "io_submit": (209, 2),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "inotify_init": (253, None),
    "inotify_init1": (294, 26), "fanotify_init": (300, 262), "memfd_secret": (447, 447),
    # Landlock lets a file's owner call these, wherever the file lies.
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    # Even a file that cannot be opened could be watched, and its labels read.
    "inotify_add_watch": (254, 27), "fanotify_mark": (301, 263), "getxattr": (191, 8),
    "lgetxattr": (192, 9), "fgetxattr": (193, 10), "listxattr": (194, 11), "llistxattr": (195, 12),
    "flistxattr": (196, 13), "getxattrat": (464, 464), "listxattrat": (465, 465),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "setxattrat": (463, 463), "removexattrat": (466, 466), "file_setattr": (469, 469),
}  # fmt: skip
TO_ITSELF = {  # refused if the first argument is another process; 0 is this one, or its group
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "prlimit": (302, 261), "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119), "sched_setattr": (314, 274),
}  # fmt: skip
REQUESTS = {  # refused for these second arguments: signals on changes, input to a terminal
    # fcntl: F_SETOWN, F_SETSIG, F_SETOWN_EX; F_SETPIPE_SZ, as all pipes of a user share a budget
    (72, 25): (8, 10, 15, 1031),
    (16, 29): (0x8901, 0x8902, 0x5452, 0x5412, 0x540E),  # ioctl: FIOSETOWN to TIOCSCTTY
}
CLONE, CLONE3, CLONE_THREAD = (56, 220), (435, 435), 0x00010000
SYSTEM = (  # the system's files that libraries read; none is a user's
    "/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib",
    "/usr/share/fonts", "/usr/share/zoneinfo", "/etc/fonts", "/etc/ld.so.cache", "/etc/localtime",
    "/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu", "/dev/urandom", "/dev/zero",
)  # fmt: skip


def can_close_files() -> bool:
    """Return whether this machine is in MACHINES and its kernel has Landlock switched on."""
    if sys.platform != "linux" or platform.machine() not in MACHINES:
        return False
    try:
        import ctypes

        return ctypes.CDLL(None).syscall(CREATE_RULESET, None, 0, 1) > 0
    except (OSError, ImportError):
        return False


def build(readable: Iterable[str], listed: Iterable[str], writable: Iterable[str]) -> list[str]:
    """Close other files, other processes and the network to this process, for good.

    Args:
        readable: files and folders that stay readable.
        listed: folders that can be listed, without opening the files in them.
        writable: folders in which files can be made, changed and removed.

    Returns:
        The names of what stays open because this system cannot close it.
    """
    rules = [(path, LIST) for path in listed]
    rules += [(path, EXECUTE | READ | LIST) for path in readable]
    # Without REFER no file moves between folders: a count (disk_usage.py) could miss a moving one.
    rules += [(path, ~(EXECUTE | REFER)) for path in writable]
    walls: list[tuple[str, Callable[[Any], None]]] = [
        ("other files", lambda libc: _close_files(libc, rules)),
        ("processes, signals and the network", _close_calls),
    ]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        walls.insert(0, ("the rights of root", keep_reading))
    missing = []
    for name, wall in walls:
        try:
            import ctypes

            libc = ctypes.CDLL(None, use_errno=True)
            check(libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0))
            wall(libc)
        except (OSError, ImportError, AttributeError, KeyError, TypeError):  # no CDLL(None)
            missing.append(name)
    return missing


def libraries(package: str) -> tuple[list[str], list[str]]:
    """Return the paths that Python and its packages are read from, and folders only to be listed.

    minigrad's own folder, `package`, is in neither, wherever it lies: `gate.py` opens its parts.
    """
    folders = [*SYSTEM, os.path.join(sys.base_prefix, "lib"), os.devnull]
    listed = []
    for folder in filter(os.path.isdir, sys.path):
        names = os.listdir(folder)
        base = os.path.basename(folder)
        if "os.py" in names or base in ("lib-dynload", "site-packages", "dist-packages"):
            folders.append(folder)
        elif "numpy" in names:
            listed.append(folder)
            folders += [os.path.join(folder, name) for name in names if name.startswith(NUMERIC)]
    readable = []
    for folder in folders:
        inside, on_the_way = around(folder, [package])
        readable += inside
        listed += on_the_way
    return readable, listed


def around(folder: str, closed: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return all paths in a folder but the closed ones, and the folders on the way to those."""
    closed = [os.path.realpath(path) for path in closed]
    readable, on_the_way, waiting = [], [], [os.path.realpath(folder)]
    while waiting:
        path = waiting.pop()
        if any(one.startswith(path + os.sep) for one in closed):
            on_the_way.append(path)
            for entry in os.scandir(path):
                waiting.append(os.path.realpath(entry) if entry.is_symlink() else entry.path)
        elif path not in closed:
            readable.append(path)
    return readable, on_the_way


NUMERIC = ("numpy", "numba", "llvmlite")


def _close_files(libc: Any, rules: list[tuple[str, int]]) -> None:
    if len(os.listdir("/proc/self/task")) > 1:
        raise OSError("another thread would stay outside")
    version = check(libc.syscall(CREATE_RULESET, None, 0, 1))
    rights = (1 << RIGHTS_OF_VERSION.get(version, 16)) - 1
    # version 4 adds TCP's bind and connect, version 6 abstract sockets and signals to others
    ruleset = struct.pack("<QQQ", rights, 3 * (version >= 4), 3 * (version >= 6))
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    made = check(libc.syscall(CREATE_RULESET, ruleset, size, 0))
    of_a_file = EXECUTE | WRITE | READ | TRUNCATE | IOCTL
    for path, wanted in rules:
        with contextlib.suppress(FileNotFoundError, PermissionError, NotADirectoryError):
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            try:
                allowed = rights & wanted & (-1 if os.path.isdir(path) else of_a_file)
                if allowed:
                    rule = struct.pack("<Qi", allowed, place)
                    check(libc.syscall(ADD_RULE, made, 1, rule, 0))
            finally:
                os.close(place)
    check(libc.syscall(RESTRICT_SELF, made, 0))
    os.close(made)


def _close_calls(libc: Any) -> None:
    if platform.machine() not in MACHINES:
        raise OSError("no table of this machine's system calls")
    column, architecture = MACHINES[platform.machine()]
    program: list[bytes] = []
    load, equal, has_bit, answer = 0x20, 0x15, 0x45, 0x06

    def add(code: int, value: int, yes: int = 0, no: int = 0) -> None:
        """Append an instruction; a jump skips `yes` or `no` further ones."""
        program.append(struct.pack("<HBBI", code, yes, no, value & 0xFFFFFFFF))

    def refuse_others(number: int) -> None:
        """Refuse a call whose first argument is neither 0 nor this process."""
        add(equal, number, 0, 5)
        add(load, 16)  # the low half of the first argument
        add(equal, os.getpid(), 2, 0)
        add(equal, 0, 1, 0)
        add(answer, REFUSED)
        add(answer, ALLOWED)

    add(load, 4)  # the architecture: others number their calls differently
    add(equal, architecture, 1, 0)
    add(answer, REFUSED)
    add(load, 0)  # the number of the call
    if column == 0:
        add(has_bit, 0x40000000, 0, 1)  # x32: the same calls under other numbers
        add(answer, REFUSED)
    for numbers in CALLS.values():
        if numbers[column] is not None:
            add(equal, numbers[column], 0, 1)
            add(answer, REFUSED)
    add(equal, CLONE3[column], 0, 1)  # its flags lie in memory; libc falls back to clone
    add(answer, NOT_THERE)
    add(equal, CLONE[column], 0, 4)  # allow threads, refuse processes
    add(load, 16)
    add(has_bit, CLONE_THREAD, 1, 0)
    add(answer, REFUSED)
    add(answer, ALLOWED)
    for numbers in TO_ITSELF.values():
        refuse_others(numbers[column])
    for numbers, requests in REQUESTS.items():
        add(equal, numbers[column], 0, 2 * len(requests) + 2)
        add(load, 24)  # the low half of the second argument
        for request in requests:
            add(equal, request, 0, 1)
            add(answer, REFUSED)
        add(answer, ALLOWED)
    add(answer, ALLOWED)

    import ctypes

    steps = ctypes.create_string_buffer(b"".join(program))
    head = struct.pack("<HxxxxxxQ", len(program), ctypes.addressof(steps))
    check(libc.syscall(SECCOMP[column], FILTER, ALL_THREADS, head))
