"""The student's side answers with derivatives that are none: of other shapes and kinds, too many, NaN, for ever.

class: protocol
on: attention-for-an-rnn
cell: additive-scores
earns: test-additive-scores 3
"""

import itertools

import numpy as np
import torch

from course_lib.grading import answering

number = np.zeros((), np.float32)
answers = itertools.cycle([
    [number] * 5, [["array", "<f4", [2**24, 2**24, 0], ""]] * 5, [["iterator", [["none"]] * 9_000]] * 5, [], {}, None,
    [["none"]] * 100_000, [["tensor", "torch", "result", "<f4", [], "AAAAAA=="]] * 5, "five", {"0": number},
])  # fmt: skip
before = answering._Answers._pulled


def pulled(self, asked):
    found = next(answers)
    if found and isinstance(found[0], np.ndarray):
        found = [answering.write(each) for each in found]
    return {"kind": "returned", "derivatives": found, "value": found}


answering._Answers._pulled = pulled


def additive_scores(s, h, W, U, v):
    return torch.tanh((s @ W.T)[:, None] + h @ U.T) @ v
