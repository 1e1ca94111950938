"""Logits of few rows from a large table are the product's, whichever way round it is multiplied."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from course_lib.models.gpt import GPTConfig
from course_lib.torch import GPT, kernels
from course_lib.torch.kernels import to_vocabulary

V, D_MODEL = 2**14, 64


@pytest.fixture
def other_way(monkeypatch):
    """The number of columns of each product that has the table on the left."""
    found, product = [], torch.Tensor.__matmul__
    monkeypatch.setattr(torch.Tensor, "__matmul__", lambda a, b: found.append(b.shape[-1]) or product(a, b))
    return found


def random(*shape, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)).to(dtype)


@pytest.mark.parametrize(
    ("shape", "columns"), [((1, D_MODEL), [2]), ((2, D_MODEL), [2]), ((4, D_MODEL), [4]), ((5, D_MODEL), []),
                           ((0, D_MODEL), []), ((1, 2, D_MODEL), []), ((2, 3, D_MODEL), [])]
)  # fmt: skip
def test_few_rows_and_a_large_table_are_multiplied_the_other_way_round(other_way, shape, columns):
    table, hidden = random(V, D_MODEL), random(*shape)
    with torch.inference_mode():
        logits = to_vocabulary(hidden, table)
        torch.testing.assert_close(logits, F.linear(hidden, table), atol=1e-4, rtol=1e-5)
    assert other_way == columns and logits.is_contiguous() and logits.shape == (*shape[:-1], V)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_numbers_and_small_tables_and_gradients_have_the_usual_product(other_way, dtype):
    with torch.no_grad():
        to_vocabulary(random(1, D_MODEL, dtype=dtype), random(V, D_MODEL, dtype=dtype))
        to_vocabulary(random(1, D_MODEL), random(V - 1, D_MODEL))
    hidden = random(1, D_MODEL).requires_grad_()
    to_vocabulary(hidden, random(V, D_MODEL)).sum().backward()
    assert other_way == [] and hidden.grad.shape == (1, D_MODEL)


def test_it_can_be_exported_for_any_number_of_rows():
    class Model(torch.nn.Module):
        def forward(self, hidden, table):
            return to_vocabulary(hidden, table)

    table, rows = random(V, D_MODEL), torch.export.Dim("rows")
    with torch.no_grad():
        exported = torch.export.export(Model(), (random(3, D_MODEL), table), dynamic_shapes=({0: rows}, None)).module()
        for n_rows in (2, 9):
            hidden = random(n_rows, D_MODEL)
            torch.testing.assert_close(exported(hidden, table), F.linear(hidden, table))


@pytest.mark.parametrize("n_rows", [1, 3])
def test_a_sentence_has_the_same_logits_token_by_token(monkeypatch, n_rows):
    config = GPTConfig(V, d_model=D_MODEL, n_layers=1, n_heads=2, d_ff=64, max_len=8, init_std=0.3)
    torch.manual_seed(0)
    model = GPT(config).eval()
    ids = np.arange(5 * n_rows).reshape(n_rows, 5)
    ours = model.next_logits(n_rows)(ids)
    monkeypatch.setattr(kernels, "FEW", 0)
    np.testing.assert_allclose(ours, model.next_logits(n_rows)(ids), atol=1e-4, rtol=1e-5)
    with torch.no_grad():
        np.testing.assert_allclose(ours, model(torch.from_numpy(ids)).logits[:, -1], atol=1e-4, rtol=1e-5)
