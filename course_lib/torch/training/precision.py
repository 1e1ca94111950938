"""Half precision where it pays."""

import functools
import time

import torch

SHAPES = (1024, 384), (384, 1536)  # of two matrices that are multiplied to find out


def mixed_precision(device="cpu"):
    """`torch.autocast` in bfloat16 where the device multiplies it faster than float32; elsewhere one that is off.

        with mixed_precision():
            loop.train(model, batches, objective, epochs=1)

    A processor without instructions for bfloat16 computes with it all the same, many times slower. Which one it is,
    PyTorch tells of some only, so two products are timed, once in a process.

    Parameters
    ----------
    device : where the model stands, such as "cpu" or "cuda", or a `torch.device`
    """
    kind = torch.device(device).type
    return torch.autocast(kind, torch.bfloat16, enabled=bfloat16_is_faster(kind))


@functools.cache
def bfloat16_is_faster(kind: str) -> bool:
    """Whether matrices of bfloat16 are multiplied faster than those of float32 on a kind of device."""
    if kind == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return _seconds(kind, torch.bfloat16) < _seconds(kind, torch.float32)


def _seconds(kind: str, dtype: torch.dtype) -> float:
    """The best of five products, which is the one that nothing disturbed."""
    a, b = (torch.ones(shape, dtype=dtype, device=kind) for shape in SHAPES)
    spent = []
    for _ in range(5):
        begin = time.perf_counter()
        a @ b
        spent.append(time.perf_counter() - begin)
    return min(spent)
