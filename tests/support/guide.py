"""The countable rules of a lecture: how long it is, what its times add up to, its words, its citations, its links.

`faults` says in sentences what is wrong with a notebook; the limits are those of an hour's reading.
"""

import re

from course_lib.lecture.show import CLAIM
from tests.execute import GUARD

WORDS, CELLS, LINES, CELL_LINES = 3000, 45, 350, 12
WORDS_A_MINUTE, SECONDS_A_LINE = 150, 3

FRAMEWORKS = {"numpy": "# NumPy", "torch": "# PyTorch", "tensorflow": "# TensorFlow"}
FOLDED = {"hide-input", "hide-cell", "solution", "remove-cell", "remove-input"}
CURIOUS = "For the curious"
KINDS = ["Check your understanding", "Extend the code", "An open question"]

HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
EXERCISE = re.compile(r"^#### (\d+)\. (.+) \((★{1,3}), (.+)\)$", re.MULTILINE)
MINUTES = re.compile(r"(?:(\d+) h)?\s*(?:(\d+) min)?")
TIME = re.compile(r"\*\*Time:\*\* about (.+?) minutes to read, (.+?) of exercises\.")
CITATION = re.compile(r"\[([^\[\]]*\b(?:19|20)\d\d\)?[^\[\]]*)\]\((https?://[^)\s]+)\)")

# what is not said, and what is said instead
WORDING = {
    r"simply|obviously|of course,? it is clear|needless to say": "leave it out",
    r"optimizers?|optimiz(?:e|es|ed|ing|ation)|initializ(?:e|es|ed|ing|ation)": "British: optimiser, initialise",
    r"normaliz\w+|regulariz\w+|tokeniz\w+|generaliz\w+|behavior\w*|colors?|neighbors?": "British spelling",
    r"(?:first|last|next|same|each|every|which|of) (?:word|token)'s place": "say position",
    r"lectures? (?:one|two|three|four|five|six|seven|eight|nine|ten|\d+)": "name a lecture by its title, as a link",
    r"in this lecture,? we|we will see that": "say it",
}


def tags(cell) -> set[str]:
    return set(cell.metadata.get("tags", []))


def shown(notebook) -> list:
    """The cells that a reader sees: none of solutions, folded code, and sections for the curious."""
    found, skipped = [], 0
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            heading = HEADING.match(cell.source)
            if heading and skipped and len(heading[1]) <= skipped:
                skipped = 0
            if heading and heading[2].startswith(CURIOUS):
                skipped = len(heading[1])
        if not skipped and not tags(cell) & FOLDED:
            found.append(cell)
    return found


def text(notebook) -> str:
    """The prose that a reader sees, up to the references, without code, displayed formulas and comments."""
    cells = [cell.source for cell in shown(notebook) if cell.cell_type == "markdown"]
    prose = re.sub(r"^## References\n.*?(?=^## |\Z)", "", "\n\n".join(cells), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"<!--.*?-->|```.*?```|\$\$.*?\$\$", " ", prose, flags=re.DOTALL)


def plain(prose: str) -> str:
    """Prose with inline code and formulas as one word each, pictures and the addresses of links gone."""
    prose = re.sub(r"!\[[^\]]*\]\([^)]*\)", " ", prose)
    return re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`|\$[^$]*\$", "x", prose))


def words(notebook) -> int:
    return len(re.findall(r"[^\W\d_][\w’'-]*", plain(text(notebook))))


def code_lines(cell) -> int:
    """The lines of a cell that are not empty; the one that names its framework is a label."""
    return sum(bool(line.strip()) and line not in FRAMEWORKS.values() for line in cell.source.splitlines())


def code(notebook) -> list[int]:
    """The lines of each visible code cell; of neighbouring framework cells, those of the longest tab."""
    sizes: list[int] = []
    tabs: dict[str, list[int]] = {}
    for cell in [*shown(notebook), None]:
        framework = None if cell is None or cell.cell_type != "code" else next(iter(tags(cell) & set(FRAMEWORKS)), None)
        if framework:
            tabs.setdefault(framework, []).append(code_lines(cell))
            continue
        if tabs:
            sizes += max(tabs.values(), key=sum)
            tabs = {}
        if cell is not None and cell.cell_type == "code":
            sizes.append(code_lines(cell))
    return sizes


def minutes(words_of_time: str) -> int | None:
    """The minutes of "40 min", "1 h", "2 h 25 min"; None if it is nothing of these."""
    match = MINUTES.fullmatch(words_of_time)
    if not match or not any(match.groups()):
        return None
    return int(match[1] or 0) * 60 + int(match[2] or 0)


def exercises(notebook) -> list[tuple[int, int | None]]:
    """The number of each exercise and the minutes it says it takes."""
    everything = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return [(int(number), minutes(time)) for number, _, _, time in EXERCISE.findall(everything)]


def reading(notebook) -> float:
    """The minutes that words and code take."""
    return words(notebook) / WORDS_A_MINUTE + sum(code(notebook)) * SECONDS_A_LINE / 60


def too_long(notebook) -> list[str]:
    sizes = code(notebook)
    found = [
        f"{what}: {value}, and no more than {limit} are read in an hour"
        for what, value, limit in (
            ("words", words(notebook), WORDS),
            ("visible code cells", len(sizes), CELLS),
            ("visible lines of code", sum(sizes), LINES),
        )
        if value > limit
    ]
    for cell in shown(notebook):
        if cell.cell_type == "code" and code_lines(cell) > CELL_LINES:
            found.append(f"cell {cell.id} has {code_lines(cell)} lines, and a step has no more than {CELL_LINES}")
    return found


def wrong_times(notebook) -> list[str]:
    stated = TIME.search(text(notebook))
    if not stated:
        return ['say "**Time:** about 40 minutes to read, 2 h 25 min of exercises." near the beginning']
    found = []
    if not stated[1].isdigit() or abs(int(stated[1]) - reading(notebook)) > 5:
        found.append(f"it says {stated[1]} minutes to read; words and code take {reading(notebook):.0f}")
    times = [time for _, time in exercises(notebook)]
    if None in times or minutes(stated[2]) != sum(times):
        found.append(f"it says {stated[2]} of exercises; theirs are {times} minutes")
    return found


def wrong_exercises(notebook) -> list[str]:
    everything = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    headings = {title for level, title in HEADING.findall(everything) if level == "###"}
    found = [f"the kind of exercise {kind!r} is missing" for kind in KINDS if kind not in headings]
    numbers = [number for number, _ in exercises(notebook)]
    if numbers != list(range(1, len(numbers) + 1)) or len(numbers) < 3:
        found.append(f"exercises are numbered from 1, each a heading as `#### 1. Title (★, 10 min)`; found {numbers}")
    if everything.count("*Hand in:*") != len(numbers):
        found.append("each exercise says once what to hand in, as *Hand in:*")
    for i, cell in enumerate(notebook.cells):
        if cell.cell_type == "code" and "solution" in tags(cell):
            before = next(c for c in reversed(notebook.cells[:i]) if "solution" not in tags(c) or c.cell_type != "code")
            if not before.source.startswith("##### Solution") or tags(before) != {"solution", "remove-cell"}:
                found.append(f"solution {cell.id} has no heading `##### Solution` with the tags solution, remove-cell")
    return found


def unfolded(notebook) -> list[str]:
    """What JupyterLab would show unfolded, or without saying whose it is."""
    found = []
    if next((cell.source for cell in notebook.cells if cell.cell_type == "code"), "") != GUARD:
        found.append("the first code cell does not ask for the course: `make notebooks` puts it there")
    for cell in notebook.cells:
        if cell.cell_type == "code" and tags(cell) & {"hide-input", "hide-cell", "remove-cell", "remove-input"}:
            if not cell.metadata.get("jupyter", {}).get("source_hidden"):
                found.append(f"cell {cell.id} is not folded in JupyterLab")
        if cell.cell_type == "code" and "remove-cell" in tags(cell):
            if any(set(output.get("data", {"text"})) - {CLAIM} for output in cell.outputs):
                found.append(f"cell {cell.id} keeps numbers out of sight, and prints something in JupyterLab")
        if cell.cell_type == "markdown" and re.match(rf"#+ (?:Solution|{CURIOUS})", cell.source):
            if not cell.metadata.get("jp-MarkdownHeadingCollapsed"):
                found.append(f"the heading {cell.source.splitlines()[0]!r} is not collapsed in JupyterLab")
        framework = tags(cell) & set(FRAMEWORKS)
        if framework and cell.cell_type == "code":
            label = FRAMEWORKS[framework.pop()]
            if cell.source.splitlines()[0] != label and "remove-cell" not in tags(cell):
                found.append(f"cell {cell.id} does not begin with {label!r}")
    return found


def wrong_words(notebook) -> list[str]:
    prose = plain(text(notebook))
    return [
        f"{match[0]!r}: {instead}"
        for pattern, instead in WORDING.items()
        for match in re.finditer(rf"\b(?:{pattern})\b", prose, flags=re.IGNORECASE)
    ]


def wrong_citations(notebook) -> list[str]:
    """Works that are listed and not cited, or cited and not listed; three to eight are read."""
    everything = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown" and "solution" not in tags(c))
    body, _, rest = everything.partition("\n## References\n")
    listed = dict.fromkeys(re.findall(r"\]\((https?://[^)\s]+)\)", rest.partition("\n## ")[0]))
    cited = {address: name for name, address in CITATION.findall(body)}
    found = [f"listed and not cited: {address}" for address in listed if address not in body]
    found += [f"cited and not listed: {name} ({address})" for address, name in cited.items() if address not in listed]
    if not 3 <= len(listed) <= 8:
        found.append(f"{len(listed)} references; three to eight are read")
    return found


def wrong_onward_link(notebook, following: str | None) -> list[str]:
    end = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown").partition("## Where to go next")[2]
    links = re.findall(r"\]\((\d\d-[\w-]+)\.ipynb", end)
    if following and links[:1] != [following]:
        return [f"the next lecture is {following}; the first link at the end leads to {(links or ['none'])[0]}"]
    return []


def without_diagram(notebook) -> list[str]:
    everything = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return [] if re.search(r"!\[[^\]]{40,}\]\(diagrams/[\w-]+\.svg\)", everything) else ["no diagram of the mechanism"]


def faults(notebook, following: str | None = None) -> list[str]:
    """What is wrong with a lecture, one sentence for each; `following` is the name of the next one."""
    found = too_long(notebook) + wrong_times(notebook) + wrong_exercises(notebook) + unfolded(notebook)
    found += wrong_words(notebook) + wrong_citations(notebook) + without_diagram(notebook)
    return found + wrong_onward_link(notebook, following)
