"""What an instructor is shown of an assignment: causes are counted, and nothing that a student wrote is markup."""

import csv

import pytest

from course_lib.grading.marking import overview
from course_lib.grading.marking.overview import Question, _share, causes, page, write_overview
from course_lib.grading.marking.record import BY_ANOTHER, CHANGES, TEST, Entry

NAMES = ["anna", "kim", "max"]
REPAIRED = "the file's encoding was utf-16"
CHANGED = {
    "anna": Entry(marked="x", seconds=2.0, notes=[REPAIRED, f"{TEST}: 'test-a'"]),
    "kim": Entry(marked="x", seconds=8.5, notes=[f"{TEST}: 'test-b'"]),
    "max": Entry(marked="x", seconds=3.0, origin=f"{BY_ANOTHER}s1", trouble="Not all of it ran. =1"),
    "zoe": Entry(lacks="Not all came from exchange"),
}
BY = "it came from the exchange, written by s1: ask whose work it is"


def test_causes_are_those_of_several_students_whatever_their_files_and_cells():
    said = {
        "zoe": ["the notebook was called 'a.ipynb'", "Stopped in cell 3"],
        "anna": ["Stopped in cell 12"],
        "max": [],
        "eve": ["the notebook was called 'hw (1).ipynb'", "the notebook was called 'hw (2).ipynb'"],
        "kim": ["Stopped in cell 7"],
    }
    assert causes(said) == [
        ("Stopped in cell …", ["anna", "kim", "zoe"]),
        ("the notebook was called …", ["eve", "zoe"]),
    ]


def test_a_share_of_the_points_is_none_some_most_or_all():
    assert [_share(mark, 2.0) for mark in (-1, 0, 0.5, 1, 1.5, 2, 3)] == [0, 0, 1, 2, 2, 3, 3]


def test_what_students_wrote_is_text_on_the_page():
    entries = {
        "<b>anna</b>": Entry(marked="x", notes=["'<script>alert(1)</script>' was left behind"], seconds=2.5),
        "zoe": Entry(trouble="It could not be graded: <img src=x>", seconds=4.0),
    }
    made = page("hw", [Question("hw", "q<1>", 2.0, None, (0, 0, 0, 0), 1)], entries)
    assert "<script>alert" not in made and "<img" not in made and "<b>" not in made and "q<1>" not in made
    assert "&lt;script&gt;alert" in made and "1 works have marks; 1 need attention" in made
    assert "3.2 s or less; the slowest, of zoe, 4.0 s" in made and ">None<" not in made


def test_where_nobody_handed_in_there_is_a_page_as_well():
    made = page("hw", [Question("hw", "q", 2.0, None, (0, 0, 0, 0), 0)], {})
    assert "Nothing was graded." in made and made.count("<li>nothing</li>") == 3


@pytest.mark.parametrize("sentence", CHANGES)
def test_what_was_changed_is_no_repair_and_names_the_students(sentence):
    entries = {name: Entry(marked="x", notes=[REPAIRED, f"{sentence}: 'q-{name}'"]) for name in NAMES}
    _, changed, repaired, *_ = page("hw", [], entries).split("<h2>")[2:]
    assert changed.startswith("Changed tests and names</h2>") and "Each may be an accident" in changed
    assert f"<strong>3</strong>: {sentence}: …" in changed and "(anna, kim, max)" in changed
    assert sentence not in repaired and "encoding" in repaired and "encoding" not in changed


def test_where_nothing_was_changed_nothing_is_said_of_it():
    _, changed, *_ = page("hw", [], {"anna": Entry(marked="x", notes=[REPAIRED])}).split("<h2>")[2:]
    assert "<li>nothing</li>" in changed and "<p>" not in changed


def test_an_account_that_handed_in_for_another_is_named():
    changed = page("hw", [], CHANGED).split("<h2>")[3]
    assert f"<strong>1</strong>: {BY}" in changed and "(max)" in changed
    assert BY in CHANGED["max"].why and "written by" not in Entry(origin="exchange").why


def test_causes_changes_and_times_are_a_table(tmp_path, monkeypatch):
    asked = [Question("hw", "q", 2.0, None, (0, 1, 0, 0), 1)]
    monkeypatch.setattr(overview, "questions", lambda *_: asked)
    write_overview(None, "hw", CHANGED, tmp_path)
    with (tmp_path / "hw-causes.csv").open(newline="", encoding="utf-8") as lines:
        assert list(csv.reader(lines)) == [
            ["kind", "what", "how many", "students"],
            ["attention", "Not all came from exchange", "1", "zoe"],
            ["attention", "Not all of it ran. =1", "1", "max"],
            ["changed", f"{TEST}: …", "2", "anna, kim"],
            ["changed", BY, "1", "max"],
            ["repaired", REPAIRED, "1", "anna"],
            ["time", "seconds that half of the works took at most", "3.0", ""],
            ["time", "seconds", "8.5", "kim"],
            ["time", "seconds", "3.0", "max"],
            ["time", "seconds", "2.0", "anna"],
        ]
    assert (tmp_path / "hw.csv").read_text(encoding="utf-8") == (
        "notebook,question,points,mean,none,under half,half or more,all,waiting\nhw,q,2.0,,0,1,0,0,1\n"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hw-causes.csv", "hw.csv", "hw.html"]


def test_no_text_of_the_tables_is_a_formula(tmp_path, monkeypatch):
    monkeypatch.setattr(overview, "questions", lambda *_: [])
    write_overview(None, "hw", {"-anna": Entry(trouble="=cmd|'/C calc'!A0")}, tmp_path)
    with (tmp_path / "hw-causes.csv").open(newline="", encoding="utf-8") as lines:
        assert list(csv.reader(lines))[1] == ["attention", "'=cmd|'/C calc'!A0", "1", "'-anna"]
