"""Bytes that should be a notebook, made one: encodings, old and new formats, and cells that are not quite cells."""

import json
import re

from course_lib._extras import needed

with needed("lab"):
    import nbformat
    from nbformat import NotebookNode
    from nbformat.corpus.words import generate_corpus_id
    from nbformat.v4 import new_notebook

OF_TYPE = {"code": {"execution_count": None, "outputs": []}, "markdown": {}, "raw": {}}
MOST_CELLS = 2_000
OTHER_KINDS = {b"%PDF": "a PDF", b"PK\x03\x04": "an archive", b"\x89PNG": "a picture", b"\xff\xd8\xff": "a picture"}


class Unreadable(ValueError):
    """What was handed in cannot be made a notebook; the message says why, for the instructor."""


def new_cell(kind: str, source: str, identity: str = "") -> NotebookNode:
    """As nbformat makes them, but for its validation: who makes a notebook of them validates that as a whole."""
    about = {"id": identity or generate_corpus_id(), "cell_type": kind, "metadata": {}, "source": source}
    return nbformat.from_dict(about | OF_TYPE[kind])


def read_notebook(content: bytes) -> tuple[NotebookNode, list[str]]:
    """The notebook in `content`, as nbformat 4 without outputs, and what had to be repaired.

    Parameters
    ----------
    content : the file, in any encoding of Unicode or in Latin-1, and in any version of nbformat

    Returns
    -------
    The notebook, whose cells have type, source, and the metadata of nbgrader as far as these are a dict; and one
    sentence for each repair.

    Raises
    ------
    Unreadable : it is empty, cut off, another kind of file, or no notebook.
    """
    notes: list[str] = []
    data = _json(_text(content, notes))
    if not isinstance(data, dict):
        raise Unreadable("the file is no notebook: it has no cells")
    cells = _cells(data, notes)
    if not cells:
        raise Unreadable("the notebook has no cells")
    return new_notebook(cells=cells), notes


def _text(content: bytes, notes: list[str]) -> str:
    if not content.strip(b" \t\r\n\0"):
        raise Unreadable("the file is empty")
    for beginning, kind in OTHER_KINDS.items():
        if content.startswith(beginning):
            raise Unreadable(f"the file is {kind} and no notebook")
    encoding = json.detect_encoding(content)  # knows byte-order marks, and UTF-16 and 32 without one
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        encoding = "latin-1"
        text = content.decode("cp1252", errors="replace")
    if encoding != "utf-8":
        notes.append(f"the file's encoding was {encoding}")
    text = text.strip("\ufeff\0 \t\r\n")
    if text[:15].lower().startswith(("<!doctype", "<html", "<?xml")):
        raise Unreadable("the file is a web page and no notebook; ask for the .ipynb")
    if re.search(r"^(<<<<<<<|>>>>>>>) ", text, re.MULTILINE):
        raise Unreadable("the file has the marks of a merge that was not finished (<<<<<<<)")
    return text


def _json(text: str):
    try:
        return json.loads(text)
    except RecursionError:
        raise Unreadable("the file is nested too deeply to be a notebook") from None
    except json.JSONDecodeError as error:
        if error.pos >= len(text) - 1 or "Unterminated" in error.msg:
            raise Unreadable("the file is cut off before its end; ask for it again") from None
        raise Unreadable(f"the file is no valid JSON: {error.msg} in line {error.lineno}") from None
    except ValueError as error:  # an integer of more digits than Python converts
        raise Unreadable(f"the file is no valid JSON: {str(error)[:80]}") from None


def _cells(data: dict, notes: list[str]) -> list[NotebookNode]:
    version = data.get("nbformat")
    if isinstance(data.get("worksheets"), list) and not isinstance(data.get("cells"), list):
        data, version = _converted(data), 4
        notes.append("the notebook had a format older than 4")
    if version != 4:
        shown = version if isinstance(version, int) and abs(version) < 1000 else "missing or no number"
        notes.append(f"the number of the notebook's format was {shown}; its cells were read as those of 4")
    if not isinstance(data.get("cells"), list):
        raise Unreadable("the file is no notebook: it has no cells")
    if len(data["cells"]) > MOST_CELLS:
        raise Unreadable(f"the notebook has {len(data['cells'])} cells; nobody writes more than {MOST_CELLS}")
    made = []
    for number, cell in enumerate(data["cells"]):
        if isinstance(cell, dict):
            made.append(_cell(cell, f"cell-{number}", notes))
        else:
            notes.append(f"cell {number + 1} was no cell and was left out")
    return made


def _converted(data: dict) -> dict:
    """Format 1 to 3: nbformat's own conversion, cell by cell what it can read."""
    data = data | {"nbformat": data.get("nbformat") if data.get("nbformat") in (1, 2, 3) else 3}
    data.setdefault("nbformat_minor", 0)
    data.setdefault("metadata", {})
    try:
        return nbformat.convert(nbformat.from_dict(data), 4)
    except Exception as error:
        raise Unreadable(f"a notebook of format {data['nbformat']} that nbformat cannot convert: {error}") from None


def _cell(cell: dict, identity: str, notes: list[str]) -> NotebookNode:
    kind = cell.get("cell_type")
    if kind not in OF_TYPE:
        notes.append(f"a cell of the unknown type {str(kind)[:20]!r} was kept as text")
        kind = "raw"
    new = new_cell(kind, _source(cell), identity)
    metadata = cell.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("nbgrader"), dict):
        new.metadata["nbgrader"] = nbformat.from_dict(metadata["nbgrader"])
    attachments = _attachments(cell.get("attachments"))
    if kind == "markdown" and attachments:
        new.attachments = nbformat.from_dict(attachments)  # a picture in a written answer
    return new


def _source(cell: dict) -> str:
    source = cell.get("source", cell.get("input", ""))
    parts = source if isinstance(source, list) else [source]
    text = "".join("" if part is None else str(part) for part in parts)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.encode("utf-8", errors="replace").decode("utf-8")  # half a surrogate pair cannot be written


def _attachments(value) -> dict[str, dict[str, str]]:
    """The files of a cell, as far as they are texts; drawings are lists of lines, as nbformat writes them."""
    found: dict[str, dict[str, str]] = {}
    for name, files in value.items() if isinstance(value, dict) else ():
        for kind, content in files.items() if isinstance(files, dict) else ():
            lines = content if isinstance(content, list) else [content]
            if all(isinstance(line, str) for line in lines):
                found.setdefault(name, {})[kind] = "".join(lines)
    return found
