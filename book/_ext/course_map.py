"""Sphinx extension: the course map and the syllabi, computed from the lectures.

A lecture says itself what its title is, what it needs and how long it takes, and keeps the numbers that are quoted of
it. `book/course.yml` adds what it answers, what it shows, and in which week of each syllabus it stands.

``{course-map} 2`` lists the lectures of part 2, ``{course-hours}`` says how many there are and how long they take
together, and ``{syllabus} 8`` is a table of 8 weeks, whose body lists ``in class`` and ``hand in`` of each week.
"""

import functools
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import nbformat
import yaml
from claims import kept, title
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[2]
DATA = ROOT / "book" / "course.yml"
NOTEBOOKS = ROOT / "notebooks"
QUESTION = re.compile(r"\*\*([^*]+\?)\*\*")
TIME = re.compile(r"\*\*Time:\*\* about (\d+) minutes to read, (?:(\d+) h ?)?(?:(\d+) min )?of exercises")
QUOTED = re.compile(r"([-\u2212]?\d[\d,]*(?:\.\d+)?\s?%?)<!--\s*(\w+)\s*-->")


@dataclass(frozen=True)
class Lecture:
    """What the map says of a lecture. Times are in minutes; `needs` are numbers of lectures."""

    stem: str
    title: str
    question: str
    shows: str
    needs: list[str]
    reading: int
    exercises: int
    weeks: dict[int, int]
    numbers: dict[str, dict] = field(repr=False)  # the claims that its cells keep, by name

    @property
    def number(self) -> str:
        return self.stem[:2]


def hours(minutes: int) -> str:
    """Minutes as "40 min", "4 h" or "2 h 25 min"."""
    whole, rest = divmod(minutes, 60)
    return " ".join(part for part in (f"{whole} h" if whole else "", f"{rest} min" if rest else "") if part)


def read(path: Path, entry: dict) -> Lecture:
    """The lecture in a notebook, with its entry of `book/course.yml`, {} where it has none.

    Raises
    ------
    ValueError : the notebook does not say how long it takes.
    """
    markdown = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown"]
    beginning = markdown[0]
    time = TIME.search(beginning)
    if time is None:
        raise ValueError(f'{path.name} does not say "**Time:** about 40 minutes to read, 2 h 25 min of exercises."')
    needed = beginning.partition("**Know first:**")[2].partition("\n\n")[0]
    asked = QUESTION.search(beginning)
    return Lecture(
        stem=path.stem,
        title=beginning.splitlines()[0].removeprefix("# "),
        question=entry.get("question") or (" ".join(asked[1].split()) if asked else ""),
        shows=entry.get("shows", ""),
        needs=sorted(set(re.findall(r"\]\((\d\d)-[\w-]+\.ipynb", needed))),
        reading=int(time[1]),
        exercises=int(time[2] or 0) * 60 + int(time[3] or 0),
        weeks=entry.get("weeks", {}),
        numbers=kept(str(path)),
    )


@functools.cache
def lectures() -> dict[str, Lecture]:
    """All lectures, by their numbers. Raises ValueError for an entry of `book/course.yml` without a notebook."""
    entries = yaml.safe_load(DATA.read_text(encoding="utf-8"))
    paths = sorted(NOTEBOOKS.glob("[0-9][0-9]-*.ipynb"))
    if strangers := sorted(entries.keys() - {path.stem for path in paths}):
        raise ValueError(f"{DATA.name} names lectures that are not in notebooks/: {', '.join(strangers)}")
    return {path.stem[:2]: read(path, entries.get(path.stem, {})) for path in paths}


def link(lecture: Lecture, text: str) -> str:
    return f"{{doc}}`{text} </notebooks/{lecture.stem}>`"


def with_titles(text: str, numbers: dict[str, dict]) -> str:
    """A text in which each number that quotes a claim says on hover what computed it."""

    def explained(match: re.Match) -> str:
        if match[2] not in numbers:
            return match[0]
        words = escape(title(numbers[match[2]], "the lecture"))
        return f'<span class="claim" title="{words}">{match[1]}</span>'

    return QUOTED.sub(explained, text)


def map_of(part: str) -> list[str]:
    """The lectures of a part, in MyST. Raises ValueError for a part that has none."""
    known = lectures()
    chosen = [lecture for number, lecture in known.items() if number[0] == part]
    if not chosen:
        raise ValueError(f"no lecture is of part {part!r}; there are parts {', '.join(sorted({n[0] for n in known}))}")
    lines = []
    for lecture in chosen:
        needs = ", ".join(link(known[number], number) for number in lecture.needs if number in known)
        facts = [f"needs {needs}" if needs else "needs none before it"]
        facts += [f"{hours(lecture.reading)} to read", f"{hours(lecture.exercises)} of exercises"]
        lines += ["::::{container} lecture-entry", f"**{lecture.number} {link(lecture, lecture.title)}** \\"]
        lines += [f"*{lecture.question}*", "", with_titles(lecture.shows, lecture.numbers), ""]
        lines += ["{.lecture-facts}", " · ".join(facts), "::::", ""]
    return lines


def times(chosen: Collection[Lecture]) -> tuple[int, int]:
    """The minutes to read some lectures, and to do their exercises."""
    return sum(lecture.reading for lecture in chosen), sum(lecture.exercises for lecture in chosen)


def total() -> list[str]:
    """How many lectures there are and how long they take, in a sentence."""
    everything = lectures().values()
    reading, work = times(everything)
    return [
        f"There are {len(everything)} lectures: about {round(reading / 60)} hours to read, and "
        f"{round(work / 60)} hours of exercises for those who do them all."
    ]


def syllabus(weeks: int, plan: list[dict]) -> list[str]:
    """A table of the weeks, in MyST. Raises ValueError unless the plan and the lectures have just these weeks."""
    known = lectures()
    chosen = {lecture.number: lecture for lecture in known.values() if weeks in lecture.weeks}
    late = [lecture.stem for lecture in chosen.values() if not 1 <= lecture.weeks[weeks] <= weeks]
    if len(plan) != weeks or late:
        raise ValueError(f"the syllabus of {weeks} weeks has {len(plan)}, and {late or 'no lecture'} stands outside it")
    lines = ["```{list-table}", ":header-rows: 1", "", "* - week", "  - lectures", "  - to read", "  - all exercises"]
    lines += ["  - in class", "  - hand in"]
    for week, about in enumerate(plan, start=1):
        here = [lecture for lecture in chosen.values() if lecture.weeks[weeks] == week]
        reading, work = times(here)
        names = "; ".join(link(lecture, f"{lecture.number} {lecture.title}") for lecture in here)
        lines += [f"* - {week}", f"  - {names}"]
        lines += [f"  - {hours(minutes)}".replace(" min", "\u00a0min") for minutes in (reading, work)]
        lines += [f"  - {about.get('in class', '')}", f"  - {about.get('hand in', '')}"]
    lines += ["```", ""]
    left_out = sorted({number for lecture in chosen.values() for number in lecture.needs} - chosen.keys())
    if left_out:
        names = ", ".join(link(known[number], f"{number} {known[number].title}") for number in left_out)
        lines += [f"Left out, though a lecture of this plan names them as known: {names}."]
    return lines


class Computed(SphinxDirective):
    """A directive whose content is computed; a mistake in its arguments is an error of the page."""

    def lines(self) -> list[str]:
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(DATA))
        for path in NOTEBOOKS.glob("[0-9][0-9]-*.ipynb"):
            self.env.note_dependency(str(path))
        try:
            lines = self.lines()
        except ValueError as error:
            raise self.error(f"{self.name}: {error}") from error
        parsed = nodes.container(classes=[self.name])
        self.state.nested_parse(StringList(lines, self.env.docname), self.content_offset, parsed)
        return [parsed]


class CourseMap(Computed):
    required_arguments = 1

    def lines(self) -> list[str]:
        return map_of(self.arguments[0])


class CourseHours(Computed):
    def lines(self) -> list[str]:
        return total()


class Syllabus(Computed):
    required_arguments = 1
    has_content = True

    def lines(self) -> list[str]:
        plan = yaml.safe_load("\n".join(self.content)) or []
        return syllabus(int(self.arguments[0]), [week or {} for week in plan])


def forget(*_: object) -> None:
    """A build that follows another in one process reads the lectures anew."""
    lectures.cache_clear()


def setup(app: Sphinx) -> dict[str, object]:
    app.add_directive("course-map", CourseMap)
    app.add_directive("course-hours", CourseHours)
    app.add_directive("syllabus", Syllabus)
    app.connect("builder-inited", forget)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
