"""What *Build the Transformer* asks for learns a task at the end of its notebook, in either framework."""

import pytest

from tests.assignments.variants.build_the_transformer import BANK
from tests.assignments.variants.build_the_transformer.right import TENSORFLOW
from tests.support.course import filled_in

NO_POSITIONS = {"positions": "def positions(length, d_model):\n    return torch.zeros(length, d_model)"}


def trained(scorer, answers, call: str):
    """What the training cell with this call returned, and what it printed."""
    notebook = filled_in(scorer.graded, scorer.reference | answers)
    (cell,) = (cell for cell in notebook.cells if cell.source == "# train()")
    cell.source = call
    notebook.cells = [c for c in notebook.cells if not c.metadata.get("nbgrader", {}).get("grade")]
    cell = next(c for c in scorer.executed(notebook).cells if c.source == call)
    printed, *result = cell.outputs
    assert printed.output_type == "stream", printed
    return float(result[0].data["text/plain"]) if result else None, printed.text


@pytest.mark.parametrize("answers", [{}, TENSORFLOW], ids=["PyTorch", "TensorFlow"])
def test_the_reference_learns_to_write_digits_backwards(scorers, answers):
    share, said = trained(scorers(BANK), answers, "train(steps=200)")
    assert share > 0.5 and "step    0: 0.00 of the rows right" in said and "step  200" in said


def test_it_may_be_decoded_one_sentence_at_a_time(scorers):
    greedy = next(v for v in BANK.right if v.name.startswith("one sentence at a time")).cells
    share, said = trained(scorers(BANK), greedy, "train(steps=0)")
    assert share == 0 and "step    0: 0.00 of the rows right" in said


def test_without_positions_it_does_not(scorers):
    share, _ = trained(scorers(BANK), NO_POSITIONS, "train(steps=200)")
    assert share < 0.3


@pytest.mark.parametrize("name", ["NBGRADER_EXECUTION", "NBGRADER_VALIDATING"])
def test_nothing_is_trained_while_nbgrader_runs_the_notebook(scorers, name):
    share, said = trained(scorers(BANK), {}, f"os.environ[{name!r}] = '1'\ntrain()")
    assert share is None and said.startswith("No training")
