"""Sphinx extension: what is known of a grader, from the records in `tests/assignments/`.

``{grader-proof} ASSIGNMENT`` says in figures what was tried and what became of it, and lists it in tables; the record
is that of `python -m tests.support.proof`.

``{attack-table}`` says how many attacks each grader held, by their class, and lists them all; the record is that of
`python -m tests.support.attack_table`.
"""

import json
from collections import Counter
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

RECORD = Path(__file__).parents[2] / "tests" / "assignments" / "proofs.json"
ATTACKS = RECORD.with_name("attacks.json")
GRADERS = {"ours": "ours", "nbgrader": "nbgrader as it comes", "otter": "otter-grader"}
KINDS = {"right": "Right, in other styles", "wrong": "Wrong", "tricks": "Tries for points, and accidents"}
UNTRIED = "not tried"


def summary(proof: dict) -> list[str]:
    """Sentences with the figures of one assignment, in MyST."""
    changes, solutions = proof["mutants"], proof["solutions"]
    count = {kind: sum(solution["kind"] == kind for solution in solutions) for kind in KINDS}
    seeds = max(len(solution["lost"]) for solution in solutions)
    off = [solution["name"] for solution in solutions if set(solution["lost"]) != {solution["price"]}]
    tried = changes["made"] - len(changes["equivalent"])
    share = 100 * changes["caught"] / tried
    return [
        f"- **{count['wrong']} wrong answers** and {count['tricks']} tricks and accidents: "
        + (f"{len(off)} lose other points than they should." if off else "each loses the points it should."),
        f"- **{count['right']} right answers in other styles**: "
        f"{sum(max(s['lost']) > 0 for s in solutions if s['kind'] == 'right')} of them lose anything.",
        f"- **{seeds} seeds** of the hidden tests, for every right and every wrong answer.",
        f"- **{changes['made']} changes of the reference by machine**, of which {len(changes['equivalent'])} are right "
        f"all the same. Of the other {tried}, {changes['caught']} lose points ({share:.1f}%), "
        f"{changes['whole part']} of them all points of their part; {len(changes['charged outside'])} lose points in "
        "another part.",
    ]


def tables(proof: dict) -> list[tuple[str, list[list[str]]]]:
    """The solutions by kind, and the changes that are no mistake, each with its title."""
    found = []
    for kind, title in KINDS.items():
        rows = [["answer", "points lost", "why"]]
        for solution in proof["solutions"]:
            if solution["kind"] == kind:
                rows.append([solution["name"], f"{solution['price']:g}", solution["why"] or "another way to the same"])
        found.append((title, rows))
    equal = [[f"`{cell}`", f"`` {change} ``", why] for cell, change, why in proof["mutants"]["equivalent"]]
    found.append(("Changes that are right all the same", [["cell", "change", "why"], *equal]))
    missed = [[f"`{cell}`", f"`` {change} ``"] for cell, change in proof["mutants"]["survived"]]
    if missed:
        found.append(("Changes that no test notices", [["cell", "change"], *missed]))
    return found


def plain(text: str) -> str:
    """Text in which nothing is taken for a formula or a link."""
    return text if text.startswith("`") else text.replace("$", r"\$").replace("*", r"\*").replace("_", r"\_")


def tried(record: dict) -> list[str]:
    """The graders that every attack was tried on; of others the page says nothing yet.

    Attacks `on` another assignment count for ours alone: the others do not have it.
    """
    attacks = record["attacks"].values()
    first = [attack for attack in attacks if "on" not in attack]
    return [name for name in GRADERS if all(name in attack for attack in (attacks if name == "ours" else first))]


def in_words(outcomes: list[str]) -> str:
    """How many of them there are of each kind, the commonest first: `3 held, 1 forged`."""
    return ", ".join(f"{number} {outcome}" for outcome, number in Counter(outcomes).most_common())


def totals(record: dict) -> list[list[str]]:
    """A row for every class of attacks, and one for all: each attack counts once, by the gravest that it did."""
    attacks = list(record["attacks"].values())
    classes = sorted({attack["class"] for attack in attacks})
    rows = [["class", "attacks", *(GRADERS[grader] for grader in tried(record))]]
    for name in [*classes, "all"]:
        chosen = [attack for attack in attacks if name in ("all", attack["class"])]
        of = [in_words([attack.get(grader, [UNTRIED])[0] for attack in chosen]) for grader in tried(record)]
        rows.append([name, str(len(chosen)), *of])
    return rows


def every_attack(record: dict) -> list[list[str]]:
    """A row for every attack."""
    rows = [["attack", "what it tries", *(GRADERS[grader] for grader in tried(record))]]
    for name, attack in record["attacks"].items():
        outcomes = [", ".join(attack.get(grader, [UNTRIED])) for grader in tried(record)]
        on = f" On {attack['on']}, tried on ours alone." if "on" in attack else ""
        rows.append([f"`{name}`", attack["tries"] + on, *outcomes])
    return rows


def versions(record: dict) -> str:
    """What was attacked, and when."""
    said = []
    for grader in tried(record):
        of = record["graders"][grader]
        parts = [f"{name} {version}" for name, version in of.items() if name != "date"]
        said.append(f"{GRADERS[grader]}: {', '.join(parts)}, on {of['date']}")
    return "Attacked were " + "; ".join(said) + "."


def list_table(rows: list[list[str]]) -> list[str]:
    """Rows as a table in MyST, the first as its head."""
    lines = ["```{list-table}", ":header-rows: 1", ""]
    for row in rows:
        lines += [f"{'* -' if not column else '  -'} {plain(cell)}" for column, cell in enumerate(row)]
    return [*lines, "```"]


class AttackTable(SphinxDirective):
    """``{attack-table}``, without arguments."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(ATTACKS))
        record = json.loads(ATTACKS.read_text(encoding="utf-8"))
        rows = every_attack(record)
        lines = [*list_table(totals(record)), "", versions(record), ""]
        lines += [f"````{{dropdown}} Every attack ({len(rows) - 1})", *list_table(rows), "````", ""]
        parsed = nodes.container(classes=["grader-proof"])
        self.state.nested_parse(StringList(lines, self.env.docname), self.content_offset, parsed)
        return [parsed]


class GraderProof(SphinxDirective):
    """``{grader-proof} ASSIGNMENT``, with the name of an assignment that the record has."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        self.env.note_dependency(str(RECORD))
        record = json.loads(RECORD.read_text(encoding="utf-8"))
        if name not in record:
            raise self.error(f"There is no proof of {name!r}; the record has {', '.join(record)}.")
        lines = [*summary(record[name]), ""]
        for title, rows in tables(record[name]):
            lines += [f"````{{dropdown}} {title} ({len(rows) - 1})", *list_table(rows), "````", ""]
        parsed = nodes.container(classes=["grader-proof"])
        self.state.nested_parse(StringList(lines, self.env.docname), self.content_offset, parsed)
        return [parsed]


def setup(app: Sphinx) -> dict[str, object]:
    app.add_directive("grader-proof", GraderProof)
    app.add_directive("attack-table", AttackTable)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
