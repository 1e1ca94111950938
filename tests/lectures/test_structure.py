"""What every lecture has in common: complete, executed, readable in both frameworks, and fit for the book."""

import re

import nbformat
import pytest

from course_lib.lecture.show import CLAIM
from tests.support.lecture_files import EXECUTED, LECTURES, prose, read

FRAMEWORKS = {"numpy", "torch", "tensorflow"}
TAGS = FRAMEWORKS | {"solution", "hide-input", "hide-output", "hide-cell", "remove-cell", "remove-input"}
TAGS |= {"nbval-ignore-output", "nbval-skip", "raises-exception"}

lectures = pytest.mark.parametrize("notebook", [pytest.param(read(path), id=path.stem) for path in LECTURES])
everything = pytest.mark.parametrize("notebook", [pytest.param(read(path), id=path.stem) for path in EXECUTED])


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def tags(cell) -> set[str]:
    return set(cell.metadata.get("tags", []))


def framework_runs(notebook):
    """Runs of neighbouring code cells that carry a framework's tag, each as the set of its frameworks."""
    run: set[str] = set()
    for cell in [*notebook.cells, nbformat.v4.new_markdown_cell()]:
        if "remove-cell" in tags(cell):  # the book does not show it, and goes on with its tabs
            continue
        here = tags(cell) & FRAMEWORKS if cell.cell_type == "code" else set()
        if not here and run:
            yield run
            run = set()
        run = run | here


def test_the_lectures_are_found():
    assert {"21-self-attention", "22-multi-head-attention", "33-fine-tuning-bert"} <= {path.stem for path in LECTURES}


@pytest.mark.parametrize("path", EXECUTED, ids=lambda path: path.stem)
def test_a_lecture_is_a_valid_small_file(path):
    nbformat.validate(read(path))
    assert path.stat().st_size < 1.5e6, "pictures or outputs too large for a repository"


@everything
def test_a_lecture_opens_on_the_default_kernel(notebook):
    assert notebook.metadata.kernelspec.name == "python3"
    assert notebook.metadata.language_info.name == "python"
    assert "widgets" not in notebook.metadata


@everything
def test_a_lecture_was_run_from_top_to_bottom(notebook):
    counts = [cell.execution_count for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1))
    for cell in code_cells(notebook):
        for output in cell.outputs:
            assert output.output_type != "error" or "raises-exception" in tags(cell)
            assert output.get("name") != "stderr", output.text
            assert "Warning" not in output.get("text", ""), output.text


@everything
def test_every_picture_is_described(notebook):
    for cell in code_cells(notebook):
        pictures = [o for o in cell.outputs if any(kind.startswith("image/") for kind in o.get("data", {}))]
        if pictures:
            alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
            assert len(alt) >= 40, f"describe the picture of {cell.id} in the cell's metadata, mystnb.image.alt"
        for output in pictures:
            assert "image/png" in output.data


@everything
def test_cells_are_short_and_know_no_machine(notebook):
    for cell in code_cells(notebook)[1:]:  # the first says how to install the course where it is missing
        assert len(cell.source.splitlines()) <= 25, f"cell {cell.id} is too long to read in one go"
        everything = cell.source + str([o.get("text", o.get("data", {}).get("text/plain")) for o in cell.outputs])
        assert not re.search(r"(?<![\w.])/(?:home|root|tmp|work|Users|usr|content)/", everything), cell.id
        assert not re.search(r"^\s*[!%]|pip install|\.cuda\(|device=['\"]", cell.source, re.MULTILINE), cell.id


@lectures
def test_framework_cells_come_in_both_frameworks(notebook):
    for cell in code_cells(notebook):
        assert tags(cell) <= TAGS, f"unknown tags in {cell.id}"
        assert len(tags(cell) & FRAMEWORKS) <= 1
    runs = [run for run in framework_runs(notebook) if run != {"numpy"}]
    assert runs, "a lecture shows its code in PyTorch and in TensorFlow"
    for run in runs:
        assert {"torch", "tensorflow"} <= run, f"a reader who chose another framework finds only {run}"


@lectures
def test_every_output_can_be_shown_or_is_a_claim(notebook):
    shown = {"text/plain", "text/html", "text/latex", "text/markdown", "image/png", "image/svg+xml", CLAIM}
    for cell in code_cells(notebook):
        assert {kind for output in cell.outputs for kind in output.get("data", ())} <= shown, cell.id


@lectures
def test_no_output_that_is_compared_has_more_digits_than_another_processor_repeats(notebook):
    for cell in code_cells(notebook):
        if "nbval-ignore-output" not in tags(cell):
            texts = [output.get("text", "") + output.get("data", {}).get("text/plain", "") for output in cell.outputs]
            found = re.search(r"\d\.\d{7,}|\d\.\d{5,}e-?\d+", "\n".join(texts))
            assert not found, f"{found and found[0]} is printed by:\n{cell.source}"


@lectures
def test_headings_start_at_the_title_and_skip_no_level(notebook):
    text = re.sub(r"```.*?```", "", prose(notebook), flags=re.DOTALL)
    levels = [len(marks) for marks in re.findall(r"^(#+) ", text, flags=re.MULTILINE)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b <= a + 1 for a, b in zip(levels, levels[1:], strict=False))


@lectures
def test_markdown_is_plain(notebook):
    """JupyterLab shows MyST's directives and roles as raw text."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            assert not re.search(r"^(?:```|:::)\{|\{[a-z:]+\}`", cell.source, re.MULTILINE), cell.source[:80]


@lectures
def test_a_lecture_has_all_its_parts(notebook):
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    headings = re.findall(r"^#{2,3} (.+)$", text, flags=re.MULTILINE)
    for part in ("What goes wrong", "Exercises", "References", "Where to go next"):
        assert part in headings, f"the part {part!r} is missing; there are {headings}"
    solutions = [cell for cell in code_cells(notebook) if "solution" in tags(cell)]
    assert len(solutions) >= 3, "each of the three kinds of exercise has a solution that runs"


@lectures
def test_links_to_files_lead_somewhere(notebook):
    folder = LECTURES[0].parent
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for target in re.findall(r"\]\((?!https?://|#|mailto:)([^)#]+)", cell.source):
                assert (folder / target).is_file(), target
