"""course_lib.checks: shapes that pass, shapes that do not, and lengths that are not known yet."""

from types import SimpleNamespace

import pytest

from course_lib import checks


@pytest.mark.parametrize("q, k, v, mask", [
    ((3, 4), (5, 4), (5, 6), None),
    ((2, 3, 4), (2, 5, 4), (2, 5, 6), (3, 5)),
    ((2, 8, 3, 4), (2, 8, 5, 4), (2, 8, 5, 4), (2, 1, 1, 5)),
    ((2, 8, 3, 4), (2, 8, 5, 4), (2, 8, 5, 4), ()),
    ((2, 8, 3, 4), (2, 8, 5, 4), (2, 8, 5, 4), (2, 8, 3, 5)),
    ((None, 8, None, 4), (None, 8, None, 4), (2, 8, 5, 4), (None, 1, 1, None)),
    ((2, 8, 3, 4), (2, 8, 5, 4), (2, 8, 5, 4), (None, 1, 3, 5)),
    ((2, 8, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4), (2, 8, 3, 5)),
    ((2, 8, 3, 4), (2, 1, 5, 4), (2, 1, 5, 4), None),
    ((None, 8, 3, 4), (None, None, 5, 4), (None, None, 5, 4), None),
])  # fmt: skip
def test_attention_that_fits(q, k, v, mask):
    checks.check_attention(q, k, v, None if mask is None else SimpleNamespace(shape=mask, dtype="bool"))


@pytest.mark.parametrize("q, k, v, message", [
    ((4,), (5, 4), (5, 6), "at least the two axes"),
    ((3, 4), (1, 5, 4), (1, 5, 6), "same number of axes"),
    ((3, 4), (5, 3), (5, 6), "number of features"),
    ((3, 4), (5, 4), (3, 6), "one value for each key"),
    ((2, 3, 4), (1, 5, 4), (2, 5, 6), "leading axes"),
    ((2, 3, 4), (2, 5, 4), (1, 5, 6), "leading axes"),
    ((None, 2, 3, 4), (None, 1, 5, 4), (None, 2, 5, 6), "leading axes"),
    ((2, 4, 3, 4), (2, 3, 5, 4), (2, 3, 5, 6), "as many heads"),
    ((2, 4, 3, 4), (2, 0, 5, 4), (2, 0, 5, 6), "as many heads"),
    ((1, 4, 3, 4), (2, 2, 5, 4), (2, 2, 5, 6), "leading axes"),
])  # fmt: skip
def test_attention_that_does_not_fit(q, k, v, message):
    with pytest.raises(ValueError, match=message):
        checks.check_attention(q, k, v)


def test_the_message_shows_the_shapes_with_a_question_mark_for_the_unknown():
    with pytest.raises(ValueError, match=r"q \(\?, 3, 4\), k \(2, 5, 3\), v \(2, 5, 6\)"):
        checks.check_attention((None, 3, 4), (2, 5, 3), (2, 5, 6))


@pytest.mark.parametrize("dtype", ["bool", "torch.bool", "<dtype: 'bool'>"])
def test_boolean_in_every_frameworks_spelling(dtype):
    checks.check_mask((3, 5), dtype, (2, 3, 5))


@pytest.mark.parametrize("dtype", ["float32", "torch.float64", "int64", "uint8"])
def test_masks_of_another_kind(dtype):
    with pytest.raises(TypeError, match=f"boolean with True = may attend, got {dtype}"):
        checks.check_mask((3, 5), dtype, (2, 3, 5))


@pytest.mark.parametrize("shape", [(2, 5), (5, 3), (2, 1, 3, 5), (3, 3, 5), (0,), (3, 0)], ids=str)
def test_masks_that_do_not_broadcast(shape):
    with pytest.raises(ValueError, match="does not broadcast"):
        checks.check_mask(shape, "bool", (2, 3, 5))


@pytest.mark.parametrize("dropout", [0, 0.0, 0.5, 0.999])
def test_a_probability(dropout):
    checks.check_dropout(dropout)


@pytest.mark.parametrize("dropout", [-0.1, 1.0, 1, 50, float("nan")])
def test_not_a_probability(dropout):
    with pytest.raises(ValueError, match=r"probability in \[0, 1\)"):
        checks.check_dropout(dropout)


def test_heads():
    assert checks.check_heads(12, 3) == 4
    for d_model, n_heads in ((10, 3), (3, 6), (12, 0), (12, -3), (0, 1)):
        with pytest.raises(ValueError, match=f"d_model={d_model}, n_heads={n_heads}"):
            checks.check_heads(d_model, n_heads)


def test_features():
    checks.check_features("x", (2, 3, 4), 4)
    checks.check_features("x", (None, None, 4), 4)
    for shape in ((3, 4), (2, 3, 5), (1, 2, 3, 4)):
        with pytest.raises(ValueError, match=r"x must have shape \(B, T, 4\)"):
            checks.check_features("x", shape, 4)


def test_length():
    checks.check_length(8, 8)
    checks.check_length(None, 8)
    with pytest.raises(ValueError, match="9 tokens is over the maximum of 8"):
        checks.check_length(9, 8)


def test_ids():
    checks.check_ids("ids", (2, 3), True, 0, 9, 10)
    with pytest.raises(TypeError, match="ids must be integers"):
        checks.check_ids("ids", (2, 3), False, 0, 9, 10)
    with pytest.raises(ValueError, match=r"ids must have shape \(B, T\), got \(3\)"):
        checks.check_ids("ids", (3,), True, 0, 9, 10)
    for low, high in ((-1, 9), (0, 10)):
        with pytest.raises(ValueError, match=rf"0 \.\.\. 9, got ids from {low} to {high}"):
            checks.check_ids("ids", (2, 3), True, low, high, 10)


def test_segments():
    checks.check_segments((2, 3), (2, 3))
    checks.check_segments((None, 3), (2, None))
    for shape in ((2, 1), (1, 3), (3, 2)):
        with pytest.raises(ValueError, match=r"segments must have the shape of ids \(2, 3\)"):
            checks.check_segments(shape, (2, 3))


def test_choice():
    checks.check_choice("colour", "red", ("red", "blue"))
    with pytest.raises(ValueError, match="colour must be one of 'red', 'blue'; got 'green'"):
        checks.check_choice("colour", "green", ("red", "blue"))
