"""Sphinx extension: ``{symbols}`` is a table of the formulas' symbols, whose rows the search and the index find.

Sphinx's search knows words. It drops signs such as a root, cuts ``QK^T`` in two, and has of ``$\\varepsilon$`` the name
alone. Entries of the index it compares as they are: so each row of `book/symbols.yml` says what a reader may type.
"""

from pathlib import Path

import yaml
from course_map import ROOT, Computed, lectures, link
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

DATA = ROOT / "book" / "symbols.yml"


def symbols(path: Path = DATA) -> list[dict]:
    """The rows of the table. Raises ValueError for one that is not complete, and for a name that two of them have."""
    rows, names = yaml.safe_load(path.read_text(encoding="utf-8")), set()
    for row in rows:
        if row.keys() != {"symbol", "means", "shape", "first", "find"} or not row["find"]:
            raise ValueError(f"{path.name}: a row says symbol, means, shape, first and find: {row}")
        if twice := names & {name.lower() for name in row["find"]}:
            raise ValueError(f"{path.name}: two rows are found by {', '.join(sorted(twice))}")
        names |= {name.lower() for name in row["find"]}
    return rows


class Symbols(Computed):
    def lines(self) -> list[str]:
        lines = ["```{list-table}", ":header-rows: 1", "", "* - symbol", "  - meaning", "  - shape", "  - lecture"]
        for row in symbols():
            lecture = lectures()[row["first"]]
            lines += [f"* - {row['symbol']}", f"  - {row['means']}", f"  - {row['shape']}"]
            lines += [f"  - {link(lecture, f'{lecture.number} {lecture.title}')}"]
        return [*lines, "```"]

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(DATA))
        (block,) = super().run()
        entries = []
        rows = block.next_node(nodes.tbody).children
        for count, (row, symbol) in enumerate(zip(rows, symbols(), strict=True), start=1):
            row["ids"].append(f"symbol-{count}")
            entries += [("single", name, f"symbol-{count}", "main", None) for name in symbol["find"]]
        return [addnodes.index(entries=entries), block]


def setup(app: Sphinx) -> dict[str, object]:
    app.add_directive("symbols", Symbols)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
