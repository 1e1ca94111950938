"""The page that shows how the graders are tested: figures and tables are those of the record."""

import json
import sys
from pathlib import Path

import pytest

BOOK = Path(__file__).parents[2] / "book"


@pytest.fixture
def grader_proofs(monkeypatch):
    monkeypatch.syspath_prepend(str(BOOK / "_ext"))
    yield pytest.importorskip("grader_proofs")
    sys.modules.pop("grader_proofs", None)


def solution(kind, name, price, *lost):
    return {"kind": kind, "name": name, "price": price, "why": "", "lost": list(lost)}


PROOF = {
    "solutions": [
        solution("right", "loops", 0.0, 0.0, 0.0), solution("wrong", "no *", 1.5, 1.5, 1.5),
        solution("wrong", "no scale", 1.0, 1.0, 2.0), solution("tricks", "exits", 4.0, 4.0),
    ],
    "mutants": {
        "made": 12, "equivalent": [["f", "a  ->  b", "the same"], ["f", "b  ->  a", "the same"]], "caught": 9,
        "whole part": 4, "survived": [["f", "c  ->  d"]], "charged outside": [],
    },
}  # fmt: skip


def test_the_summary_has_the_figures_of_the_record(grader_proofs):
    text = "\n".join(grader_proofs.summary(PROOF))
    assert "2 wrong answers** and 1 tricks and accidents: 1 lose other points" in text
    assert "1 right answers in other styles**: 0 of them lose anything" in text and "2 seeds" in text
    assert "12 changes of the reference by machine**, of which 2 are right" in text
    assert "Of the other 10, 9 lose points (90.0%), 4 of them all points of their part; 0 lose points" in text


def test_the_tables_have_every_entry(grader_proofs):
    tables = dict(grader_proofs.tables(PROOF))
    assert [row[:2] for row in tables["Wrong"][1:]] == [["no *", "1.5"], ["no scale", "1"]]
    assert len(tables["Changes that are right all the same"]) == 3
    assert tables["Changes that no test notices"][1] == ["`f`", "`` c  ->  d ``"]


def test_nothing_in_a_table_is_taken_for_markup(grader_proofs):
    assert grader_proofs.plain("a * b_c $d$") == r"a \* b\_c \$d\$"
    assert grader_proofs.plain("`f_1`") == "`f_1`"


ATTACKS = {
    "graders": {
        "ours": {"course_lib": "1.0", "date": "2026-11-27"}, "nbgrader": {"nbgrader": "7.0", "date": "2026-11-28"},
        "otter": {"otter-grader": "6.0", "date": "2026-11-29"},
    },
    "attacks": {
        "a_1": {"class": "files", "tries": "Links.", "ours": ["held"], "nbgrader": ["forged", "read"],
                "otter": ["held"]},
        "b_2": {"class": "files", "tries": "Modules.", "ours": ["held"], "nbgrader": ["stopped", "forged"]},
        "c_3": {"class": "memory", "tries": "All of it.", "ours": ["held"], "nbgrader": ["took"], "otter": ["took"]},
    },
}  # fmt: skip


def test_an_attack_counts_once_for_each_grader_by_the_gravest_that_it_did(grader_proofs):
    head, *rows = grader_proofs.totals(ATTACKS)
    assert head == ["class", "attacks", "ours", "nbgrader as it comes"], "otter was not tried by all"
    assert rows == [
        ["files", "2", "2 held", "1 forged, 1 stopped"],
        ["memory", "1", "1 held", "1 took"],
        ["all", "3", "3 held", "1 forged, 1 stopped, 1 took"],
    ]


def test_an_attack_on_another_assignment_counts_for_ours_alone(grader_proofs):
    other = {"class": "files", "tries": "Tensors.", "on": "tensors-first", "ours": ["held"]}
    record = ATTACKS | {"attacks": ATTACKS["attacks"] | {"d_4": other}}
    assert grader_proofs.totals(record)[1] == ["files", "3", "3 held", "1 forged, 1 stopped, 1 not tried"]
    assert grader_proofs.every_attack(record)[4] == [
        "`d_4`", "Tensors. On tensors-first, tried on ours alone.", "held", "not tried"
    ]  # fmt: skip


def test_all_that_an_attack_did_is_listed(grader_proofs):
    rows = grader_proofs.every_attack(ATTACKS)
    assert rows[1] == ["`a_1`", "Links.", "held", "forged, read"] and len(rows) == 4


def test_what_was_attacked_and_when_is_said(grader_proofs):
    said = grader_proofs.versions(ATTACKS)
    assert said.endswith("course_lib 1.0, on 2026-11-27; nbgrader as it comes: nbgrader 7.0, on 2026-11-28.")


def test_the_page_has_the_table_of_attacks():
    assert "```{attack-table}\n" in (BOOK / "graders.md").read_text(encoding="utf-8")


def test_every_recorded_grader_is_on_the_page():
    record = json.loads((BOOK.parent / "tests" / "assignments" / "proofs.json").read_text(encoding="utf-8"))
    page = (BOOK / "graders.md").read_text(encoding="utf-8")
    assert record and all(f"```{{grader-proof}} {name}\n" in page for name in record)
