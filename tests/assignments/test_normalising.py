"""Every malformed submission gets its mark or its name, and stays as it was; no kernel, and one quick run for each."""

import ast
import codecs
import copy
import errno
import hashlib
import html
import importlib
import io
import json
import os
import re
import shutil
import stat
import struct
import zipfile
import zipimport
from datetime import datetime
from pathlib import PurePosixPath

import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_code_cell
from variants import handed_in

from course_lib.grading.marking import changed, files
from course_lib.grading.marking.cells import rebuilt
from course_lib.grading.marking.changed import EARLIER
from course_lib.grading.marking.files import Found, plain_stem, safe_name
from course_lib.grading.marking.normalise import handed_in_at, normalise, normalise_into, write
from course_lib.grading.marking.programs import is_program
from course_lib.grading.marking.reading import Unreadable, read_notebook
from course_lib.grading.marking.record import CHANGES, KIND, POINTS, READ_ONLY, TEST, UNLOCKED
from course_lib.grading.marking.released import Release, Released, release_of
from course_lib.grading.marking.strays import stray_code
from tests.support.course import ASSIGNMENT, filled_in, grade_id, maximum, reference_answers
from tests.support.quick import scores

KINDS = {each.name: each for each in handed_in.KINDS}
ANSWER = "1. The variance is $d_k$. 2. It saturates. 3. It sees the future. 4. Change a later token."


@pytest.fixture(scope="module")
def releases(generated):
    with generated.gradebook() as gradebook:
        return {ASSIGNMENT: release_of(gradebook, ASSIGNMENT, ASSIGNMENT, generated.release)}


@pytest.fixture(scope="module")
def solved(generated):
    """The solved notebook as JSON."""
    answers = reference_answers(generated.source)
    handed_in.STUBS.update({grade_id(c): c.source for c in generated.release.cells if grade_id(c) in answers})
    return nbformat.writes(filled_in(generated.release, answers | {"explain": ANSWER}))


def seen(folder):
    """Everything in a folder, to compare."""
    return {
        str(path): path.lstat().st_mode if not stat.S_ISREG(path.lstat().st_mode) else
        (path.lstat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in sorted(folder.rglob("*"))
    }  # fmt: skip


@pytest.fixture(scope="module")
def earned(scorer):
    """The points of a normalised notebook; most of them are the same one."""
    known = {}

    def score(notebook):
        code = tuple(cell.source for cell in notebook.cells if cell.cell_type == "code")
        if code not in known:
            known[code] = scores(scorer.executed(notebook))
        return known[code]

    return score


def cells(notebook):
    return {grade_id(cell): cell for cell in notebook.cells if grade_id(cell)}


@pytest.mark.parametrize("name", KINDS)
def test_a_submission_gets_its_mark_or_its_name(name, tmp_path, releases, solved, earned, generated):
    kind = KINDS[name]
    folder = tmp_path / "submitted"
    folder.mkdir()
    kind.write(folder, json.loads(solved))
    before = seen(folder)
    if kind.why:
        with pytest.raises(Unreadable, match=kind.why):
            normalise(folder, releases)
    else:
        found = normalise(folder, releases)
        notebook = found.notebooks[ASSIGNMENT]
        points = maximum(generated.source)
        got = earned(notebook)
        assert {cell: of - got[cell] for cell, of in points.items() if got[cell] != of} == kind.loses
        assert kind.notes in ". ".join(found.notes)
        assert cells(notebook)["explain"].source == ANSWER
        assert list(cells(notebook)) == [cell.name for cell in releases[ASSIGNMENT].cells]
    assert seen(folder) == before


def test_there_are_as_many_kinds_as_were_tried():
    assert len(KINDS) == len(handed_in.KINDS) >= 49
    assert 14 <= sum(bool(kind.why) for kind in KINDS.values()) <= 20


def test_an_untouched_submission_passes_as_it_is(tmp_path, releases, solved):
    (tmp_path / f"{ASSIGNMENT}.ipynb").write_text(solved, encoding="utf-8")
    found = normalise(tmp_path, releases)
    given = nbformat.reads(solved, as_version=4)
    locked = {cell.name: cell.source for cell in releases[ASSIGNMENT].cells if cell.locked}
    expected = [(cell.cell_type, locked.get(grade_id(cell), cell.source)) for cell in given.cells]
    assert [(cell.cell_type, cell.source) for cell in found.notebooks[ASSIGNMENT].cells] == expected
    assert found.notes == [] and found.missing == [] and found.time is None


def test_a_written_answer_below_its_stub_counts(tmp_path, releases, generated, solved):
    stub = next(cell.source for cell in generated.release.cells if grade_id(cell) == "explain")
    notebook = json.loads(solved)
    handed_in.cell(notebook, "explain")["source"] = stub
    own = {"cell_type": "markdown", "metadata": {}, "source": ANSWER, "id": "own"}
    notebook["cells"].insert(handed_in.place(notebook, "explain") + 1, own)
    (tmp_path / "a.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    assert cells(normalise(tmp_path, releases).notebooks[ASSIGNMENT])["explain"].source == ANSWER


def test_the_students_own_cells_stay_between_their_neighbours(tmp_path, releases, solved):
    notebook = json.loads(solved)
    own = {"cell_type": "code", "metadata": {}, "source": "helper = 1", "outputs": [], "id": "own"}
    notebook["cells"].insert(handed_in.place(notebook, "attention"), own)
    (tmp_path / "a.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    made = normalise(tmp_path, releases).notebooks[ASSIGNMENT].cells
    at = [cell.source for cell in made].index("helper = 1")
    assert grade_id(made[at + 1]) == "attention" and "nbgrader" not in made[at].metadata


def test_data_go_along_beside_the_notebook_and_nothing_else_is_written(tmp_path, releases, solved):
    folder = tmp_path / "in" / "work"
    folder.mkdir(parents=True)
    for name in ("a.ipynb", "weights.npz", "model.pt", "helper.py"):
        (folder / name).write_text(solved if name == "a.ipynb" else "x", encoding="utf-8")
    (tmp_path / "in" / "timestamp.txt").write_text("2026-11-03 17:00:00 UTC")
    found = normalise(tmp_path / "in", releases, helpers={"helper.py"})
    write(found, tmp_path / "out")
    names = sorted(path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*"))
    assert names == [f"{ASSIGNMENT}.ipynb", "helper.py", "timestamp.txt", "weights.npz"]
    assert (tmp_path / "out" / "timestamp.txt").read_text() == "2026-11-03 17:00:00 UTC\n"
    assert "model.pt" in " ".join(found.notes)


@pytest.mark.parametrize("name, safe", [
    ("anna", "anna"), ("Müller, J.", "Müller_J."), ("../../x", "_.._x".lstrip("_")), ("..", None), ("a*[b]?", "a_b"),
    ("$(touch x)", "touch_x"), ("x@y.de", "x@y.de"), ("", None),
])  # fmt: skip
def test_a_name_becomes_a_path_only_when_it_is_safe(name, safe):
    assert safe_name(name) == safe


def test_names_that_browsers_and_people_change_are_known():
    for name in ("hw one.ipynb", "HW-One (1).ipynb", "hw_one copy 2.ipynb", "hw-one-1.ipynb", "hw_one_final.ipynb.txt"):
        assert plain_stem(name) == "hwone", name


def test_an_empty_answer_waits_for_a_person_where_words_stand_elsewhere(releases, solved):
    given = json.loads(solved)
    handed_in.untouched(given, "explain")
    made, notes = rebuilt(read_notebook(json.dumps(given).encode())[0], releases[ASSIGNMENT])
    assert cells(made)["explain"].source == handed_in.STUBS["explain"] and not notes
    handed_in.below(given, "softmax", ANSWER)
    made, notes = rebuilt(read_notebook(json.dumps(given).encode())[0], releases[ASSIGNMENT])
    assert cells(made)["explain"].source.startswith(handed_in.STUBS["explain"] + "\n\n*(")  # so nbgrader gives no zero
    assert "explain is empty, but" in " ".join(notes)


def test_two_notebooks_with_different_answers_are_a_doubt_and_one_twice_is_none(tmp_path, releases, solved):
    (tmp_path / f"{ASSIGNMENT}.ipynb").write_text(solved, encoding="utf-8")
    (tmp_path / "again.ipynb").write_text(solved, encoding="utf-8")
    assert normalise(tmp_path, releases).doubts == []
    other = solved.replace("def softmax(x):", "def softmax(x, y=None):")
    (tmp_path / "again.ipynb").write_text(other, encoding="utf-8")
    (doubt,) = normalise(tmp_path, releases).doubts
    assert "'again.ipynb'" in doubt and "remove the one that was not meant" in doubt


def test_a_notebook_in_which_nothing_was_written_is_a_doubt(tmp_path, releases, generated, solved):
    """As it was released, with its answers emptied, and with all of them deleted; one answer is enough."""
    path = tmp_path / f"{ASSIGNMENT}.ipynb"
    untouched = json.loads(nbformat.writes(generated.release))
    names = list(releases[ASSIGNMENT].answers)
    emptied = copy.deepcopy(untouched)
    for name in names:
        handed_in.cell(emptied, name)["source"] = " \n"
    deleted = copy.deepcopy(untouched)
    for name in names:
        deleted["cells"].remove(handed_in.cell(deleted, name))
    for notebook in (untouched, emptied, deleted):
        path.write_text(json.dumps(notebook), encoding="utf-8")
        (doubt,) = normalise(tmp_path, releases).doubts
        assert doubt == f"nothing was written in it: is '{ASSIGNMENT}.ipynb' the right file?"
    for name in names:
        begun = copy.deepcopy(untouched)
        handed_in.cell(begun, name)["source"] = handed_in.cell(json.loads(solved), name)["source"]
        path.write_text(json.dumps(begun), encoding="utf-8")
        assert normalise(tmp_path, releases).doubts == [], name


@pytest.mark.parametrize("places", [("softmax", "attention"), ("softmax", "attention", "causal-mask")])
def test_answers_in_each_others_cells_go_where_they_belong(releases, solved, places):
    given = json.loads(solved)
    sources = [handed_in.cell(given, name)["source"] for name in places]
    for name, source in zip(places, [*sources[1:], sources[0]], strict=True):
        handed_in.cell(given, name)["source"] = source
    made, notes = rebuilt(read_notebook(json.dumps(given).encode())[0], releases[ASSIGNMENT])
    assert [cells(made)[name].source for name in places] == ["".join(source) for source in sources]
    assert " ".join(notes).count("stood in the cell of") == len(places) and "metadata" not in " ".join(notes)


def test_an_answer_in_anothers_cell_stays_there_where_its_own_has_one(releases, solved):
    given = json.loads(solved)
    answer = "".join(handed_in.cell(given, "softmax")["source"])
    handed_in.cell(given, "attention")["source"] = answer
    made, notes = rebuilt(read_notebook(json.dumps(given).encode())[0], releases[ASSIGNMENT])
    assert cells(made)["softmax"].source == cells(made)["attention"].source == answer and not notes
    handed_in.untouched(given, "softmax")  # but not where its own is the stub
    made, notes = rebuilt(read_notebook(json.dumps(given).encode())[0], releases[ASSIGNMENT])
    assert cells(made)["softmax"].source == answer and "the answer of softmax stood in" in " ".join(notes)
    assert cells(made)["attention"].source == handed_in.STUBS["attention"]


@pytest.mark.parametrize(("written", "graded", "own"), [
    ("import numpy as np\nimport math, numpy as np\nx = 2\nprint(x)", False, "import math, numpy as np\n\nprint(x)"),
    ("import numpy as np\nx = 1\nprint(x)", True, ""),
    ("import numpy as np\nx = 2\ny: int = 3\nassert False", True, "y: int = 3"),
    ("x = 1\n@wraps\nclass A:\n    x = 5\n\n\nA.x = 1", True, "@wraps\nclass A:\n    x = 5"),
    ("import numpy as np\n%matplotlib inline\nx = 1", False, "get_ipython().run_line_magic('matplotlib', 'inline')"),
    ("import numpy as np\nx = 1\nmy answer", False, "my answer"),
    ("import numpy as np\nimport math\nx = 1", True, "import math"),
    ("%%time\nimport numpy as np\nx = 1\ny = 2", True, "y = 2"),
    ("x = 1\nprint([y for y in (z := [1])], lambda v: 2)", True, "print([y for y in (z := [1])], lambda v: 2)"),
    ("x = 1\nprint([y for y in [1]])", True, ""),
])  # fmt: skip
def test_what_is_the_students_own_in_a_cell_of_the_courses(written, graded, own):
    assert stray_code(written, "import numpy as np\nx = 1", graded) == own


@pytest.mark.parametrize(("change", "named"), [
    (lambda answer: "def softmax(x):\n    return x", False),  # nothing but the definition tells which cell it is
    (lambda answer: answer, True),
    (lambda answer: answer.replace("\n    ", "\n        "), True),
], ids=["two definitions", "the same twice", "the same but for its indentation"])  # fmt: skip
def test_the_last_version_is_the_answer_and_a_copy_is_none(releases, solved, change, named):
    given = nbformat.reads(solved, as_version=4)
    place = next(i for i, cell in enumerate(given.cells) if grade_id(cell) == "softmax")
    answer, metadata = given.cells[place].source, given.cells[place].metadata
    if not named:
        metadata.pop("nbgrader")
    given.cells.insert(place, new_code_cell(change(answer), metadata=metadata))
    made, _ = rebuilt(given, releases[ASSIGNMENT])
    assert cells(made)["softmax"].source == answer
    sources = [cell.source for cell in made.cells]
    assert sources.count(answer) == 1 and change(answer) in sources


@pytest.mark.parametrize(("source", "read"), [("a\r\nb\rc", "a\nb\nc"), (["a\r\n", "b"], "a\nb"), ("\ud83d", "?")])
def test_a_source_is_read_as_lines_that_can_be_written(source, read):
    content = json.dumps({"nbformat": 4, "cells": [{"cell_type": "code", "source": source, "metadata": {}}]})
    assert read_notebook(content.encode())[0].cells[0].source == read


@pytest.mark.parametrize("metadata", [["a list"], "a text", None, {"nbgrader": "a text"}, {"nbgrader": ["a list"]}])
def test_metadata_that_are_no_table_are_left_out(metadata):
    content = json.dumps({"nbformat": 4, "cells": [{"cell_type": "code", "source": "a", "metadata": metadata}]})
    assert read_notebook(content.encode())[0].cells[0].metadata == {}


@pytest.mark.parametrize(("attachments", "read"), [
    ({"a.svg": {"image/svg+xml": ["<svg>\n", "</svg>"]}, "b.png": {"image/png": "AA"}},
     {"a.svg": {"image/svg+xml": "<svg>\n</svg>"}, "b.png": {"image/png": "AA"}}),
    ({"a.svg": {"image/svg+xml": ["<svg>", 5]}, "b.png": {"image/png": "AA"}}, {"b.png": {"image/png": "AA"}}),
    ({"a.svg": "a text"}, None), (["a list"], None), (None, None),
])  # fmt: skip
def test_pictures_of_a_text_are_read_as_nbformat_writes_them(attachments, read):
    cell = {"cell_type": "markdown", "source": "a", "metadata": {}, "attachments": attachments}
    content = json.dumps({"nbformat": 4, "cells": [cell]})
    assert read_notebook(content.encode())[0].cells[0].get("attachments") == read


FEW = Release(
    [
        Released("f", "code", "def f(x):\n    pass", "", False, True, shown="def f(x):\n    pass"),
        Released("t", "code", "f(1)", "", True, False, 1.0, shown="f(1)"),
        Released("explain", "markdown", "Write here.", "", False, True, 4.0, shown="Write here."),
    ],
    ["# Question\n\nWhy is it so?"],
)


def of_few(*given):
    """What is made of a notebook with these cells: a type, a name or none, a source, and perhaps pictures."""
    made = [
        {"cell_type": kind, "source": source, "metadata": {"nbgrader": {"grade_id": name}} if name else {}}
        | ({"attachments": {of: {"image/png": data} for of, data in pictures[0].items()}} if pictures else {})
        for kind, name, source, *pictures in given
    ]
    return rebuilt(read_notebook(json.dumps({"nbformat": 4, "cells": made}).encode())[0], FEW)


SOLVED = [("code", "f", "def f(x):\n    return 1"), ("code", "t", "f(1)")]


def test_pictures_of_one_name_are_all_shown():
    first, same, other = ("a ![x](attachment:image.png)", {"image.png": "A"}), ("again", {"image.png": "A"}), "B"
    last = "b ![x](attachment:image.png) ![y](attachment:image.png.png)", {"image.png": other, "image.png.png": "C"}
    made, _ = of_few(*SOLVED, *(("markdown", "explain", *each) for each in (first, same, last)))
    answer = cells(made)["explain"]
    assert answer.source.splitlines()[-1] == "b ![x](attachment:2-image.png) ![y](attachment:image.png.png)"
    assert {name: files["image/png"] for name, files in answer.attachments.items()} == {
        "image.png": "A", "2-image.png": "B", "image.png.png": "C",
    }  # fmt: skip


@pytest.mark.parametrize(("name", "written"), [
    ("my own.png", "my%20own.png"), ("image (1).png", "image%20(1).png"), ("Übung,1.png", "%C3%9Cbung,1.png"),
    ("ü.png", "ü.png"),
])  # fmt: skip
def test_a_picture_goes_with_the_answer_that_was_written_into_the_question(name, written):
    question = f"{FEW.texts[0]}\n\nSee ![x](attachment:{written})"
    pictures = {name: "A", "the course's.png": "B"}
    made, notes = of_few(*SOLVED, ("markdown", None, question, pictures), ("markdown", "explain", "Write here."))
    answer = cells(made)["explain"]
    assert answer.source == f"See ![x](attachment:{written})" and [*answer.attachments] == [name]
    assert "metadata" not in " ".join(notes)


def test_metadata_are_lost_only_where_no_cell_has_them():
    own = "markdown", None, "Because the sum is one."
    made, notes = of_few(*SOLVED, ("markdown", "explain", "Write here."), own)
    assert notes == ["what is in explain stood in a cell of the student's own"]
    assert cells(made)["explain"].source == own[2]
    assert of_few(*SOLVED, own)[1] == ["the metadata of explain were lost and restored"]


def test_what_is_no_python_stands_before_the_answer():
    made, _ = of_few(*SOLVED, ("code", "f", "def g(x:\n    return 2"), ("markdown", "explain", "x"))
    assert [cell.source for cell in made.cells][:2] == ["def g(x:\n    return 2", "def f(x):\n    return 1"]
    assert grade_id(made.cells[0]) is None and cells(made)["f"].source == "def f(x):\n    return 1"


@pytest.mark.parametrize(
    ("name", "expected"), [("hw.ipynb", True), ("HW.IPYNB ", True), ("hw.ipynb.txt", True), ("hw.ipynb.zip", False)]
)
def test_a_notebook_is_known_by_its_name(name, expected):
    assert Found(PurePosixPath(name), b"", 0.0).is_notebook == expected


@pytest.mark.parametrize(("files", "waits"), [
    ({"explain.pdf": b"%PDF-1.4"}, True), ({"onlinetext.html": b"<p>1."}, True), ({"a.docx": b"PK\x03\x04"}, True),
    ({"submission_secret.txt": b"x", "timestamp.txt": b"2026-11-03 17:00:00 UTC"}, False), ({"task.png": b"x"}, False),
])  # fmt: skip
@pytest.mark.parametrize("empty", [True, False])
def test_an_empty_answer_waits_for_a_person_where_a_text_lies_beside_it(
    tmp_path, releases, solved, files, waits, empty
):
    notebook = json.loads(solved)
    handed_in.cell(notebook, "explain")["source"] = "" if empty else handed_in.STUBS["explain"]
    (tmp_path / f"{ASSIGNMENT}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    found = normalise(tmp_path, releases, helpers={"task.png"})
    assert ("may stand elsewhere" in cells(found.notebooks[ASSIGNMENT])["explain"].source) == waits
    assert (f"{next(iter(files))!r} lies beside it" in " ".join(found.notes)) == waits


def test_work_with_its_code_in_a_module_is_a_doubt(tmp_path, releases, solved):
    notebook, path = json.loads(solved), tmp_path / f"{ASSIGNMENT}.ipynb"
    for name in ("mine.py", "numpy.py", "other.py"):
        (tmp_path / name).write_text("x = 1")
    path.write_text(json.dumps(notebook), encoding="utf-8")
    assert normalise(tmp_path, releases).doubts == []
    handed_in.cell(notebook, "softmax")["source"] = "from mine import softmax\nimport numpy"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    (doubt,) = normalise(tmp_path, releases).doubts
    assert "imports 'mine.py', which was left behind" in doubt


def zipped(before=b"", **members):
    """An archive, with these bytes before it."""
    data = io.BytesIO()
    data.write(before)
    with zipfile.ZipFile(data, "a") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/").replace("_", "."), content)
    return data.getvalue()


TOO_MANY = "more than 500 files or 256 MiB: the rest was left behind"
PICTURES = {f"data/{number}.png": b"x" for number in range(600)}
MODULES = {f"code/{number}.py": b"x" for number in range(600)}
SILENT = {f"{folder}/{n}": b"x" for folder in (".git/objects", "__MACOSX", "a/__pycache__") for n in range(600)}
FOLDERS = {f"empty/{number}/": b"" for number in range(600)}


def laid(folder, members, notebook=b""):
    """Write these files: a dictionary as an archive, and `...` as the notebook."""

    def made(content):
        if isinstance(content, dict):
            return handed_in.packed({name: made(each) for name, each in content.items()})
        return notebook if content is ... else content

    for name, content in members.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(made(content))


@pytest.mark.parametrize(("members", "too_many"), [
    (PICTURES | {"hw.ipynb": ...}, True), ({"a.zip": PICTURES | {"hw.ipynb": ...}}, True),
    (MODULES | {"hw.ipynb": ...}, True), ({"a.zip": MODULES | {"hw.ipynb": ...}}, True),
    ({"a.zip": SILENT | FOLDERS | {"hw.ipynb": ...}}, False),
    ({"a.zip": PICTURES, "b.zip": {"inner.zip": {"hw.ipynb": ...}}}, True),
    ({"a.zip": {"a.zip": PICTURES, "b/hw.ipynb": ...}}, True),
], ids=["folder", "archive", "modules", "archive of modules", "silent", "two archives", "archives in one"])  # fmt: skip
def test_a_notebook_has_room_before_all_other_files(tmp_path, releases, solved, members, too_many):
    laid(tmp_path, members, solved.encode())
    found = normalise(tmp_path, releases)
    assert found.notes.count(TOO_MANY) == too_many and len(found.data) <= 499
    assert list(cells(found.notebooks[ASSIGNMENT])) == [cell.name for cell in releases[ASSIGNMENT].cells]


def test_a_notebook_has_room_before_larger_files(tmp_path, releases, solved, monkeypatch):
    monkeypatch.setattr(files, "LARGEST", len(solved.encode()) + 100)
    names = {"a.csv": "x" * len(solved), "b.pt": "x" * len(solved), "hw.ipynb": solved}
    (tmp_path / "folder").mkdir()
    (tmp_path / "archive").mkdir()
    with zipfile.ZipFile(tmp_path / "archive" / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in names.items():
            (tmp_path / "folder" / name).write_text(text, encoding="utf-8")
            archive.writestr(name, text)
    for folder in ("folder", "archive"):
        found = normalise(tmp_path / folder, releases)
        assert list(found.notebooks) == [ASSIGNMENT] and not found.data
        assert TOO_MANY in found.notes


def test_of_many_files_few_are_opened(tmp_path, monkeypatch):
    laid(tmp_path, {f"{number:04}.bin": b"x" for number in range(3000)})
    read, content = [], files._content

    def counted(path, most):
        read.append(path)
        return content(path, most)

    monkeypatch.setattr(files, "_content", counted)
    found, notes, doubts = files.handed_in(tmp_path)
    assert len(found) == len(read) == 500 and notes == [TOO_MANY] and doubts == []


def test_each_file_is_taken_once_and_what_is_good_for_more_or_lies_higher_comes_first(tmp_path):
    archive = {"c.bin": b"x", "d.csv": b"x", "e.ipynb": b"x", "f.zip": {"g.ipynb": b"x", "h.csv": b"x"}}
    laid(tmp_path, {"a.bin": b"x", "b.ipynb": b"x", "i.zip": archive, "j.ipynb": {"k.csv": b"x", "l.ipynb": b"x"}})
    laid(tmp_path, {"data.csv": b"x", "m/n/o/p/q/r.csv": b"x"})
    found, notes, doubts = files.handed_in(tmp_path, {"d.csv"})
    notebooks = "b.ipynb i.zip/e.ipynb j.ipynb/l.ipynb i.zip/f.zip/g.ipynb"
    others = "data.csv j.ipynb/k.csv i.zip/f.zip/h.csv m/n/o/p/q/r.csv i.zip/d.csv a.bin i.zip/c.bin"
    assert [str(each.path) for each in found] == f"{notebooks} {others}".split() and notes == doubts == []


def test_what_is_left_behind_of_an_archive_is_said_once_and_takes_no_room(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(600):
            link = zipfile.ZipInfo(f"{number}.csv")
            link.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(link, "/etc/hostname")
        archive.writestr("inner.zip", b"PK\x03\x04 damaged")
        for name in ("true.csv", "wrong.csv", "worse.csv"):
            archive.writestr(name, f"1,2 in {name}")
    for name in ("wrong.csv", "worse.csv"):  # which has another sum now
        path.write_bytes(path.read_bytes().replace(f"1,2 in {name}".encode(), f"3,4 in {name}".encode()))
    found, notes, doubts = files.handed_in(tmp_path)
    assert [str(each.path) for each in found] == ["a.zip/true.csv"] and doubts == []
    assert notes == [
        "a.zip/0.csv is a link and was left behind; 599 more like it",
        "a.zip/inner.zip is an archive that cannot be opened",
        "a.zip/worse.csv is damaged in its archive, or packed in an unknown way, and was left behind; 1 more like it",
    ]


def test_a_file_with_a_password_is_said_to_have_one(tmp_path):
    content = bytearray(zipped(true_csv="1,2"))
    for head, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        content[content.index(head) + flags] |= 1
    (tmp_path / "a.zip").write_bytes(content)
    assert files.handed_in(tmp_path)[:2] == ([], ["a.zip/true.csv has a password and was left behind"])


def test_an_archive_that_the_assignment_gives_out_is_never_opened(tmp_path, releases, solved):
    """nbgrader lays the file itself, and removes what stands in its place: a folder it cannot."""
    given = {"data.zip": {"train.csv": b"1,2"}}
    laid(tmp_path / "plain", given | {"hw.ipynb": ..., "my-data.zip": {"a.csv": b"1"}}, solved.encode())
    laid(tmp_path / "packed", {"hw.zip": {"hw.ipynb": ..., "data.zip": given["data.zip"]}}, solved.encode())
    for folder, own in (("plain", ["my-data.zip/a.csv"]), ("packed", [])):
        found = normalise(tmp_path / folder, releases, helpers={"data.zip", "hw.ipynb"})
        assert sorted(map(str, found.data)) == ["data.zip", *own]
        assert zipfile.ZipFile(io.BytesIO(found.data[PurePosixPath("data.zip")])).namelist() == ["train.csv"]
    assert list(map(str, normalise(tmp_path / "packed", releases).data)) == ["data.zip/train.csv"]


def test_nothing_of_a_student_stands_where_a_file_or_folder_of_the_assignment_belongs(tmp_path, releases, solved):
    name, way = f"{ASSIGNMENT}.ipynb", "left behind, as a file of the assignment would have no place: "
    laid(tmp_path, {"hw.ipynb": ..., name: {"a.csv": b"1"}, "data.zip/b.csv": b"2", "c.txt": b"3"}, solved.encode())
    found = normalise(tmp_path, releases, helpers={"data.zip", "c.txt/given.csv", "true.csv"})
    assert found.data == {} and f"{way}c.txt, {name}/a.csv, data.zip/b.csv" in found.notes
    assert write(found, tmp_path / "out") == [] and [each.name for each in (tmp_path / "out").iterdir()] == [name]


@pytest.mark.parametrize("name", [
    "a.keras", "a.xlsx", "a.npz", "a.pt", "a.docx", "a.jar", "a.zip", "A.ZIP", "a.zip.txt", "a", "a.ipynb",
])  # fmt: skip
def test_an_archive_is_opened_where_it_is_called_one(tmp_path, name):
    laid(tmp_path, {name: {"config.json": b"{}"}})
    opened = "zip" in name.lower() or name in ("a", "a.ipynb")
    assert [str(each.path) for each in files.handed_in(tmp_path)[0]] == [f"{name}/config.json" if opened else name]


TENSORS = {"checkpoint.pt": {f"model/data/{number}": b"x" for number in range(600)}}
LIBRARIES = {f"library/of/files/{number}.txt": b"x" for number in range(600)}


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "archive"])
@pytest.mark.parametrize(("members", "doubted"), [
    (TENSORS, False), (MODULES, False), ({f"given/{number}.png": b"x" for number in range(600)}, False),
    (LIBRARIES, True), ({"a.bin": bytes(200_000)}, False), ({"a.csv": bytes(200_000)}, True),
], ids=["a model", "modules", "what is given", "what lies deeper", "a large file", "large data"])  # fmt: skip
def test_what_cannot_go_along_takes_no_room_of_data(tmp_path, releases, solved, monkeypatch, members, doubted, packed):
    monkeypatch.setattr(files, "LARGEST", len(solved.encode()) + 100_000)
    laid(tmp_path / "in", members | {"hw.ipynb": ..., "work.csv": b"1,2"}, solved.encode())
    if packed:
        shutil.make_archive(tmp_path / "hw", "zip", tmp_path / "in")
        shutil.rmtree(tmp_path / "in")
    found = normalise(tmp_path, releases, helpers={f"given/{number}.png" for number in range(600)})
    assert found.data[PurePosixPath("work.csv")] == b"1,2" and bool(found.doubts) == doubted


def test_who_lost_data_by_a_limit_is_a_doubt(tmp_path, releases, solved):
    laid(tmp_path, PICTURES | {"hw.ipynb": ...}, solved.encode())
    (doubt,) = normalise(tmp_path, releases).doubts
    assert doubt == (
        "'data/548.png' had no room, nor had 100 more, as a work may have 500 files and 256 MiB: remove from it what "
        "its notebook does not need; if that needs none of what had no room, let the marks stand"
    )
    assert normalise(tmp_path, releases, helpers=PICTURES).doubts == []  # the assignment lays them itself


def test_archives_in_too_many_are_a_doubt(tmp_path, releases, solved):
    inner = {"a.csv": b"1"}
    for _ in range(5):
        inner = {"b.zip": inner}
    laid(tmp_path, inner | {"hw.ipynb": ...}, solved.encode())
    found = normalise(tmp_path, releases)
    deep = "b.zip/b.zip/b.zip/b.zip/b.zip"
    assert found.doubts[0].startswith(f"'{deep}' had no room, as ") and f"{deep} {files.UNOPENED}" in found.notes
    (tmp_path / "hw.ipynb").unlink()
    with pytest.raises(Unreadable, match=f"^there is no file; {deep} is an archive inside too many"):
        normalise(tmp_path, releases)


def test_a_small_archive_is_opened_before_a_large_one(tmp_path, releases, solved, monkeypatch):
    laid(tmp_path, {"a.zip": {"a.npy": os.urandom(1000)}, "b.zip": {"hw.ipynb": ...}}, solved.encode())
    small, large = tmp_path / "b.zip", tmp_path / "a.zip"
    large.write_bytes(zipped(a_npy=os.urandom(small.stat().st_size)))
    monkeypatch.setattr(files, "LARGEST", large.stat().st_size + 100)
    found = normalise(tmp_path, releases)
    assert list(found.notebooks) == [ASSIGNMENT] and found.doubts[0].startswith("'a.zip' had no room, as ")


@pytest.mark.parametrize(("names", "lost"), [
    (["\u0434" * 130 + ".csv"], "\u0434" * 80), (["a.csv", "a.csv/b.csv"], "a.csv/b.csv"),
], ids=["too long", "a file as a folder"])  # fmt: skip
def test_a_file_whose_name_the_disk_cannot_take_costs_no_other_file(tmp_path, releases, solved, names, lost):
    laid(
        tmp_path / "in", {"hw.zip": {"hw.ipynb": ..., **dict.fromkeys(names, b"1"), "true.csv": b"2"}}, solved.encode()
    )
    (doubt,) = normalise_into(tmp_path / "in", releases, set(), tmp_path / "out").doubts
    assert doubt.startswith(f"{lost!r} was left behind, as its name cannot be written here (")
    assert doubt.endswith("give it another name in both; if not, let the marks stand")
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {f"{ASSIGNMENT}.ipynb", "true.csv", *names[:-1]}


def test_a_file_below_too_many_folders_costs_no_other_file(tmp_path, releases, solved):
    """A call of Python's that makes all of them, or removes them afterwards, goes one deeper for each."""
    for number, written in ((files.PARTS - 2, True), (files.PARTS - 1, False), (1200, False)):  # below that of hw.zip
        folder, place = tmp_path / str(number), "a/" * number + "x.csv"
        laid(folder, {"hw.zip": {"hw.ipynb": ..., "true.csv": b"2"}}, solved.encode())
        laid(folder, {"more.zip": {place: b"1"}})
        doubts = normalise_into(folder, releases, set(), tmp_path / "out").doubts
        assert ["cannot be written here (it lies in more than 49 folders)" in why for why in doubts] == [True][written:]
        assert (tmp_path / "out" / "true.csv").exists()
        assert (tmp_path / "out" / "more.zip" / place).is_file() == written


def test_what_is_called_like_what_systems_leave_but_for_its_case_is_left_in_silence(tmp_path):
    """On some disks a student's Timestamp.txt stands in the place of the course's."""
    names = {"Timestamp.TXT": b"x", "a/DESKTOP.ini": b"x", "__macosx/a.csv": b"x"}
    laid(tmp_path, names | {"a.zip": names})
    assert files.handed_in(tmp_path) == ([], [], [])


def test_a_full_disk_is_no_name(tmp_path, releases, solved, monkeypatch):
    laid(tmp_path / "in", {"hw.ipynb": ..., "true.csv": b"2"}, solved.encode())

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        normalise_into(tmp_path / "in", releases, set(), tmp_path / "out")


def test_who_has_no_notebook_among_too_many_files_hears_that_some_were_left_behind(tmp_path, releases):
    laid(tmp_path, PICTURES)
    with pytest.raises(Unreadable, match=f"^there is no notebook, but data/0.png, .*; {TOO_MANY}$"):
        normalise(tmp_path, releases)
    (tmp_path / "hw.ipynb").write_bytes(b"%PDF-1.7 ...")
    with pytest.raises(Unreadable, match=f"^hw.ipynb: .*a PDF.*; {TOO_MANY}$"):
        normalise(tmp_path, releases)


STAMP, UNKNOWN = b"2026-11-03 17:00:00 UTC", "its time stamp cannot be read, so nobody knows whether it is late"


@pytest.mark.parametrize(("make", "time", "notes"), [
    (lambda path: path.write_bytes(STAMP), datetime(2026, 11, 3, 17), []),
    (lambda path: path.write_bytes(codecs.BOM_UTF8 + STAMP), datetime(2026, 11, 3, 17), []),
    (lambda path: None, None, []), (lambda path: path.write_bytes(b"\xff"), None, [UNKNOWN]),
    (os.mkfifo, None, [UNKNOWN]), (lambda path: path.mkdir(), None, [UNKNOWN]),
    (lambda path: path.symlink_to(path.with_name("other.txt")), None, [UNKNOWN]),
    (lambda path: path.write_bytes(STAMP + b" " * 100 + b"more"), datetime(2026, 11, 3, 17), []),
], ids=["a time", "with a mark", "none", "no text", "a pipe", "a folder", "a link", "no end"])  # fmt: skip
def test_a_time_stamp_is_read_with_care(tmp_path, make, time, notes):
    (tmp_path / "other.txt").write_bytes(STAMP)
    make(tmp_path / "timestamp.txt")
    said = []
    assert handed_in_at(tmp_path, said) == time and said == notes


def saved(**arrays):
    data = io.BytesIO()
    np.savez(data, **arrays)
    return data.getvalue()


PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4


def longer():
    """An archive that lists a module behind the end that `zipfile` sees; Python's import reads on."""
    module, text = zipped(lib_py="x = 1"), zipped(a_txt="1")
    cut, end = module.index(b"PK\1\2"), text.index(b"PK\1\2")
    data, listed, table = module[:cut] + text[:end], module[cut:-22] + bytes(46), bytearray(text[end:-22])
    table[32:34] = (22).to_bytes(2, "little")  # a comment, as long as the end that stands there
    head = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(table), len(data), len(listed))
    return data + bytes(table) + head + listed


LONGER = longer()
WINDOWS = b"MZ" + bytes(58) + (64).to_bytes(4, "little") + b"PE\0\0"
COMPILED = importlib._bootstrap_external._code_to_timestamp_pyc(compile("x = 1", "x", "exec"))


@pytest.mark.parametrize(("content", "known"), [
    (zipped(lib_py="x = 1"), True), (zipped(lib__core_PYC=b""), True), (zipped(PICTURE, lib_py="x = 1"), True),
    (LONGER, True), (COMPILED, True), (b"\x7fELF\2\1", True),
    (b"\xcf\xfa\xed\xfe", True), (WINDOWS, True),
    (saved(a=np.ones(2)), False), (zipped(a_csv="1,2"), False), (zipped(), False), (PICTURE, False), (b"", False),
    (b"MZ,PE\n1,2\n" * 20, False), (b"import torch", False), (b"x\r\r\n1\r\r\n2\r\r\n", False),
], ids=[
    "an archive", "a compiled module in one", "behind a picture", "a longer list", "compiled", "of Linux", "of macOS",
    "of Windows", "arrays", "an archive of data", "an empty one", "a picture", "nothing", "a table", "a text", "lines",
])  # fmt: skip
def test_a_file_from_which_python_could_import_is_known_by_what_is_in_it(content, known):
    assert is_program(content) == known


def test_what_zipfile_does_not_list_can_be_imported(tmp_path):
    (tmp_path / "longer.txt").write_bytes(LONGER)
    assert zipfile.ZipFile(tmp_path / "longer.txt").namelist() == ["a.txt"]
    assert zipimport.zipimporter(str(tmp_path / "longer.txt")).find_spec("lib") is not None


def test_a_library_called_data_stays_behind_and_who_needs_it_is_a_doubt(tmp_path, releases, solved):
    notebook, path = json.loads(solved), tmp_path / f"{ASSIGNMENT}.ipynb"
    archive = zipped(hidden__attention_py="def softmax(x): ...")
    for name in ("measurements.txt", "given.csv", "other.png"):
        (tmp_path / name).write_bytes(archive)
    (tmp_path / "true.csv").write_text("1,2")
    path.write_text(json.dumps(notebook), encoding="utf-8")
    found = normalise(tmp_path, releases, helpers={"given.csv"})
    assert {str(each) for each in found.data} == {"given.csv", "true.csv"} and found.doubts == []
    assert "left behind, as Python could import from it: measurements.txt, other.png" in found.notes
    (tmp_path / "other.png").unlink()
    code = "import sys\nsys.path.insert(0, 'measurements.txt')\nfrom hidden.attention import softmax"
    handed_in.cell(notebook, "softmax")["source"] = code
    path.write_text(json.dumps(notebook), encoding="utf-8")
    (doubt,) = normalise(tmp_path, releases, helpers={"given.csv"}).doubts
    assert "imports 'measurements.txt', which was left behind" in doubt


def test_data_beside_the_notebook_come_before_those_above(tmp_path, releases, solved):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / f"{ASSIGNMENT}.ipynb").write_text(solved, encoding="utf-8")
    for name in ("a.csv", "work/a.csv"):
        (tmp_path / name).write_text(name)
    found = normalise(tmp_path, releases)
    assert found.data == {PurePosixPath("a.csv"): b"work/a.csv"} and "'a.csv' was handed in twice" in found.notes[-1]


def test_a_new_secret_makes_no_new_work(tmp_path, releases, solved):
    (tmp_path / f"{ASSIGNMENT}.ipynb").write_text(solved, encoding="utf-8")
    works = set()
    for secret in ("a", "b"):
        (tmp_path / "submission_secret.txt").write_text(secret)
        found = normalise(tmp_path, releases)
        works.add(found.work)
        assert found.data == {PurePosixPath("submission_secret.txt"): secret.encode()}  # feedback is fetched with it
    assert len(works) == 1


def test_who_handed_in_no_notebook_hears_nothing_of_the_file_that_is_nbgraders(tmp_path, releases):
    (tmp_path / "submission_secret.txt").write_text("a")
    with pytest.raises(Unreadable, match="^there is no file$"):
        normalise(tmp_path, releases)
    (tmp_path / "hw.zip").write_bytes(b"PK\x03\x04 damaged")
    with pytest.raises(
        Unreadable, match="^there is no file that can be read: hw.zip is an archive that cannot be opened"
    ):
        normalise(tmp_path, releases)
    (tmp_path / "hw.docx").write_bytes(b"PK\x03\x04")
    with pytest.raises(Unreadable, match="^there is no notebook, but hw.docx$"):
        normalise(tmp_path, releases)


SHOWN, CALLED, HIDDEN = "what-check-softmax", "check-softmax", "test-softmax"  # all that students get of the tests


def edited(name, edit):
    """A change of one cell's text."""

    def change(notebook):
        cell = handed_in.cell(notebook, name)
        cell["source"] = edit("".join(cell["source"]))

    return change


def marked(name, **marks):
    """A change of what nbgrader knows of a cell."""
    return lambda notebook: handed_in.cell(notebook, name)["metadata"]["nbgrader"].update(marks)


def nameless(notebook):
    edited(SHOWN, lambda text: text.replace("1 / 8", "9"))(notebook)
    handed_in.cell(notebook, SHOWN)["metadata"].clear()


def split(named):
    """A change that cuts a cell in two; whether the second has the name of the first."""

    def change(notebook):
        whole = handed_in.cell(notebook, "setup")
        second = copy.deepcopy(whole)
        first, rest = "".join(whole["source"]).split("\n\n", 1)
        whole["source"], second["source"] = first, rest
        second["metadata"] = second["metadata"] if named else {}
        notebook["cells"].insert(notebook["cells"].index(whole) + 1, second)

    return change


def of_another_release(notebook):
    """As it is for everybody who has fetched the assignment before a test of it was mended."""
    for name, edit in ((SHOWN, lambda text: text.replace("1 / 8", "9")), (HIDDEN, lambda text: text)):
        edited(name, edit)(notebook)
    marked(HIDDEN, points=3)(notebook)
    for name in (SHOWN, HIDDEN):
        marked(name, checksum="0" * 32)(notebook)
    marked("explain", points=7, checksum="0" * 32)(notebook)


def changes(notebook, release):
    """What is said of it, beside what is repaired."""
    _, notes = rebuilt(read_notebook(json.dumps(notebook).encode())[0], release)
    return [note for note in notes if note.startswith(CHANGES)], notes


@pytest.mark.parametrize(("change", "said"), [
    (edited(SHOWN, lambda text: text.replace("1 / 8", "9")), f"{READ_ONLY}: '{SHOWN}'"),
    (nameless, f"{READ_ONLY}: '{SHOWN}'"),
    (edited("setup", lambda text: text.replace('    "scipy",\n', "")), f"{READ_ONLY}: 'setup'"),
    (edited("setup", lambda text: text.replace("close_modules(", "close_modules(*[], ")), f"{READ_ONLY}: 'setup'"),
    (edited(CALLED, lambda text: text.replace("check_softmax()", "")), f"{TEST}: '{CALLED}'"),
    (edited(CALLED, lambda text: text.replace("check_softmax()", "check_softmax(")), f"{TEST}: '{CALLED}'"),
    (edited(HIDDEN, lambda text: text + "\n4.0"), f"{TEST}: '{HIDDEN}'"),
    (edited(HIDDEN, lambda text: "def hidden_tests():\n    return 4.0\n\nhidden_tests()"), f"{TEST}: '{HIDDEN}'"),
    (marked(HIDDEN, points=999), f"{POINTS}: '{HIDDEN}'"),
    (marked("explain", points=0.5), f"{POINTS}: 'explain'"),
    (marked(HIDDEN, locked=False), f"{UNLOCKED}: '{HIDDEN}'"),
    (marked(CALLED, grade=False), f"{KIND}: '{CALLED}'"),
    (marked(CALLED, solution=True), f"{KIND}: '{CALLED}'"),
    (marked("setup", points=4), f"{POINTS}: 'setup'"),
    (marked(HIDDEN, points=10**400), f"{POINTS}: '{HIDDEN}'"),
    (edited(CALLED, lambda text: f"check_softmax = print\n{text}"), f"{TEST}: '{CALLED}'"),
    (edited(CALLED, lambda text: f"from builtins import print as check_softmax\n{text}"), f"{TEST}: '{CALLED}'"),
    (edited(CALLED, lambda text: f"np.allclose = print\n{text}"), f"{TEST}: '{CALLED}'"),
    (edited(CALLED, lambda text: f"np.testing.assert_allclose = print\n{text}"), f"{TEST}: '{CALLED}'"),
    (edited(CALLED, lambda text: f"del np\n{text}"), f"{TEST}: '{CALLED}'"),
    (edited(CALLED, lambda text: f"if False:\n    {text.splitlines()[-1]}"), f"{TEST}: '{CALLED}'"),
    (edited(CALLED, lambda text: f"%%script false\n{text}"), f"{TEST}: '{CALLED}'"),
    (edited("setup", lambda text: f"{text}\n\nnp = None"), f"{READ_ONLY}: 'setup'"),
])  # fmt: skip
def test_what_only_the_course_writes_and_was_changed_is_said(releases, solved, change, said):
    notebook = json.loads(solved)
    change(notebook)
    assert changes(notebook, releases[ASSIGNMENT])[0] == [said]


ACCIDENTS = {
    "blanks at the ends": edited(SHOWN, lambda text: text.replace("\n", "  \r\n") + "\n\n"),
    "comments": edited(CALLED, lambda text: f"# It passes!\n{text}  # at last"),
    "a program that lays code out": edited(SHOWN, lambda text: ast.unparse(ast.parse(text))),
    "a docstring with tabs": edited(SHOWN, lambda text: text.replace("    ", "\t")),
    "two cells of one": split(True),
    "two cells of one, the second nameless": split(False),
    "a cell twice": lambda notebook: notebook["cells"].append(copy.deepcopy(handed_in.cell(notebook, CALLED))),
    "letters of HTML": edited(SHOWN, html.escape),
    "quotes of a text": edited(SHOWN, lambda text: text.replace('"', "\u201c")),
    "a letter that nobody sees": edited(CALLED, lambda text: "\u200b" + text),
    "a letter that nothing can show": edited(SHOWN, lambda text: text.replace("softmax: large", "softmax:\ufffdlarge")),
    "another type": lambda notebook: handed_in.cell(notebook, CALLED).update(cell_type="raw"),
    "new ids and counts": lambda notebook: [cell.update(id=f"n{n}") for n, cell in enumerate(notebook["cells"])],
    "no points": lambda notebook: handed_in.cell(notebook, HIDDEN)["metadata"]["nbgrader"].pop("points"),
    "points that are none": marked(HIDDEN, points=None, locked="no", grade=1),
    "an import moved, beside an answer that is nested deeply": lambda notebook: [
        edited("softmax", lambda text: f"{text}\n\nx = 1{'+1' * 1500}")(notebook),
        edited("setup", lambda text: text.replace("import numpy as np\n", ""))(notebook),
        edited("attention", lambda text: f"import numpy as np\n{text}")(notebook),
    ],
    "code in a test": edited(CALLED, lambda text: f"mine = softmax(np.zeros(3))\n{text}"),
    "words in a test": edited(CALLED, lambda text: f"it works for me\n{text}"),
    "another release": of_another_release,
    "a look at what a function returns": edited(CALLED, lambda text: f"x = softmax(np.ones(3))\nprint(x)\n{text}"),
    "a look after the test": edited(CALLED, lambda text: f"{text}\nprint([np.sum(x) for x in softmax(np.eye(3))])"),
    "a look in an empty test": edited(HIDDEN, lambda text: f"{text}\nsoftmax(np.zeros((1, 3)))[0]"),
    "a number for a name of one's own": edited(HIDDEN, lambda text: f"{text}\nx = 4.0"),
    "a figure": edited(SHOWN, lambda text: f"import matplotlib.pyplot as plt\n{text}\nplt.plot([1])\nplt.show()"),
    "settings of a package": edited(SHOWN, lambda text: f"np.x.y['z'] = 3\nnp.x['y'].z = 3\nnp.x.y = True\n{text}"),
    "the time that a test takes": edited(CALLED, lambda text: f"%%time\n{text}"),
    "the time of a cell that was laid out": edited(SHOWN, lambda t: f"\n%%timeit -n 1\n{ast.unparse(ast.parse(t))}"),
    "a line of magic": edited(SHOWN, lambda text: f"%matplotlib inline\n{text}\n!pip list"),
    "imports sorted, several in a line": edited(
        "setup", lambda text: "import os, numpy as np\n" + text.replace("import numpy as np\n", "")
    ),
    "an import that another cell has": edited(CALLED, lambda text: f"import numpy as np\n{text}"),
    "a test deleted": lambda notebook: notebook["cells"].remove(handed_in.cell(notebook, CALLED)),
}


@pytest.mark.parametrize("change", ACCIDENTS.values(), ids=list(ACCIDENTS))
def test_an_accident_is_no_change(releases, solved, change):
    notebook = json.loads(solved)
    change(notebook)
    assert changes(notebook, releases[ASSIGNMENT])[0] == []


def test_a_cell_of_another_release_is_said_to_be_one(releases, solved):
    notebook = json.loads(solved)
    of_another_release(notebook)
    _, notes = changes(notebook, releases[ASSIGNMENT])
    assert f"{EARLIER}: '{SHOWN}, {HIDDEN}, explain'" in notes
    edited(SHOWN, lambda text: ast.unparse(ast.parse(text)) + "\n ")(notebook)  # and a program laid it out
    said, notes = changes(notebook, releases[ASSIGNMENT])
    assert said == [] and f"{EARLIER}: '{SHOWN}, {HIDDEN}, explain'" in notes


@pytest.mark.parametrize(("ends", "takes"), [
    ("score.result()\nplt.show()", True), ("score.result()\n5", True), ("print(1)\nscore.result()", False),
    ("plt.show()\nscore.result()", False), ("score.result()", False),
])  # fmt: skip
def test_what_follows_a_score_takes_its_place(ends, takes):
    """nbgrader reads the last value of a cell, and takes one that has none for right."""
    metadata = {"nbgrader": {"grade_id": "test", "points": 2}}
    for points in (2.0, 0.0):
        shown = "assert True\nscore.result()"
        known = Released("test", "code", shown, "", True, False, points, shown=shown)
        release = Release([known], [], {"test": {"points": points}})
        metadata["nbgrader"]["points"] = points
        cell = new_code_cell(f"assert True\n{ends}", metadata=metadata)
        assert changed.changes([cell], release) == ([f"{TEST}: 'test'"] if takes and points else [])


@pytest.mark.parametrize(("added", "said"), [("x = 2", []), ("check = print", [f"{TEST}: 'b'"])])
def test_a_variable_of_another_cell_is_anybodys_and_a_function_is_not(added, said):
    sources = {"a": "x = 1\ndef check():\n    assert x", "b": "check()"}
    known = [Released(name, "code", text, "", True, False, 0.0, shown=text) for name, text in sources.items()]
    marks = {name: {"grade_id": name} for name in sources}
    cells = [new_code_cell(text, metadata={"nbgrader": marks[name]}) for name, text in sources.items()]
    cells[1].source = f"{added}\n{sources['b']}"
    assert changed.changes(cells, Release(known, [], marks)) == said


@pytest.mark.parametrize("shown", [
    "assert f( 1 ) == 2, 'don’t forget the scale'", 'assert f( 1 ) == 2, "Use “softmax” here"',
    "m = a &notb\nassert m", "assert (a &lt).all( )", "assert f( 1 ) == '&#8217;'",
])  # fmt: skip
def test_a_program_that_lays_code_out_changes_nothing_of_what_looks_like_damage(shown):
    """By Python's way with quotes, by another one's, and by a break of the line."""
    known = Released("t", "code", shown, "", True, False, 2.0, shown=shown)
    release = Release([known], [], {"t": {"points": 2.0}})
    laid_out = ast.unparse(ast.parse(shown))
    other = re.sub("'([^'\"]*)'(?=$)", r'"\1"', laid_out)
    said = {}
    for text in (laid_out, other, shown.replace("==", "\\\n==", 1), html.escape(laid_out)):
        cell = new_code_cell(text, metadata={"nbgrader": {"grade_id": "t", "points": 2.0}})
        said[text] = changed.changes([cell], release)
    assert not any(said.values()), said
    cell.source = shown.replace("f(", "g(").replace("a", "b")
    assert changed.changes([cell], release) == [f"{TEST}: 't'"]


def test_nobody_is_compared_with_a_release_that_cannot_be_read(generated, releases, solved):
    with generated.gradebook() as gradebook:
        release = release_of(gradebook, ASSIGNMENT, ASSIGNMENT, None)
    notebook = json.loads(solved)
    marked(HIDDEN, points=999)(notebook)
    assert changes(notebook, release)[0] == []


def test_of_all_that_is_unlucky_little_is_a_change(tmp_path, releases, solved):
    found = {}
    for name, kind in KINDS.items():
        if not kind.why:
            folder = tmp_path / str(len(found))
            folder.mkdir()
            kind.write(folder, json.loads(solved))
            found[name] = [note for note in normalise(folder, releases).notes if note.startswith(CHANGES)]
    assert {name: said for name, said in found.items() if said} == {
        "two flags on an answer": [f"{KIND}: 'softmax'"],
        "no flag on a test": [f"{KIND}: 'test-softmax'"],
        "a test that says it is a solution": [f"{UNLOCKED}: 'test-softmax'", f"{KIND}: 'test-softmax'"],
        "an answer instead of its test": [f"{TEST}: 'check-softmax'"],
    }
