"""What does attention cost on a GPU, where do exact and cheap attention cross there, and how fast are the models?

A run needs a CUDA GPU and neither TensorFlow nor a network; nothing else of the course needs what it records. Times are
of the GPU's own clock, the median of calls after a first one; memory is what PyTorch handed out beyond the inputs.

attention: the functions of `course_lib.torch` at 256 to 16,384 tokens, forward and backward, causal, one sequence, 16
heads of 64, in float32 and in bfloat16. "fused" is `fused_attention`, which leaves the choice of the kernel to PyTorch;
"flash" allows FlashAttention's kernel alone (bfloat16), "masked" hands over a mask besides, which hides nothing, as of
texts without padding. The error is that of the output and of the gradients by q, k and v, the largest of the four:
the norm of the difference over the norm of the formula's in float64. What does not fit into memory is left out (null).

models: the sizes of GPT-2 small, T5-Small, ViT-B/16 and Whisper base, each with the peer of `transformers` on the same
weights in the same process, by turns: a training step, by autocast in bfloat16. Beside the times stands how far the
outputs lie apart.

same: the outputs of each model, and the norm of its gradient, on the GPU in float32 against those on the processor,
without the shorter float32 (TF32) that PyTorch's convolutions have on a GPU otherwise.

products: a product of two bfloat16 matrices of 8,192 rows, in operations a second, and a copy, in bytes a second.

Each figure says of which card it is, and comes from one run: compare no times of two cards. The lecture *Attention for
long inputs* tells what came out.
"""

import contextlib
import statistics
import sys
import time
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np

from notebooks.experiments.harness import Experiment, Record, main, table

LENGTHS = (256, 512, 1024, 2048, 4096, 8192, 16384)
HEADS, D_HEAD, WINDOW, BLOCK = 16, 64, 256, 1024
EXACT = ("formula", "fused", "flash", "masked", "by blocks", "by blocks of 1024")
FUNCTIONS = (*EXACT, "windowed", "linear")
DTYPES = ("float32", "bfloat16")
SIZE = {"d_model": 768, "n_layers": 12, "n_heads": 12, "d_ff": 3072}
SMALL = {"d_model": 512, "n_layers": 6, "n_heads": 8, "d_ff": 2048}
JOBS = {
    "gpt": {"B": 8, "T": 1024, "vocab_size": 50257, **SIZE},
    "t5": {"B": 32, "T": 256, "vocab_size": 32128, **SMALL},
    "vit": {"B": 64, "image_size": 224, "patch_size": 16, **SIZE},
    "whisper": {"B": 8, "T": 128, "F": 3000, "vocab_size": 51865, **SMALL},
}
SECONDS, MOST, ROUNDS = 0.5, 50, 5  # of timed calls, and how many at most; rounds of a model and its peer


class Run(NamedTuple):
    """One figure, or one for each length."""

    kind: str
    subject: str
    dtype: str = "float32"
    task: str | None = None

    @property
    def name(self) -> str:
        """What the record calls this run."""
        return " ".join(word for word in self if word)

    @property
    def seconds(self) -> float:
        """Of one GPU, about."""
        return {"attention": 10.0, "models": 10.0, "same": 10.0, "products": 5.0}[self.kind]


RUNS = table(
    [
        *(Run("products", what, "bfloat16") for what in ("matrix", "copy")),
        *(
            Run("attention", name, dtype)
            for name in FUNCTIONS
            for dtype in DTYPES
            if (name, dtype) != ("flash", "float32")  # which the kernel does not know
        ),
        *(Run("same", model) for model in JOBS),
        *(Run("models", model, "bfloat16", "train") for model in JOBS),
    ]
)


def function_of(name: str):
    """An attention function of the library, by the name that it has here."""
    from course_lib import torch as lib

    return {
        "formula": lib.attention,
        "by blocks": lib.blockwise_attention,
        "by blocks of 1024": lib.blockwise(BLOCK),
        "windowed": lib.windowed(WINDOW),
        "linear": lib.linear_attention,
    }.get(name, lib.fused_attention)


def gradients(function, inputs, cotangent, mask=None):
    """The output of an attention function, and its gradients by q, k and v, weighted by `cotangent`."""
    import torch

    inputs = [x.detach().requires_grad_() for x in inputs]
    output = function(*inputs, mask=mask, causal=True).output
    return output.detach(), *torch.autograd.grad(output, inputs, cotangent.to(output.dtype))


def truth(inputs, cotangent):
    """The same of the formula, in float64, a head at a time."""
    import torch

    from course_lib.torch import attention

    heads = zip(*(x.double().split(1, dim=1) for x in (*inputs, cotangent)), strict=True)
    found = [gradients(attention, head, slope) for *head, slope in heads]
    return [torch.cat(parts, dim=1) for parts in zip(*found, strict=True)]


def attention_run(run: Run, device: str, lengths=LENGTHS, heads=HEADS, d_head=D_HEAD) -> dict:
    """Milliseconds, mebibytes and error at each length."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    found = {"milliseconds": [], "mebibytes": [], "error": []}
    function = function_of(run.subject)
    for length in lengths:
        luck = torch.Generator(device).manual_seed(length)
        *inputs, cotangent = (
            torch.randn(1, heads, length, d_head, generator=luck, device=device).to(getattr(torch, run.dtype))
            for _ in range(4)
        )
        mask = torch.ones(1, 1, 1, length, dtype=torch.bool, device=device) if run.subject == "masked" else None
        try:
            with sdpa_kernel(SDPBackend.FLASH_ATTENTION) if run.subject == "flash" else contextlib.nullcontext():
                call = partial(gradients, function, inputs, cotangent, mask)
                values, (milliseconds, mebibytes) = call(), timed(call, device)
            error = None
            if run.subject in EXACT:
                error = max(
                    float((ours.double() - exact).norm() / exact.norm())
                    for ours, exact in zip(values, truth(inputs, cotangent), strict=True)
                )
            figures = (round(milliseconds, 4), round(mebibytes, 1), error)
        except torch.OutOfMemoryError:
            figures = (None, None, None)
        for key, value in zip(found, figures, strict=True):
            found[key].append(value)
        values = call = None
        if device == "cuda":
            torch.cuda.empty_cache()
    return {"lengths": list(lengths), **found}


def timed(call, device: str) -> tuple[float, float]:
    """Milliseconds of a call, the median, and mebibytes that one handed out at the most."""
    import torch

    call()
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    begin, times = time.perf_counter(), []
    while not times or (time.perf_counter() - begin < SECONDS and len(times) < MOST):
        times.append(one_time(call, device))
    peak = (torch.cuda.max_memory_allocated() - before) / 2**20 if device == "cuda" else 0.0
    return statistics.median(times), peak


def one_time(call, device: str) -> float:
    """Milliseconds of one call."""
    import torch

    if device != "cuda":
        begin = time.perf_counter()
        call()
        return 1e3 * (time.perf_counter() - begin)
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    call()
    last.record()
    torch.cuda.synchronize()
    return first.elapsed_time(last)


def subjects():
    """The models and their peers, as `make bench` builds them."""
    folder = Path(__file__).resolve().parents[2] / "tests/benchmarks"
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    import models_subjects

    return models_subjects


def model_run(run: Run, device: str, jobs=JOBS) -> dict:
    """A model beside its peer: milliseconds of both, the ratio of the rounds, and how far their outputs differ."""
    job = jobs[run.subject] | {"model": run.subject, "task": run.task, "device": device}
    job |= {"autocast": run.dtype == "bfloat16"}
    ours, theirs = (build(job) for build in (subjects().our_model, subjects().peer_model))
    apart = distances(ours[1](), theirs[1]())
    calls = ours[0], theirs[0]
    for call in calls:
        call()
    rounds = [[statistics.median(one_time(call, device) for _ in range(3)) for call in calls] for _ in range(ROUNDS)]
    ratios = sorted(mine / other for mine, other in rounds)
    return {
        "milliseconds": [round(statistics.median(side), 3) for side in zip(*rounds, strict=True)],
        "ratio": [round(float(x), 3) for x in np.quantile(ratios, (0.5, 0.25, 0.75))],
        "apart": apart,
    }


def distances(found: dict, wanted: dict) -> dict:
    """How far arrays lie apart, as a part of the largest number."""
    return {name: float(np.abs(found[name] - value).max() / np.abs(value).max()) for name, value in wanted.items()}


def same_run(run: Run, device: str, jobs=JOBS) -> dict:
    """How far a model's outputs on the device lie from those on the processor, of two rows."""
    import torch

    apart = {}
    for task in ("forward", "train"):
        job = jobs[run.subject] | {"model": run.subject, "task": task, "B": 2}
        job |= {"T": min(job["T"], 128)} if "T" in job else {}
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            here, there = (subjects().our_model(job | {"device": name})[1]() for name in (device, "cpu"))
        apart |= distances(here, there)
    return {"apart": apart}


def product_run(run: Run, device: str, n: int = 8192) -> dict:
    """What the device can do at the most: operations or bytes a second."""
    import torch

    dtype = getattr(torch, run.dtype)
    a, b = torch.randn(n, n, device=device).to(dtype), torch.randn(n, n, device=device).to(dtype)
    if run.subject == "matrix":
        return {"per_second": 2 * n**3 / timed(lambda: a @ b, device)[0] * 1e3}
    a = torch.randn(16 * n, n, device=device).to(dtype)
    b = torch.empty_like(a)
    return {"per_second": 2 * a.numel() * a.element_size() / timed(lambda: b.copy_(a), device)[0] * 1e3}


def measure(run: Run, record: Record, device: str = "cuda") -> dict:
    """The figures of one run, and of which device they are."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise RuntimeError("no CUDA GPU is here; python -m course_lib.lecture.kernel says why")
    begin = time.perf_counter()
    kinds = {"attention": attention_run, "models": model_run, "same": same_run, "products": product_run}
    figures = kinds[run.kind](run, device)
    return figures | {
        "device": torch.cuda.get_device_name() if device == "cuda" else device,
        "seconds": round(time.perf_counter() - begin, 1),
        "version": version("torch"),
    }


EXPERIMENT = Experiment(__doc__, RUNS, measure, Record.of(__file__), "attention flash")

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
