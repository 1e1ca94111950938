"""Malformed and unlucky submissions: what a student's folder holds, and the mark or the name that it should get.

A kind writes into a folder, given the solved notebook as JSON. It should earn everything (`loses` empty), lose points
of the cells named in `loses`, or be named: `why` is then a part of the sentence. `notes` is a part of what is said.
"""

import copy
import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import nbformat

NAME = "attention-from-scratch.ipynb"


class Kind(NamedTuple):
    """One way to hand in."""

    name: str
    write: Callable[[Path, dict], None]
    loses: dict[str, float] = {}
    why: str = ""
    notes: str = ""


KINDS: list[Kind] = []
STUBS: dict[str, str] = {}  # the released answers, by name; the tests put them in


def kind(name: str, notes: str = "", why: str = "", **loses: float):
    """Add a function that writes into a folder, or that changes the notebook's JSON and returns it."""

    def add(write):
        KINDS.append(Kind(name, write, {cell.replace("_", "-"): of for cell, of in loses.items()}, why, notes))
        return write

    return add


def text(notebook: dict) -> str:
    return json.dumps(notebook, ensure_ascii=False, indent=1)


def cell(notebook: dict, name: str) -> dict:
    return next(c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == name)


def place(notebook: dict, name: str) -> int:
    return notebook["cells"].index(cell(notebook, name))


def whole(change: Callable[[dict], object]) -> Callable[[Path, dict], None]:
    """A kind that changes the JSON alone."""

    def write(folder: Path, notebook: dict) -> None:
        change(notebook)
        (folder / NAME).write_text(text(notebook), encoding="utf-8")

    return write


def called(name: str) -> Callable[[Path, dict], None]:
    """A kind that is handed in under another name."""

    def write(folder: Path, notebook: dict) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(notebook), encoding="utf-8")

    return write


def written(make: Callable[[dict], bytes]) -> Callable[[Path, dict], None]:
    """A kind whose bytes are special."""
    return lambda folder, notebook: (folder / NAME).write_bytes(make(notebook)) and None


def packed(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


# Names and places.
for other in (
    "Attention-From-Scratch.IPYNB", "attention-from-scratch (1).ipynb", "attention from scratch copy.ipynb",
    "homework_final_v2.ipynb", "attention-from-scratch.ipynb.txt", "attention-from-scratch.ipynb.json",
    "müller_12345_67890_attention-from-scratch-1.ipynb", "Anna Smith_4711_assignsubmission_file_hw.ipynb",
    "work/week 3/attention-from-scratch.ipynb", "attention-from-scratch.txt",
):  # fmt: skip
    kind(f"called {other}", notes="was called" if "work/" not in other else "")(called(other))


@kind("an archive")
def _(folder, notebook):
    (folder / "hw.zip").write_bytes(packed({"hw/" + NAME: text(notebook).encode(), "__MACOSX/._x": b"x"}))


@kind("an archive inside an archive")
def _(folder, notebook):
    (folder / "hw.zip").write_bytes(packed({"a/inner.zip": packed({NAME: text(notebook).encode()})}))


@kind("an archive with a name that leads out of it")
def _(folder, notebook):
    (folder / "hw.zip").write_bytes(packed({"../../../" + NAME: text(notebook).encode()}))


@kind("the release beside the answer", notes="was not graded")
def _(folder, notebook):
    (folder / "attention-from-scratch (1).ipynb").write_text(text(notebook), encoding="utf-8")
    for each in notebook["cells"]:
        name = each["metadata"].get("nbgrader", {}).get("grade_id")
        each["source"] = STUBS.get(name, each["source"])
    (folder / NAME).write_text(text(notebook), encoding="utf-8")


# Encodings and formats.
kind("a byte-order mark", notes="encoding was utf-8-sig")(written(lambda nb: text(nb).encode("utf-8-sig")))
kind("UTF-16", notes="encoding was utf-16")(written(lambda nb: text(nb).encode("utf-16")))
kind("UTF-16 without a mark", notes="encoding was utf-16-be")(written(lambda nb: text(nb).encode("utf-16-be")))
kind("Latin-1", notes="encoding was latin-1")(
    written(lambda nb: text(nb).encode("ascii", "xmlcharrefreplace").replace(b"# Attention", b"# Attenti\xf6n"))
)
kind("Windows' line ends in the file")(written(lambda nb: text(nb).replace("\n", "\r\n").encode()))
kind("zeros at the end")(written(lambda nb: text(nb).encode() + b"\0" * 512))
kind("no number of the format", notes="format was missing")(whole(lambda nb: nb.pop("nbformat")))
kind("the number 5", notes="format was 5")(whole(lambda nb: nb.update(nbformat=5, nbformat_minor=0)))
kind("the number 3 on cells of 4", notes="format was 3")(whole(lambda nb: nb.update(nbformat=3)))
kind("format 4.0")(whole(lambda nb: nb.update(nbformat_minor=0)))
kind("a format of text", notes="format was")(whole(lambda nb: nb.update(nbformat="4")))
kind("no metadata")(whole(lambda nb: nb.pop("metadata")))


@kind("a real format 3", notes="older than 4")
def _(folder, notebook):
    old = nbformat.convert(nbformat.reads(text(notebook), as_version=4), 3)
    (folder / NAME).write_text(nbformat.writes(old, version=3), encoding="utf-8")


# Cells.
@kind("Windows' line ends in the sources")
@whole
def _(notebook):
    for each in notebook["cells"]:
        each["source"] = "".join(each["source"]).replace("\n", "\r\n")


@kind("sources as lists of lines")
@whole
def _(notebook):
    for each in notebook["cells"]:
        each["source"] = "".join(each["source"]).splitlines(keepends=True)


kind("a source that is a number")(whole(lambda nb: nb["cells"][0].update(source=7)))
kind("a source that is null")(whole(lambda nb: nb["cells"][1].update(source=None)))
kind("half a surrogate pair")(
    written(lambda nb: text(nb).replace("# Attention", "# \\ud83d Attention").encode())
)
kind("a cell of an unknown type", notes="unknown type")(
    whole(lambda nb: nb["cells"].insert(2, {"cell_type": "slide", "metadata": {}, "source": "x"}))
)
kind("an answer of an unknown type")(whole(lambda nb: cell(nb, "attention").update(cell_type="python")))
kind("an answer that became text")(whole(lambda nb: cell(nb, "attention").update(cell_type="markdown")))
kind("a cell that is none", notes="was no cell")(whole(lambda nb: nb["cells"].insert(3, "x = 1")))
kind("two cells with one id")(whole(lambda nb: [c.update(id="same") for c in nb["cells"]]))
kind("huge outputs")(
    whole(lambda nb: nb["cells"][3].update(outputs=[{"output_type": "stream", "name": "stdout", "text": "x" * 10**6}]))
)
kind("outputs that are none")(whole(lambda nb: nb["cells"][3].update(outputs="broken", execution_count="7")))
kind("another kernel")(whole(lambda nb: nb["metadata"].update(kernelspec={"name": "julia-1.9", "display_name": "J"})))

# Metadata of nbgrader.
for shown, value in (("a list", []), ("null", None), ("a text", "x"), ("an empty dict", {})):
    kind(f"the metadata of an answer are {shown}", notes="attention were lost")(
        whole(lambda nb, value=value: cell(nb, "attention")["metadata"].update(nbgrader=value))
    )
for version in (0, 1, 99, "three"):
    kind(f"schema {version}")(
        whole(lambda nb, v=version: cell(nb, "softmax")["metadata"]["nbgrader"].update(schema_version=v))
    )
kind("two flags on an answer")(whole(lambda nb: cell(nb, "softmax")["metadata"]["nbgrader"].update(grade=True)))
kind("no flag on a test")(whole(lambda nb: cell(nb, "test-softmax")["metadata"]["nbgrader"].update(grade=False)))
kind("a test that says it is a solution")(
    whole(lambda nb: cell(nb, "test-softmax")["metadata"]["nbgrader"].update(solution=True, locked=False))
)
kind("an answer with another grade id", notes="softmax were lost")(
    whole(lambda nb: cell(nb, "softmax")["metadata"]["nbgrader"].update(grade_id="softmax2"))
)
kind("a grade id that is a number", notes="softmax were lost")(
    whole(lambda nb: cell(nb, "softmax")["metadata"]["nbgrader"].update(grade_id=7))
)
kind("no metadata in any cell", notes="lost and restored")(
    whole(lambda nb: [c.update(metadata={}) for c in nb["cells"]])
)
kind("metadata of cells that are lists")(whole(lambda nb: [c.update(metadata=[]) for c in nb["cells"]]))


# Cells that wander.
@kind("an answer twice")
@whole
def _(notebook):
    notebook["cells"].insert(place(notebook, "attention") + 1, copy.deepcopy(cell(notebook, "attention")))


@kind("the empty stub copied below the answer")
@whole
def _(notebook):
    stub = copy.deepcopy(cell(notebook, "softmax"))
    stub["source"] = STUBS["softmax"]
    notebook["cells"].insert(place(notebook, "softmax") + 1, stub)


@kind("a broken first try above the answer")
@whole
def _(notebook):
    tried = copy.deepcopy(cell(notebook, "softmax"))
    tried["source"] = "def softmax(x:\n    return"
    notebook["cells"].insert(place(notebook, "softmax"), tried)


@kind("an answer split in two", notes="stood in 2 cells")
@whole
def _(notebook):
    answer = cell(notebook, "attention")
    lines = "".join(answer["source"]).splitlines(keepends=True)
    second = copy.deepcopy(answer)
    answer["source"], second["source"] = "".join(lines[:6]), "".join(lines[6:])
    notebook["cells"].insert(notebook["cells"].index(answer) + 1, second)


@kind("two answers merged into one cell", notes="inside another cell")
@whole
def _(notebook):
    first, second = cell(notebook, "padding-mask"), cell(notebook, "causal-mask")
    first["source"] = "".join(first["source"]) + "\n\n" + "".join(second["source"])
    notebook["cells"].remove(second)


@kind("the tests moved to the beginning", notes="another order")
@whole
def _(notebook):
    test = cell(notebook, "test-attention")
    notebook["cells"].remove(test)
    notebook["cells"].insert(0, test)


@kind("all cells in the opposite order", notes="another order")
@whole
def _(notebook):
    notebook["cells"].reverse()


@kind("a test deleted", notes="test-softmax missing and put back")
@whole
def _(notebook):
    notebook["cells"].remove(cell(notebook, "test-softmax"))


@kind("an answer deleted", notes="merge-heads was missing", test_merge_heads=2)
@whole
def _(notebook):
    notebook["cells"].remove(cell(notebook, "merge-heads"))


@kind("two answers in each other's cells", notes="the answer of softmax stood in the cell of attention")
@whole
def _(notebook):
    first, second = cell(notebook, "softmax"), cell(notebook, "attention")
    first["source"], second["source"] = second["source"], first["source"]


# What is written where nobody may write.
def into(notebook: dict, name: str, text: str, instead: bool = False) -> None:
    """Write into a cell of the course's; empty the answer, so that nothing else earns its points."""
    into = cell(notebook, name)
    into["source"] = text if instead else text + "\n\n" + "".join(into["source"])


def untouched(notebook: dict, name: str) -> str:
    """Give back the answer's cell as it was released; return the answer."""
    answer = "".join(cell(notebook, name)["source"])
    cell(notebook, name)["source"] = STUBS[name]
    return answer


def below(notebook: dict, name: str, source: str, kind: str = "markdown", above: bool = False) -> None:
    """Put a cell of the student's own below or above another."""
    new = {"cell_type": kind, "metadata": {}, "source": source, "id": "own"}
    new |= {"outputs": [], "execution_count": None} if kind == "code" else {}
    notebook["cells"].insert(place(notebook, name) + (not above), new)


@kind("an import in the locked cell", notes="written into setup has a cell of its own")
@whole
def _(notebook):
    answer = cell(notebook, "attention")
    answer["source"] = "assert mathematics.sqrt(4) == 2\n\n\n" + "".join(answer["source"])
    into(notebook, "setup", "import math as mathematics")


@kind("an answer in the locked cell", notes="written into setup")
@whole
def _(notebook):
    setup = cell(notebook, "setup")
    setup["source"] = "".join(setup["source"]) + "\n\n" + untouched(notebook, "softmax")


@kind("an answer in its test", notes="written into check-softmax")
@whole
def _(notebook):
    into(notebook, "check-softmax", untouched(notebook, "softmax"))


@kind("an answer merged with its test into one cell of the test", notes="written into test-softmax")
@whole
def _(notebook):
    into(notebook, "test-softmax", untouched(notebook, "softmax"))
    notebook["cells"].remove(cell(notebook, "softmax"))


@kind("an answer instead of its test", notes="written into check-softmax")
@whole
def _(notebook):
    into(notebook, "check-softmax", untouched(notebook, "softmax"), instead=True)


@kind("an answer in a copy of its test", notes="written into check-softmax")
@whole
def _(notebook):
    copied = copy.deepcopy(cell(notebook, "check-softmax"))
    copied["source"] = untouched(notebook, "softmax")
    notebook["cells"].insert(place(notebook, "check-softmax"), copied)


@kind("an answer above its untouched stub")
@whole
def _(notebook):
    below(notebook, "softmax", untouched(notebook, "softmax"), "code", above=True)


@kind("what an answer calls in its test", notes="written into test-softmax")
@whole
def _(notebook):
    answer = cell(notebook, "softmax")
    answer["source"] = "".join(answer["source"]).replace("np.exp(", "exponential(")
    into(notebook, "test-softmax", "def exponential(x):\n    return np.exp(x)")


@kind("a test that was edited")
@whole
def _(notebook):
    into(notebook, "test-softmax", "x = None\nprint(softmax)\nassert False")


@kind("an answer mended in a copy below by its indentation alone")
@whole
def _(notebook):
    answer = cell(notebook, "softmax")
    right = "".join(answer["source"])
    mended = copy.deepcopy(answer)
    answer["source"] = right.replace("    return", "    if x is None:\n        x = 1\n        return")
    mended["source"] = right.replace("    return", "    if x is None:\n        x = 1\n    return")
    notebook["cells"].insert(place(notebook, "softmax") + 1, mended)


@kind("an answer that came back to its first version")
@whole
def _(notebook):
    at, right = place(notebook, "softmax"), cell(notebook, "softmax")
    wrong = copy.deepcopy(right) | {"source": "def softmax(x):\n    return x"}
    notebook["cells"][at : at + 1] = [right, wrong, copy.deepcopy(right)]


@kind("a first version whose cell stops with an error")
@whole
def _(notebook):
    first = copy.deepcopy(cell(notebook, "softmax"))
    first["source"] = "def softmax(x):\n    return x\n\n\nsoftmax(undefined)"
    notebook["cells"].insert(place(notebook, "softmax"), first)


# A written answer beside its cell.
for shown, how in {
    "below": {}, "above": {"above": True}, "in a cell of code": {"kind": "code"}, "in a raw cell": {"kind": "raw"},
}.items():  # fmt: skip

    @kind(f"a written answer {shown}")
    @whole
    def _(notebook, how=how):
        below(notebook, "explain", untouched(notebook, "explain"), **how)


@kind("a written answer in its question", notes="written into a text of the assignment")
@whole
def _(notebook):
    question = notebook["cells"][place(notebook, "explain") - 1]
    question["source"] = "".join(question["source"]) + "\n\n" + untouched(notebook, "explain")


@kind("a written answer in the last test", notes="written into test-multi-head-attention")
@whole
def _(notebook):
    into(notebook, "test-multi-head-attention", untouched(notebook, "explain"))


@kind("scripts around the answers")  # test_marking_harmless.py has what they do to whoever marks: nothing
@whole
def _(notebook):
    for name in ("softmax", "explain"):
        below(notebook, name, "<script>top.acted = 1</script> <img src=x onerror='top.acted = 1'>")
    below(notebook, "attention", "from IPython.display import HTML\nHTML('<script>top.acted = 1</script>')", "code")


# What lies beside the notebook.
@kind("modules that hide the library's", notes="left behind, as no data: ")
def _(folder, notebook):
    called(NAME)(folder, notebook)
    (folder / "numpy.py").write_text("raise SystemExit")
    (folder / "course_lib").mkdir()
    (folder / "course_lib" / "__init__.py").write_text("raise SystemExit")
    (folder / "sitecustomize.py").write_text("raise SystemExit")


@kind("a library called data", notes="left behind, as Python could import from it: measurements.txt")
def _(folder, notebook):
    called(NAME)(folder, notebook)
    with zipfile.ZipFile(folder / "measurements.txt", "w") as archive:
        archive.writestr("library/__init__.py", "raise SystemExit")


@kind("a link beside it", notes="is a link")
def _(folder, notebook):
    called(NAME)(folder, notebook)
    (folder / "data.csv").symlink_to("/dev/zero")


@kind("a pipe beside it", notes="no plain file")
def _(folder, notebook):
    called(NAME)(folder, notebook)
    os.mkfifo(folder / "data.csv")


for shown, stamp in (("no time", b"yesterday"), ("bytes", b"\xff\xfe\x00"), ("year 0", b"0000-00-00 00:00 UTC")):

    @kind(f"a time stamp of {shown}", notes="time stamp cannot be read")
    def _(folder, notebook, stamp=stamp):
        called(NAME)(folder, notebook)
        (folder / "timestamp.txt").write_bytes(stamp)


# What cannot be graded has a name.
kind("empty", why="the file is empty")(written(lambda nb: b" \n"))
kind("cut off", why="cut off before its end")(written(lambda nb: text(nb).encode()[:9_000]))
kind("a list", why="no notebook")(written(lambda nb: json.dumps(nb["cells"]).encode()))
kind("cells that are a number", why="it has no cells")(whole(lambda nb: nb.update(cells=7)))
kind("no cell", why="has no cells")(whole(lambda nb: nb.update(cells=[])))
kind("nested without end", why="nested too deeply")(written(lambda nb: b"[" * 200_000))
kind("a web page", why="a web page")(written(lambda nb: b"<!DOCTYPE html><html><body>Sign in</body></html>"))
kind("an unfinished merge", why="a merge that was not finished")(
    written(lambda nb: text(nb).replace("  {\n", "<<<<<<< HEAD\n  {\n", 1).encode())
)
kind("a PDF called a notebook", why="a PDF")(written(lambda nb: b"%PDF-1.7 ..."))
kind("another notebook with one cell of this", why="1 of the 33 cells")(
    whole(lambda nb: nb.update(cells=[cell(nb, "setup"), {"cell_type": "code", "metadata": {}, "source": "a = 1"}]))
)
kind("another notebook with one answer of this", why="1 of the 33 cells")(
    whole(lambda nb: nb.update(cells=[cell(nb, "softmax"), {"cell_type": "code", "metadata": {}, "source": "a = 1"}]))
)
kind("another assignment's notebook", why="0 of the 33 cells")(
    whole(lambda nb: nb.update(cells=[{"cell_type": "code", "metadata": {}, "source": "week = 1", "outputs": []}]))
)
kind("no file", why="there is no file")(lambda folder, notebook: None)
kind("a picture of the answer", why="there is no notebook, but answer.png")(
    lambda folder, notebook: (folder / "answer.png").write_bytes(b"\x89PNG") and None
)
kind("the notebook a link", why="is a link and was left behind")(
    lambda folder, notebook: (folder / NAME).symlink_to("/etc/hostname")
)
kind("the notebook a link to zeros", why="is a link")(lambda folder, notebook: (folder / NAME).symlink_to("/dev/zero"))
kind("the notebook a pipe", why="no plain file")(lambda folder, notebook: os.mkfifo(folder / NAME))
kind("an archive that is damaged", why="archive")(
    lambda folder, notebook: (folder / "hw.zip").write_bytes(packed({NAME: text(notebook).encode()})[:2_000]) and None
)
