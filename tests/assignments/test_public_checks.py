"""The public checks say what is wrong: each mistake is named in words, in the cell that shows it."""

import pytest
from variants import right, tricks, wrong_attention, wrong_heads, wrong_softmax_and_masks

from tests.support.course import grade_id

WRONG = wrong_softmax_and_masks.VARIANTS + wrong_attention.VARIANTS + wrong_heads.VARIANTS
VARIANTS = {variant.name: variant for variant in WRONG + tricks.VARIANTS}

# The public cell that fails, and what it must say. Lines are wrapped, so spaces stand for any white space.
SAYS = {
    "softmax over the first axis": ("check-softmax", "your columns add up to one, not your rows"),
    "softmax over the whole array": ("check-softmax", "the whole array adds up to one"),
    "softmax without a sum": ("check-softmax", "divided by the largest. Divide each row by its sum"),
    "softmax: maximum not subtracted": ("check-softmax", "exp(1000) is infinity"),
    "softmax: maximum over the wrong axis": ("check-softmax", "a different number from each column"),
    "softmax: keepdims forgotten": ("check-softmax", "ValueError: operands could not be broadcast"),
    "softmax for matrices only": ("check-softmax", "softmax: a single row, and three axes"),
    "softmax changes its argument": ("check-softmax", "changed its argument `x` in place"),
    "returns None": ("check-softmax", "Did you forget to `return` it?"),
    "raises": ("check-softmax", "RuntimeError: no in softmax, line 2 of its cell"),
    "calls sys.exit": ("check-softmax", "Your code called exit"),
    "a syntax error": ("check-softmax", "name 'softmax' is not defined"),
    "padding mask inverted": ("check-padding-mask", "True means: this key may be attended to"),
    "padding mask of shape (B, S)": ("check-padding-mask", "Insert two axes of length 1"),
    "padding mask masks queries, (B, 1, S, 1)": ("check-padding-mask", "The last axis must hold the keys"),
    "padding id ignored": ("check-padding-mask", "Compare with pad_id"),
    "padding mask additive, 0 and -inf": ("check-padding-mask", "True and False (dtype bool)"),
    "padding mask of 0 and 1": ("check-padding-mask", "yours is a ndarray of dtype int64"),
    "causal mask off by one": ("check-causal-mask", "the diagonal is False"),
    "causal mask one too many": ("check-causal-mask", "each query sees one token of the future"),
    "causal mask transposed": ("check-causal-mask", "your queries see the future and not the past"),
    "causal mask inverted": ("check-causal-mask", "True and False are swapped"),
    "causal mask of shape (T, T)": ("check-causal-mask", "Add two axes of length 1 in front"),
    "no scale": ("check-attention", "the scale is missing"),
    "scaled by d_k": ("check-attention", "you divide the scores by d_k. Divide by its square root"),
    "scale from d_v": ("check-attention", "a square root, but not of d_k"),
    "scale from the number of keys": ("check-attention", "a square root, but not of d_k"),
    "multiplied by the scale": ("check-attention", "you multiply by the square root of d_k"),
    "sign of the scores flipped": ("check-attention", "Is a sign wrong?"),
    "softmax over the queries": ("check-attention", "add up to one over the queries, not over the keys"),
    "batch ignored: k.T": ("check-attention", "leading axes, and T, S, d_k, d_v all different"),
    "returns the context alone": ("check-attention", "should return two values, `context, weights`"),
    "returns weights and context exchanged": ("check-attention", "Return `context, weights`, in this order"),
    "attention changes its arguments": ("check-attention", "changed its argument `q` in place"),
    "mask not used": ("check-masked-attention", "the mask had no effect"),
    "scores multiplied by the mask": ("check-masked-attention", "a score of 0 is an ordinary score"),
    "mask inverted": ("check-masked-attention", "only the forbidden key is attended to"),
    "mask added as 0 and 1": ("check-masked-attention", "you added the mask to the scores as 0 and 1"),
    "mask after the softmax": ("check-masked-attention", "the others no longer add up to one"),
    "empty row NaN": ("check-masked-attention", "the second row is NaN"),
    "empty row uniform": ("check-masked-attention", "the second row attends to all keys alike"),
    "heads split without transposing": ("check-split-heads", "head 0 got both halves of token 0"),
    "heads interleaved": ("check-split-heads", "every second number of the vector"),
    "d_model cut off silently": ("check-split-heads", "raise a ValueError"),
    "heads merged without transposing": ("check-merge-heads", "without exchanging the axes H and T first"),
    "heads merged in the wrong order": ("check-merge-heads", "the numbers of the heads alternate"),
    "matrices not transposed": ("check-multi-head-attention", "you project with w_v, not with its transpose"),
    "output projection forgotten": ("check-multi-head-attention", "w_out had no effect"),
    "mask not passed on": ("check-multi-head-attention", "the mask reaches the attention"),
}
# Faults that the public examples leave to the hidden tests: other numbers, rare inputs, the dtype.
UNSEEN = {
    "softmax in float32", "padding mask by lengths", "attention in float32", "merge in place",
    "values taken from the keys",
    "softmax written into attention without the maximum",
    "scale from d_model, on top of attention's",
}


def failures(notebook) -> dict[str, str]:
    """What each failing public cell says, white space made even."""
    said = {}
    for cell in notebook.cells:
        if cell.cell_type == "code" and (grade_id(cell) or "").startswith("check-"):
            errors = [output for output in cell.outputs if output.output_type == "error"]
            said |= {grade_id(cell): " ".join(" ".join(error.traceback).split()) for error in errors}
    return said


@pytest.mark.parametrize("name", SAYS)
def test_a_public_check_names_the_mistake(scorer, name):
    cell, words = SAYS[name]
    said = failures(scorer.outcome(VARIANTS[name]))
    assert words in said[cell]
    assert said[cell].startswith("CheckFailed") and "Traceback" not in said[cell]


def test_what_the_public_checks_cannot_see_is_known(scorer):
    passed = {variant.name for variant in WRONG if not failures(scorer.outcome(variant))}
    assert passed == UNSEEN


@pytest.mark.parametrize("variant", right.VARIANTS, ids=lambda variant: variant.name)
def test_public_checks_pass_right_solutions(scorer, variant):
    said = failures(scorer.outcome(variant))
    if variant.name == "one maximum for the whole array":
        # Right by itself, and no points are lost. With the reference's most negative score an empty row underflows
        # to 0 / 0, and the check of part 3 says where to look.
        assert "each row, not one maximum for all rows" in said.pop("check-masked-attention")
    assert said == {}


def test_memorised_examples_pass_every_public_check_and_earn_nothing(scorer):
    variant = VARIANTS["remembers the public examples"]
    said = failures(scorer.outcome(variant))
    assert "check-softmax" not in said and variant.loses["test-softmax"] == 4
