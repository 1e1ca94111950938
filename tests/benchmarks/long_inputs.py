"""Time and memory of attention by the length: the formula, the fused kernel, by blocks, windowed, linear.

    python tests/benchmarks/long_inputs.py [--framework torch|tensorflow] [--lengths 256 1024]
                                           [--task forward|train|write] [--sets 1]

Each figure is of a fresh process with one thread: the median of some calls by the processor's clock, which other
processes do not turn, and by how much they raised the resident memory over that of the inputs. PyTorch's calls come
after a first one, whose memory they may find again: figures under some ten MiB say little. TensorFlow keeps all that
its first call has reserved, so that this one is in the figure, with some ten MiB of tracing. Self-attention of one
sequence, causal; "write" is one more token, whose keys and values are those of the length. Heads share as many sets
of keys and values as `--sets` says. In "write" a window and linear attention read all of them, too: what they would
keep in their place is not measured. An arm whose scores would not fit is left out. Run it by hand; `make bench` does
not.
"""

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from worker import Memory  # noqa: E402

LENGTHS = (256, 512, 1024, 2048, 4096, 8192, 16384)
SIZES = {"n_heads": 4, "d_head": 64, "window": 256}
ARMS = {  # by name: of a framework's library, the attention function
    "formula": lambda lib, window: lib.attention,
    "fused": lambda lib, window: lib.fused_attention,
    "by blocks": lambda lib, window: lib.blockwise_attention,
    "windowed": lambda lib, window: lib.windowed(window, (0,)),
    "linear": lambda lib, window: lib.linear_attention,
}
SQUARES = 6  # copies of the scores that the formula and its gradient hold at once, rather too many


def main(arguments: list[str] | None = None) -> int:
    """Measure each arm at each length, and print a table as it grows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--framework", choices=("torch", "tensorflow"), default="torch")
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--task", choices=("forward", "train", "write"), default="train")
    parser.add_argument("--sets", type=int, default=4, help="of keys and values, for 4 heads (default: 4)")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--calls", type=int, default=3, help="timed calls for each figure (default: 3)")
    parser.add_argument("--memory", type=float, default=8.0, help="GiB that an arm may take (default: 8)")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)  # the process of one figure
    chosen = parser.parse_args(arguments)
    if min(*chosen.lengths, chosen.calls) < 1:
        parser.error("lengths and calls are whole numbers of 1 or more")
    if chosen.one:
        sizes = SIZES | {"sets": chosen.sets}
        found = measured(chosen.framework, chosen.arms[0], chosen.lengths[0], chosen.task, chosen.calls, sizes)
        print(json.dumps(found))
        return 0
    given = SIZES | {"sets": chosen.sets}
    print(f"{chosen.framework}, {chosen.task}, {given}, one thread: milliseconds a call, MiB at the peak")
    print(f"{'T':>6s}" + "".join(f"{name:>22s}" for name in chosen.arms))
    for length in chosen.lengths:
        cells = [_cell(chosen, name, length) for name in chosen.arms]
        print(f"{length:6d}" + "".join(f"{cell:>22s}" for cell in cells), flush=True)
    return 0


def measured(framework: str, arm: str, length: int, task: str, calls: int, sizes: dict = SIZES) -> dict:
    """One arm in this process: seconds, the median of the calls, and the bytes by which they raised the memory."""
    lib = importlib.import_module(f"course_lib.{framework}")
    function = ARMS[arm](lib, sizes["window"])
    rng = np.random.default_rng(0)
    sets, asking = sizes.get("sets", sizes["n_heads"]), 1 if task == "write" else length
    heads_and_tokens = [(sizes["n_heads"], asking), (sets, length), (sets, length)]
    arrays = [rng.normal(size=(1, *each, sizes["d_head"])).astype(np.float32) for each in heads_and_tokens]
    call = CALLS[framework](function, arrays, task)
    if framework == "tensorflow":  # it keeps what a call has reserved, so that only the first one raises the memory
        CALLS[framework](function, [array[:, :, :8] for array in arrays], task)()
    else:
        call()  # the first one loads and reserves
    memory = Memory()
    memory.forget()
    times = []
    if framework == "tensorflow":
        call()  # it is traced
    for _ in range(calls):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return {"seconds": statistics.median(times), "bytes": max(memory.peak(), 0)}


def call_of_torch(function, arrays, task):
    """A call of PyTorch, eager, and its gradients where they are asked for."""
    import torch

    inputs = [torch.from_numpy(array).requires_grad_(task == "train") for array in arrays]

    def call():
        output = function(*inputs, causal=task != "write").output
        return torch.autograd.grad(output.sum(), inputs) if task == "train" else output

    return call


def call_of_tensorflow(function, arrays, task):
    """A call of TensorFlow, compiled by `tf.function`, and its gradients where they are asked for."""
    import tensorflow as tf

    inputs = [tf.constant(array) for array in arrays]

    @tf.function
    def compiled():
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            output = function(*inputs, causal=task != "write").output
        return tape.gradient(output, inputs) if task == "train" else output

    return lambda: [x.numpy() for x in tf.nest.flatten(compiled())]


CALLS = {"torch": call_of_torch, "tensorflow": call_of_tensorflow}


def alone(
    framework: str, arm: str, length: int, task: str = "train", calls: int = 3, memory: float = 8.0,
    sets: int = SIZES["n_heads"],
):  # fmt: skip
    """`measured` in a fresh process with one thread; None for an arm whose scores would not fit into `memory` GiB."""
    scores = SQUARES * 4 * SIZES["n_heads"] * length * (1 if task == "write" else length)
    forms_scores = ["formula"] if framework == "torch" else ["formula", "fused"]
    if arm in forms_scores and scores > memory * 2**30:
        return None
    common = ["--framework", framework, "--task", task, "--calls", str(calls), "--sets", str(sets)]
    command = [sys.executable, __file__, "--one", "--arms", arm, "--lengths", str(length), *common]
    threads = {name: "1" for name in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")}
    environment = {**os.environ, **threads, "CUDA_VISIBLE_DEVICES": ""}
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if run.returncode:
        raise RuntimeError(f"{arm} of {length} tokens ended with {run.returncode}:\n{run.stderr[-2000:]}")
    return json.loads(run.stdout.splitlines()[-1])


def _cell(chosen, arm, length):
    found = alone(chosen.framework, arm, length, chosen.task, chosen.calls, chosen.memory, chosen.sets)
    if found is None:
        return "would not fit"
    return f"{1e3 * found['seconds']:.1f} ms {found['bytes'] / 2**20:.0f} MiB"


if __name__ == "__main__":
    sys.exit(main())
