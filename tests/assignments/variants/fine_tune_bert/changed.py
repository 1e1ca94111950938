"""How solutions of the bank are put together."""

from pathlib import Path

from tests.support.course import reference_answers
from tests.support.quick import source_of

HEAD = {
    "first-and-last": "def first_and_last(ids, max_len):",
    "mean-of-tokens": "def mean_of_tokens(hidden, mask):",
    "layer-rates": "def layer_rates(names, peak, decay):",
    "temperature": "def temperature(logits, labels):",
    "interval": "def interval(right_a, right_b):",
}
REFERENCE = reference_answers(source_of("fine-tune-bert"))["predictions"]


def body(cell: str, *lines: str) -> dict[str, str]:
    """A solution cell with these lines as its function."""
    return {cell: HEAD[cell] + "".join(f"\n    {line}" for line in lines)}


def predicted(change: str) -> dict[str, str]:
    """The reference's predictions after a change of its probabilities `p`."""
    lines = ["from course_lib.grading import pack, unpack", "p = unpack(PREDICTIONS)", f"PREDICTIONS = pack({change})"]
    return {"predictions": "\n".join([REFERENCE, *lines])}


def recorded(name: str) -> dict[str, str]:
    """What another model predicted, from the same 2,000 sentences (seed 1)."""
    text = Path(__file__).with_name(f"{name}.txt").read_text(encoding="utf-8")
    return {"predictions": f'PREDICTIONS = """\n{text}"""'}
