"""Jupyter kernels that choose the device: one for the CPU and one for each NVIDIA GPU.

    python -m course_lib.lecture.kernel                       what there is and what is registered
    python -m course_lib.lecture.kernel register              register them for this Python's own Jupyter
    python -m course_lib.lecture.kernel register --user       ... or for every Jupyter of this user
    python -m course_lib.lecture.kernel unregister            remove them again

A lecture never names a device. The kernel sets the environment before any framework is imported:
``CUDA_VISIBLE_DEVICES`` decides what TensorFlow and PyTorch can see, ``TF_FORCE_GPU_ALLOW_GROWTH``
keeps TensorFlow from taking the whole card so that both share it, and ``COURSE_DEVICE`` tells
``course_lib.torch`` where to put new tensors. Nothing here imports a framework.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

OUR_NAME = re.compile(r"course-(cpu|gpu-\d+)")
SMI_SECONDS = 20  # the first call after boot wakes the driver, which can take ten seconds


@dataclass(frozen=True)
class Gpu:
    """One GPU as ``nvidia-smi`` numbers it (by PCI bus, unlike CUDA's default order)."""

    index: int
    name: str
    memory_mib: int | None  # None where the driver does not say


@dataclass(frozen=True)
class Kernel:
    """A kernel to register: its name, the name JupyterLab shows, what it adds to the environment."""

    name: str
    display_name: str
    env: dict[str, str]


def find_gpus(environ=os.environ) -> tuple[list[Gpu], str]:
    """Return the GPUs that this process may use, and a sentence on how they were found or why there are none.

    Asks ``nvidia-smi``, so it takes no GPU memory. An existing ``CUDA_VISIBLE_DEVICES`` of indices
    (``"0,2"``) or UUIDs (``"GPU-8c..."``) narrows the list, as it does for CUDA itself.
    Never raises: a machine without a working driver has no GPUs.
    """
    command = ["nvidia-smi", "--query-gpu=index,uuid,name,memory.total", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=SMI_SECONDS)
    except FileNotFoundError:
        return [], "No NVIDIA driver is installed (there is no nvidia-smi on the PATH)."
    except subprocess.TimeoutExpired:
        return [], f"nvidia-smi did not answer within {SMI_SECONDS} seconds; the driver may be stuck."
    except OSError as error:
        return [], f"nvidia-smi could not be started: {error}."
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines() or ["it said nothing"]
        return [], f"nvidia-smi failed with exit status {done.returncode}: {said[0].strip()}"

    found, unread = [], 0
    for line in filter(None, map(str.strip, done.stdout.splitlines())):
        fields = [field.strip() for field in line.split(",")]
        if len(fields) < 4 or not fields[0].isdigit():
            unread += 1
            continue
        memory = int(fields[-1]) if fields[-1].isdigit() else None
        found.append((fields[1], Gpu(int(fields[0]), ", ".join(fields[2:-1]), memory)))
    if unread and not found:
        return [], f"nvidia-smi answered with something other than a list of GPUs: {line[:80]!r}"

    wanted = environ.get("CUDA_VISIBLE_DEVICES")
    gpus = [gpu for uuid, gpu in found if wanted is None or _is_visible(uuid, gpu, wanted)]
    note = f"nvidia-smi lists {len(found)} GPU{'' if len(found) == 1 else 's'}."
    if wanted is not None and len(gpus) < len(found):
        note += f" CUDA_VISIBLE_DEVICES={wanted!r} leaves {len(gpus)}."
    return gpus, note


def _is_visible(uuid: str, gpu: Gpu, wanted: str) -> bool:
    for entry in map(str.strip, wanted.split(",")):
        if entry == str(gpu.index) or (entry.startswith("GPU-") and uuid.startswith(entry)):
            return True
        if entry.startswith("-"):  # CUDA stops reading at the first invalid entry, usually -1
            return False
    return False


def kernels_for(gpus: list[Gpu]) -> list[Kernel]:
    """Return the kernels that suit a machine with these GPUs, the CPU first."""
    kernels = [Kernel("course-cpu", "Course (CPU)", {"COURSE_DEVICE": "cpu", "CUDA_VISIBLE_DEVICES": ""})]
    for gpu in gpus:
        env = {
            "COURSE_DEVICE": "cuda",
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # so that the index means what it means to nvidia-smi
            "CUDA_VISIBLE_DEVICES": str(gpu.index),
            "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        }
        kernels.append(Kernel(f"course-gpu-{gpu.index}", f"Course (GPU {gpu.index}: {gpu.name})", env))
    return kernels


def kernels_folder(user: bool = False, prefix: str | None = None) -> Path:
    """Return the folder of kernelspecs: the user's, or the one below ``prefix`` (default: this Python's)."""
    if user:
        from jupyter_core.paths import jupyter_data_dir

        return Path(jupyter_data_dir()) / "kernels"
    return Path(prefix or sys.prefix) / "share" / "jupyter" / "kernels"


def registered(folder: Path) -> dict[str, dict]:
    """Return our kernelspecs in ``folder`` by name; one that cannot be read is an empty dict."""
    specs = {}
    for spec in sorted(folder.glob("course-*/kernel.json")):
        if OUR_NAME.fullmatch(spec.parent.name):
            try:
                specs[spec.parent.name] = json.loads(spec.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                specs[spec.parent.name] = {}
    return specs


def register(kernels: list[Kernel], user: bool = False, prefix: str | None = None) -> Path:
    """Write a kernelspec for each of ``kernels`` and remove ours that are not among them; return the folder.

    Running it twice changes nothing. Raises OSError (PermissionError, for one) where a kernelspec that is not there
    yet cannot be written.
    """
    from ipykernel.kernelspec import install

    folder = kernels_folder(user, prefix)
    for kernel in kernels:
        try:
            install(
                kernel_name=kernel.name,
                display_name=kernel.display_name,
                env=dict(kernel.env),
                user=user,
                prefix=None if user else (prefix or sys.prefix),
            )
        except OSError:
            if not _current(registered(folder).get(kernel.name), kernel):  # a course on a read-only disk has its own
                raise
    _remove(registered(folder).keys() - {kernel.name for kernel in kernels}, folder)
    return folder


def _current(spec: dict | None, kernel: Kernel) -> bool:
    """Whether a kernelspec of ours starts this Python on that kernel's device."""
    return bool(spec) and spec.get("env") == kernel.env and (spec.get("argv") or [None])[0] == sys.executable


def unregister(user: bool = False, prefix: str | None = None) -> list[str]:
    """Remove every kernelspec of ours from the folder and return their names.

    Raises PermissionError where the folder may not be written.
    """
    folder = kernels_folder(user, prefix)
    return _remove(registered(folder), folder)


def _remove(names, folder: Path) -> list[str]:
    from jupyter_client.kernelspec import KernelSpecManager

    manager = KernelSpecManager(kernel_dirs=[str(folder)], ensure_native_kernel=False)
    for name in sorted(names):
        manager.remove_kernel_spec(name)
    return sorted(names)


def _list(kernels: list[Kernel], note: str, folder: Path) -> None:
    print(note)
    specs = registered(folder)
    width = max(len(name) for name in [*specs, *(kernel.name for kernel in kernels)])
    for kernel in kernels:
        spec = specs.pop(kernel.name, None)
        if spec is None:
            state = "not registered"
        elif _current(spec, kernel):
            state = "registered"
        else:
            state = "registered for another Python or device: register again"
        print(f"  {kernel.name:<{width}}  {kernel.display_name}: {state}")
    for name in specs:
        print(f"  {name:<{width}}  registered, but its device is gone: register again")
    print(f"Kernelspecs are kept in {folder}")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return 0, or 1 after one sentence on stderr."""
    parser = argparse.ArgumentParser(
        prog="python -m course_lib.lecture.kernel",
        description="List or register Jupyter kernels: one for the CPU, one per visible NVIDIA GPU.",
    )
    parser.add_argument("action", nargs="?", default="list", choices=["list", "register", "unregister"])
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--user", action="store_true", help="for every Jupyter of this user")
    where.add_argument("--prefix", help="below this environment (default: the one running this)")
    options = parser.parse_args(arguments)
    place = {"user": options.user, "prefix": options.prefix}
    try:
        folder = kernels_folder(**place)
        if options.action == "unregister":
            names = unregister(**place)
            print(f"Removed {', '.join(names) or 'nothing: no kernel was registered'} ({folder})")
            return 0
        gpus, note = find_gpus()
        kernels = kernels_for(gpus)
        if options.action == "register":
            register(kernels, **place)
        _list(kernels, note, folder)
    except ModuleNotFoundError as error:
        advice = 'in the folder of the course, run pip install ".[lab]", then try again.'
        print(f"{error.name} is not installed: {advice}", file=sys.stderr)
        return 1
    except OSError as error:
        advice = "give --user, or --prefix with a folder of yours"
        print(f"Cannot write {folder} ({error.strerror}): {advice}.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
