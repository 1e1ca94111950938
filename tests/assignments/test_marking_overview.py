"""What an instructor is shown of an assignment: causes are counted, and nothing that a student wrote is markup."""

from course_lib.grading.marking.overview import Question, _share, causes, page
from course_lib.grading.marking.record import Entry


def test_causes_are_those_of_several_students_whatever_their_files_and_cells():
    said = {
        "zoe": ["the notebook was called 'a.ipynb'", "Stopped in cell 3"],
        "anna": ["Stopped in cell 12"],
        "max": [],
        "eve": ["the notebook was called 'hw (1).ipynb'", "the notebook was called 'hw (2).ipynb'"],
        "kim": ["Stopped in cell 7"],
    }
    assert causes(said) == [
        ("Stopped in cell 12", ["anna", "kim", "zoe"]),
        ("the notebook was called 'hw (1).ipynb'", ["eve", "zoe"]),
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
    assert "Nothing was graded." in made and made.count("<li>nothing</li>") == 2
