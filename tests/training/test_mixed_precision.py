"""bfloat16 is taken where it is faster, and the faster one is found out once."""

import pytest
import torch

from course_lib.torch.training import precision


@pytest.fixture
def seconds(monkeypatch):
    """What a product takes by its dtype, and how often one was timed."""
    asked, taken = [], {}

    def timed(kind, dtype):
        asked.append((kind, dtype))
        return taken[dtype]

    monkeypatch.setattr(precision, "_seconds", timed)
    precision.bfloat16_is_faster.cache_clear()
    yield taken, asked
    precision.bfloat16_is_faster.cache_clear()


@pytest.mark.parametrize(("short", "taken_in"), [(0.5, torch.bfloat16), (2.0, torch.float32), (1.0, torch.float32)])
def test_the_faster_precision_is_taken(seconds, short, taken_in):
    seconds[0].update({torch.bfloat16: short, torch.float32: 1.0})
    layer = torch.nn.Linear(3, 3)
    for device in ("cpu", torch.device("cpu")):
        with precision.mixed_precision(device):
            assert layer(torch.ones(2, 3)).dtype == taken_in
    assert layer(torch.ones(2, 3)).dtype == torch.float32
    assert len(seconds[1]) == 2  # and not once more for the second


def test_a_graphics_card_is_asked_and_not_timed(seconds, monkeypatch):
    for answer in (True, False):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation, answer=answer: answer)
        precision.bfloat16_is_faster.cache_clear()
        assert precision.bfloat16_is_faster("cuda") is answer
    assert not seconds[1]


def test_a_product_of_each_is_timed():
    assert precision._seconds("cpu", torch.float32) > 0 and precision._seconds("cpu", torch.bfloat16) > 0
