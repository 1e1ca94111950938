"""Tensors that have no numbers, or not those of an array: sparse, quantised, nested, on no device, of odd dtypes.

class: values that lie
on: attention-for-an-rnn
cell: additive-scores
"""

import itertools

import torch

kinds = itertools.cycle([
    lambda zeros: zeros.to_sparse(), lambda zeros: zeros.to("meta"), lambda zeros: zeros.to(torch.bfloat16),
    lambda zeros: torch.quantize_per_tensor(zeros, 1.0, 0, torch.quint8), lambda zeros: zeros.to(torch.complex64),
    lambda zeros: torch.nested.nested_tensor([zeros, zeros[:1]]), lambda zeros: zeros.to(torch.uint16),
    lambda zeros: zeros.to(torch.float8_e4m3fn), lambda zeros: torch.complex(zeros, zeros).conj(),
    lambda zeros: zeros.fill_(torch.nan), lambda zeros: zeros[:, :0].expand(-1, 0), lambda zeros: zeros > 0,
    lambda zeros: torch.empty(0).expand(2**20, 2**20, 0), lambda zeros: torch.zeros(1).expand(2**30, 2**30),
])  # fmt: skip


def additive_scores(s, h, W, U, v):
    return next(kinds)(torch.zeros(h.shape[:2]))
