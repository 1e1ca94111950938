"""Positions added to the embeddings, since attention alone does not see order (Vaswani et al. 2017, section 3.5)."""

import torch
from torch import nn

from course_lib.checks import check_features, check_length
from course_lib.positions import sinusoidal_table


class SinusoidalPositions(nn.Module):
    """x + sinusoids of the position; nothing is learned.

    Raises
    ------
    ValueError : an odd d_model.
    """

    def __init__(self, d_model: int, max_len: int = 512):
        super().__init__()
        self.d_model, self.max_len = d_model, max_len
        table = torch.tensor(sinusoidal_table(max_len, d_model), dtype=torch.get_default_dtype())
        self.register_buffer("table", table, persistent=False)

    def forward(self, x):
        """(B, T, d_model) -> (B, T, d_model); ValueError when T is over max_len."""
        check_features("x", x.shape, self.d_model)
        check_length(x.shape[1], self.max_len)
        return x + self.table[: x.shape[1]].to(x.dtype)


class LearnedPositions(nn.Module):
    """x + one learned vector per position, as in BERT (Devlin et al. 2018, section 3).

    Fresh vectors are normal with the standard deviation `std`.
    """

    def __init__(self, d_model: int, max_len: int = 512, std: float = 0.02):
        super().__init__()
        self.d_model, self.max_len = d_model, max_len
        self.weight = nn.Parameter(std * torch.randn(max_len, d_model))

    def forward(self, x):
        """(B, T, d_model) -> (B, T, d_model); ValueError when T is over max_len."""
        check_features("x", x.shape, self.d_model)
        check_length(x.shape[1], self.max_len)
        return x + self.weight[: x.shape[1]]
