"""Every number that a lecture's prose states is a number that one of its cells printed."""

import nbformat
import pytest

from course_lib.lecture.show import CLAIM
from tests.support.lecture_files import EXECUTED, claims, loose_numbers, prose, quotes, read


def faults(notebook) -> list[str]:
    """What is wrong with the numbers in the prose of a notebook, one sentence for each."""
    known = claims(notebook)
    found = [
        f"{text} in the prose quotes no claim: annotate it as {text}<!--name-->"
        for text in loose_numbers(prose(notebook))
    ]
    for quote in quotes(prose(notebook)):
        if quote.name not in known:
            found.append(f"{quote.text}: no executed cell claims {quote.name!r}")
        elif not abs(quote.value - known[quote.name]) <= quote.half_digit * (1 + 1e-9):
            found.append(f"{quote.text} in the prose, but the cell printed {known[quote.name]}")
    return found


@pytest.mark.parametrize("path", EXECUTED, ids=lambda path: path.stem)
def test_every_number_in_the_prose_was_printed_by_a_cell(path):
    notebook = read(path)
    assert not faults(notebook)
    assert len(quotes(prose(notebook))) >= 10, "a lecture without measured numbers in its prose"


@pytest.fixture
def lecture():
    cell = nbformat.v4.new_code_cell("claims(accuracy=0.8347, seeds=3)", execution_count=1)
    kept = [{"name": "accuracy", "value": "0.8347", "interval": ["0.81", "0.85"]}, {"name": "seeds", "value": "3"}]
    cell.outputs = [nbformat.v4.new_output("display_data", {CLAIM: claim}) for claim in kept]
    text = "It reaches 0.83<!--accuracy-->, or 83%<!--accuracy-->, with 3<!--seeds--> seeds (section 3.2 of the paper)."
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text), cell])


def test_a_lecture_that_quotes_its_cells_has_no_fault(lecture):
    assert faults(lecture) == []


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ("0.83<", "0.84<", "but the cell printed 0.8347"),
        ("0.83<", "0.835<", None),
        ("0.83<", "0.834<", "but the cell printed"),
        ("83%<", "84%<", "but the cell printed"),
        ("3<!--seeds-->", "4<!--seeds-->", "but the cell printed 3"),
        ("<!--seeds-->", "<!--seed-->", "no executed cell claims 'seed'"),
        ("0.83<!--accuracy-->", "0.83", "0.83 in the prose quotes no claim"),
        ("83%<!--accuracy-->", "83 per cent", "83 per cent in the prose quotes no claim"),
        ("It", "![A weight of 0.94.](live/steps.svg)\n\nIt", None),
        ("It", "![A weight of 0.94.](diagrams/steps.svg)\n\nIt", "0.94 in the prose quotes no claim"),
        ("It", "More than 7% of the time it", "7% in the prose quotes no claim"),
        ("section 3.2", "a factor of 3.2", "3.2 in the prose quotes no claim"),
        ("It", "With $d_k = 1.5$, `0.62` and [2.5](https://example.org/1.2) it", "2.5 in the prose"),
        ("It", "With $d_k = 1.5$, `0.62` and [a page](https://example.org/1.2) it", None),
    ],
)
def test_a_number_changed_by_hand_in_the_prose_is_found(lecture, before, after, complaint):
    assert before in lecture.cells[0].source
    lecture.cells[0].source = lecture.cells[0].source.replace(before, after, 1)
    found = faults(lecture)
    assert (len(found), complaint is None or complaint in found[0]) == (0 if complaint is None else 1, True), found


def test_a_claim_counts_only_from_an_executed_cell_that_makes_it(lecture):
    lecture.cells[1].execution_count = None
    assert "no executed cell claims" in faults(lecture)[0]
    lecture.cells[1].execution_count = 1
    lecture.cells[1].source = "print('accuracy')"
    assert "no executed cell claims" in faults(lecture)[0]
    lecture.cells[1].source = "claims(seeds=3)"
    assert "no executed cell claims 'accuracy'" in faults(lecture)[0]


def test_a_name_stands_for_one_number(lecture):
    lecture.cells.append(lecture.cells[1])
    with pytest.raises(ValueError, match="claimed twice"):
        claims(lecture)
