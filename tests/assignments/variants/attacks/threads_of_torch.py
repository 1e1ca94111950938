"""Threads of PyTorch multiply matrices for ever, more of them than there are processors.

class: resources
on: attention-for-an-rnn
cell: additive-scores
"""

import threading

import torch

torch.set_num_threads(16)


def multiplies():
    matrix = torch.ones(1500, 1500)
    while True:
        torch.matmul(matrix, matrix)


for _ in range(8):
    threading.Thread(target=multiplies).start()
