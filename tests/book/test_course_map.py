"""The course map and the syllabi say what the lectures say, and nothing that is written twice."""

import re
import sys
from pathlib import Path

import pytest
import yaml

from tests.support import guide
from tests.support.lecture_files import LECTURES, claims, loose_numbers, quotes, read

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
import course_map  # noqa: E402

ENTRIES = yaml.safe_load((ROOT / "book" / "course.yml").read_text(encoding="utf-8"))
SYLLABI = sorted({weeks for entry in ENTRIES.values() for weeks in entry["weeks"]})


@pytest.mark.parametrize("path", LECTURES, ids=lambda path: path.stem)
def test_the_map_says_what_the_lecture_says(path):
    notebook = read(path)
    lecture = course_map.lectures()[path.stem[:2]]
    stated = guide.TIME.search(guide.text(notebook))
    assert (str(lecture.reading), course_map.hours(lecture.exercises)) == stated.groups()
    assert lecture.exercises == sum(time for _, time in guide.exercises(notebook))
    assert notebook.cells[0].source.startswith(f"# {lecture.title}\n")
    assert all(number < lecture.number for number in lecture.needs), "a lecture that needs a later one"


@pytest.mark.parametrize("path", LECTURES, ids=lambda path: path.stem)
def test_a_lecture_has_an_entry_whose_numbers_its_cells_keep(path):
    assert path.stem in ENTRIES, f"add {path.stem} to book/course.yml"
    entry, known = ENTRIES[path.stem], claims(read(path))
    assert entry.keys() == {"question", "shows", "weeks"}
    assert entry["question"].strip().endswith("?") and quotes(entry["shows"])
    assert "$" not in str(entry), "a formula would bring 1.3 MB of MathJax to the welcome page"
    assert loose_numbers(entry["shows"]) == [], "numbers of the map that quote no cell"
    wrong = [f"{q.text}, kept: {known.get(q.name)}" for q in quotes(entry["shows"]) if not agrees(q, known)]
    assert wrong == [], f"book/course.yml says of {path.stem} what its cells do not"


@pytest.mark.parametrize("path", LECTURES, ids=lambda path: path.stem)
def test_each_number_of_the_map_says_what_computed_it_and_where_if_no_command_does(path):
    lecture = course_map.lectures()[path.stem[:2]]
    said = re.findall(r'<span class="claim" title="([^"]*)">', course_map.with_titles(lecture.shows, lecture.numbers))
    assert len(said) == len(quotes(ENTRIES[path.stem]["shows"])) > 0
    headings = {
        re.sub("[*`$]", "", words) for words in re.findall(r"^###? (.+)$", guide.text(read(path)), re.MULTILINE)
    }
    how = re.compile(r", computed by (?:(python notebooks/experiments/\w+\.py)|.+, section “(.+)”)")
    places = [how.search(words) for words in said]
    assert None not in places, said
    assert {place[2] for place in places if place[2]} <= headings
    assert all((ROOT / place[1].removeprefix("python ")).is_file() for place in places if place[1])


def agrees(quote, known):
    return quote.name in known and abs(quote.value - known[quote.name]) <= quote.half_digit * (1 + 1e-9)


@pytest.mark.parametrize("weeks", SYLLABI)
def test_no_lecture_of_a_syllabus_stands_before_one_that_it_needs(weeks):
    week = {number: lecture.weeks.get(weeks) for number, lecture in course_map.lectures().items()}
    early = [
        f"{lecture.stem} before {need}"
        for number, lecture in course_map.lectures().items()
        for need in lecture.needs
        if week[number] and week[need] and week[need] > week[number]
    ]
    assert early == []


def test_the_longest_syllabus_leaves_no_lecture_out():
    assert [stem for stem, entry in ENTRIES.items() if max(SYLLABI) not in entry["weeks"]] == []


def test_every_part_is_on_the_welcome_page_and_every_syllabus_has_its_plan():
    welcome = (ROOT / "book" / "index.md").read_text(encoding="utf-8")
    assert [n for n in course_map.lectures() if f"```{{course-map}} {n[0]}\n" not in welcome] == []
    page = (ROOT / "book" / "syllabus.md").read_text(encoding="utf-8")
    assert [weeks for weeks in SYLLABI if f"```{{syllabus}} {weeks}\n" not in page] == []


def test_what_cannot_be_computed_is_said():
    with pytest.raises(ValueError, match="no lecture is of part '9'"):
        course_map.map_of("9")
    with pytest.raises(ValueError, match="the syllabus of 4 weeks has 3"):
        course_map.syllabus(4, [{}] * 3)


def test_a_lecture_without_an_entry_has_its_own_question(tmp_path):
    import nbformat

    text = (
        "# A title\n\nWhy? **Is it\nso?**\n\n**Know first:** [one](21-one.ipynb), [another](12-two.ipynb).\n\n"
        "**Time:** about 25 minutes to read, 1 h 5 min of exercises."
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)])
    nbformat.write(notebook, tmp_path / "42-new.ipynb")
    found = course_map.read(tmp_path / "42-new.ipynb", {})
    assert (found.question, found.needs, found.reading, found.exercises) == ("Is it so?", ["12", "21"], 25, 65)
    notebook.cells[0].source = "# A title"
    nbformat.write(notebook, tmp_path / "42-new.ipynb")
    with pytest.raises(ValueError, match="does not say"):
        course_map.read(tmp_path / "42-new.ipynb", {})


def test_what_a_syllabus_leaves_out_is_named():
    known = course_map.lectures()
    table = "\n".join(course_map.syllabus(4, [{"in class": "masks"}] * 4))
    assert table.count("  - masks") == 4
    chosen = {n for n, lecture in known.items() if 4 in lecture.weeks}
    missing = {need for n in chosen for need in known[n].needs} - chosen
    note = table.partition("Left out")[2]
    assert missing and all(known[need].title in note for need in missing)
