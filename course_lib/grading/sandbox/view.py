"""What a kernel in the sandbox sees of the machine: an empty system, and in it what is named here."""

import csv
import functools
import importlib.metadata
import os
import shutil
import stat
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

import course_lib

SOCKETS = "/run/kernel"  # where the kernel has its sockets
WORK = "/tmp/work"  # where it starts, and where it may write
SYSTEM = (
    "/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/share/zoneinfo", "/usr/share/fonts",
    "/bin", "/sbin", "/lib", "/lib32", "/lib64",
    "/etc/alternatives", "/etc/fonts", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime",
)  # fmt: skip
OF_PYTHON = ("bin", "lib", "lib64", "pyvenv.cfg")  # of the folders where Python and its environment are installed
OF_COURSE = ("__init__.py", "_extras.py", "_triton_first.py", "grading")  # of this library: no model, no solution
KERNEL = ("ipykernel",)  # the distribution that a kernel needs
SMALL = 2**20  # bytes of folders that hold sockets or nothing
HOW = """Install bubblewrap: `apt install bubblewrap`, `dnf install bubblewrap` or `pacman -S bubblewrap`. macOS and \
Windows have nothing like it: grade in a virtual machine or a container that holds nothing but the course."""


class SandboxMissing(ValueError):
    """This machine cannot run the sandbox; the message says why, and what to do."""


def bubblewrap() -> str:
    """The path of a bubblewrap that works here; it is tried once for each process.

    Raises
    ------
    SandboxMissing : there is none, or the system does not let it work.
    """
    why = _tried()
    if why:
        raise SandboxMissing(why)
    return shutil.which("bwrap")


@functools.cache
def _tried() -> str:
    if sys.platform != "linux":
        return f"There is no sandbox for {sys.platform}. {HOW}"
    program = shutil.which("bwrap")
    if not program:
        return f"There is no sandbox on this machine. {HOW}"
    command = [program, *ISOLATED, "--ro-bind", "/", "/", "--proc", "/proc", "true"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not run here: {error}"
    if done.returncode == 0:
        return ""
    if "Unknown option" in done.stderr:
        return f"bubblewrap is too old here ({done.stderr.strip()[:100]}): 0.8 or later is needed. {HOW}"
    return (
        f"bubblewrap does not work here: {done.stderr.strip()[:300]}. It needs user name spaces, which some "
        "systems and most containers close. Ask whoever runs the machine to open them: `sysctl "
        "user.max_user_namespaces kernel.unprivileged_userns_clone kernel.apparmor_restrict_unprivileged_userns` shows "
        "what is set."
    )


# Name spaces of its own for everything, none to be made inside; all ends with the process that starts it.
ISOLATED = (
    "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
    "--uid", "1000", "--gid", "1000",
)  # fmt: skip


def arguments(folder: Path, scratch: int, packages: Iterable[str] | None, hidden: Iterable[str] = ()) -> list[str]:
    """bubblewrap's arguments for the file system.

    Parameters
    ----------
    folder : where the notebook lies; the files beside it are there to be read, notebooks apart
    scratch : bytes that the kernel may write
    packages : distributions that it may import, beside the kernel's own; None for all that are installed
    hidden : folders that stay empty even where they lie in one that is seen
    """
    seen = [*SYSTEM, *(str(Path(root, part)) for root in {sys.prefix, sys.base_prefix} for part in OF_PYTHON)]
    given = ["--size", str(scratch), "--tmpfs", "/tmp"]  # first: Python may be installed below
    for path in seen:
        # bound as a folder, a virtual environment's lib64, a link to lib, would show what _only hides in lib
        if os.path.islink(path) and (path in SYSTEM or not os.path.isabs(os.readlink(path))):
            given += ["--symlink", os.readlink(path), path]
        elif os.path.exists(path):
            given += ["--ro-bind", path, path]
    folders = () if packages is None else _folders()
    if packages is not None:
        given += list(_only(tuple(packages), folders))
    library = Path(course_lib.__file__).parent
    for part in OF_COURSE:
        if (library / part).exists():
            given += ["--ro-bind", str(library / part), str(library / part)]
    for path in folders:  # not before: this library may be installed in one of them
        given += ["--remount-ro", path]
    for path in map(os.path.abspath, hidden):
        if os.path.isdir(path) and any(Path(path).is_relative_to(one) for one in seen):
            given += ["--size", str(SMALL), "--tmpfs", path, "--remount-ro", path]
    # where the grader is root, /proc/sys would change the machine's settings; and /proc/1/mem what the kernel ends with
    given += ["--proc", "/proc"]
    for path in of_root():
        given += ["--ro-bind", os.devnull, path]
    given += ["--remount-ro", "/proc"]
    # what processes share by /dev/zero is memory without a file, which `calls` refuses where it is asked for by `mmap`
    given += ["--dev", "/dev", "--ro-bind", os.devnull, "/dev/zero"]
    given += ["--size", str(scratch), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    given += ["--dir", WORK, "--size", str(SMALL), "--tmpfs", SOCKETS]
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if path.suffix != ".ipynb" and not path.is_symlink():
            given += ["--ro-bind-try", str(path), f"{WORK}/{path.name}"]
    return [*given, "--remount-ro", "/", "--chdir", WORK]


def import_path() -> str:
    """Where the kernel finds this library."""
    return str(Path(course_lib.__file__).parents[1])


def modules_of(packages: Iterable[str]) -> set[str]:
    """The modules, beside Python's own, that a kernel may import that is shown these; of what is installed here."""
    found = _with_needs([name for name in (*KERNEL, *packages) if _is_installed(name)])
    shown = {os.path.basename(path).partition(".")[0] for name in found for path in _files_of(name)}
    return shown | {name.replace("-", "_") for name in found}  # as a distribution of the system's lists no files


def of_root() -> list[str]:
    """The files in /proc that root alone may read: of the machine's memory, say. Root's user is in the sandbox, too."""
    return [
        entry.path for entry in os.scandir("/proc")
        if entry.is_file(follow_symlinks=False) and not entry.stat().st_mode & stat.S_IROTH
    ]  # fmt: skip


def _folders() -> tuple[str, ...]:
    """The folders of installed packages."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    folders = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    folders |= {f"{sys.base_prefix}/lib/{version}/site-packages", "/usr/lib/python3/dist-packages"}
    return tuple(sorted(folder for folder in folders if os.path.isdir(folder)))


@functools.lru_cache
def _only(packages: tuple[str, ...], folders: tuple[str, ...]) -> tuple[str, ...]:
    """Every folder of installed packages empty, and in it those that are wanted, with what they need."""
    names, given = _with_needs([*KERNEL, *packages]), []
    for folder in folders:
        given += ["--size", str(SMALL), "--tmpfs", folder]

    def seen(name: str) -> set[str]:
        return {path for path in _files_of(name) if any(Path(path).is_relative_to(folder) for folder in folders)}

    for name in packages:
        if not seen(name):
            raise ValueError(
                f"The sandbox is to show the package {name!r}, which is installed outside of {', '.join(folders)}: "
                "install it there."
            )
    for path in sorted(set().union(*map(seen, names))):
        given += ["--ro-bind", path, path]
    return tuple(given)


def _with_needs(names: list[str]) -> set[str]:
    """The distributions of these names and all that they need, those apart that are not installed."""
    from packaging.requirements import Requirement  # Jupyter's own need, too

    found, left = set(), list(names)
    while left:
        name = left.pop().lower().replace("_", "-")
        if name in found:
            continue
        found.add(name)
        try:
            needs = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            if name in names:
                raise ValueError(f"The sandbox is to show the package {name!r}, which is not installed here.") from None
            continue
        for need in map(Requirement, needs):
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                left.append(need.name)
    return found


def _is_installed(name: str) -> bool:
    try:
        return bool(importlib.metadata.distribution(name))
    except importlib.metadata.PackageNotFoundError:
        return False


def _files_of(name: str) -> Iterator[str]:
    """The files and folders of a distribution that stand directly in the folder of all packages."""
    try:
        distribution = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return
    listed = csv.reader((distribution.read_text("RECORD") or "").splitlines())
    # as `files` does, which takes PyTorch's fourteen thousand paths apart; but for ./, which installers do not write
    firsts = {row[0].partition("/")[0] for row in listed if row} or {file.parts[0] for file in distribution.files or []}
    for first in firsts - {"", ".", ".."}:
        path = str(distribution.locate_file(first))
        if os.path.exists(path):
            yield path
