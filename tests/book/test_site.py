"""The book as a reader meets it: built as it is published, without a warning, opened page by page in a browser."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.support.built_site import DEPLOYMENT, URL
from tests.support.site_checker import (
    FOLLOW,
    inspect_links,
    inspect_page,
    open_window,
    pages_of,
    telling_pages,
    weight_of,
)

ROOT = Path(__file__).parents[2]
LABELS = {"tensorflow": "TensorFlow", "torch": "PyTorch"}  # of the frameworks' tabs
SOLUTION = "Show solution"


@pytest.fixture(scope="module")
def visited(site, browser, address):
    """(findings, what a reader meets on pages with tabs or solutions): each page is opened once."""
    by_kind: dict[str, list[str]] = {}
    reader = Reader(site)
    with open_window(browser, address) as window:
        tab = window.new_page()
        for name in sorted({*telling_pages(site), *reader.pages}):
            use = (lambda page, name=name: reader.visit(page, name)) if name in reader.pages else None
            for finding in inspect_page(tab, address, name, use):
                by_kind.setdefault(finding.kind, []).append(str(finding))
    return by_kind, reader


@pytest.fixture(scope="module")
def findings(visited):
    """What is wrong with any page, by kind; what they refer to is looked for in all files by `inspect_links`."""
    return visited[0]


@pytest.mark.parametrize(
    ("kind", "promise"),
    [
        ("console", "no error in the console"),
        ("script", "no script fails"),
        ("external", "no request to another host"),
        ("missing", "every file is there"),
        ("math", "all mathematics is set"),
        ("alt", "every picture has alt text"),
        ("picture", "every picture can be seen, in light and in dark"),
        ("contrast", "all text can be read, in light and in dark"),
        ("theme", "light and dark differ"),
        ("narrow", "nothing is cut off on a telephone"),
        ("fold", "folded content has a label"),
        ("tabs", "one tab of each set is open"),
        ("heading", "one title"),
        ("weight", "no page is heavy before it is touched"),
    ],
)
def test_every_page(findings, kind, promise):
    assert not findings.get(kind), f"promised: {promise}\n" + "\n".join(findings[kind][:40])


def test_no_other_findings(findings):
    known = {mark.args[1][i][0] for mark in test_every_page.pytestmark for i in range(len(mark.args[1]))}
    assert set(findings) <= known


def test_links_lead_somewhere_and_resources_are_our_own(site):
    assert not [str(finding) for finding in inspect_links(site)]


def test_every_page_of_the_toc_is_there(site):
    import yaml

    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    listed = [toc["root"]] + [chapter["file"] for part in toc["parts"] for chapter in part["chapters"]]
    assert [name for name in listed if not (site / f"{name}.html").is_file()] == []
    lectures = sorted(path.with_suffix("").relative_to(ROOT).as_posix() for path in ROOT.glob("notebooks/*.ipynb"))
    assert [name for name in lectures if name not in listed] == [], "a lecture that the book leaves out"
    welcome = (site / "book" / "index.html").read_text(encoding="utf-8").partition("<article")[2]
    assert [name for name in lectures if f'href="../{name}.html"' not in welcome] == [], "missing on the welcome page"


def test_the_workflow_publishes_what_is_tested_here():
    import yaml

    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "course.yml").read_text(encoding="utf-8"))
    (step,) = [step for step in workflow["jobs"]["book"]["steps"] if step.get("run") == "make book"]
    assert step["env"].keys() == DEPLOYMENT.keys()


def test_a_shared_link_shows_the_card(site):
    import struct

    card = (site / "_static" / "card.png").read_bytes()
    assert struct.unpack(">II", card[16:24]) == (1200, 630)
    shared = ["index.html", *(name for name in pages_of(site) if name.startswith(("book/index", "notebooks/")))]
    assert len(shared) > 9
    for name in shared:
        html = (site / name).read_text(encoding="utf-8")
        assert f'<meta property="og:image" content="{URL}/_static/card.png" />' in html, name
        assert html.count('property="og:image"') == html.count('name="twitter:card"') == 1, name


def test_the_address_of_the_book_leads_to_its_welcome_page(site, page):
    icon = re.search(r'<link rel="icon" href="([^"]*)"', (site / "index.html").read_text(encoding="utf-8"))
    assert icon and (site / icon[1]).is_file(), "the browser asks for one that is not there"
    page.goto("index.html")
    page.wait_for_url("**/book/index.html")


@pytest.fixture
def page(browser, address):
    with open_window(browser, address) as window:
        yield window.new_page()


OF_FILES = ("CORS", "ERR_FAILED", "Failed to fetch")  # what a browser says of a page that asks for another's file


def test_the_book_opens_without_a_server(site, browser):
    with open_window(browser, site.as_uri()) as window:
        tab, wrong = window.new_page(), []
        tab.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.goto((site / "index.html").as_uri())
        tab.wait_for_url("**/book/index.html")
        tab.locator("article").get_by_role("link", name="Self-attention", exact=True).first.click()
        tab.wait_for_url("**/notebooks/21-self-attention.html")
        tab.wait_for_function("document.querySelectorAll('article mjx-container').length > 20")
        tab.goto((site / "search.html").as_uri() + "?q=softmax")
        tab.locator("#search-results li a").first.wait_for()
    # a browser lets no page read another's file, so the search quotes none
    assert [text for text in wrong if not any(said in text for said in OF_FILES)] == []


LONG, HEAVY = "notebooks/24-the-transformer.html", "notebooks/26-training-a-translator.html"


def test_the_contents_follow_the_reader(page):
    page.set_viewport_size({"width": 1400, "height": 420})
    page.goto(LONG)
    page.evaluate("document.querySelector('#references').scrollIntoView()")
    page.wait_for_function(
        """() => {
            const contents = document.querySelector(".bd-sidebar-secondary"), box = contents.getBoundingClientRect();
            const link = [...contents.querySelectorAll("a.active")].at(-1)?.getBoundingClientRect();
            return contents.scrollTop > 0 && link && link.top >= box.top && link.bottom <= box.bottom;
        }"""
    )


def test_a_figure_opens_in_full_and_closes_again(page):
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(LONG)
    figure = page.locator(".cell_output img").first
    figure.focus()
    page.keyboard.press("Enter")
    full = page.locator("dialog.figure-in-full img")
    assert full.get_attribute("src") == figure.get_attribute("src")
    assert full.bounding_box()["width"] > 2 * figure.bounding_box()["width"]
    page.keyboard.press("Escape")
    full.wait_for(state="hidden")


def test_a_button_that_copies_says_what_it_copies(page):
    page.goto(LONG)
    names = [button.get_attribute("aria-label") for button in page.locator("button.copybtn").all()]
    assert len(names) == len(set(names)) > 20
    assert {re.sub(r" \d+: .*", "", name) for name in names} == {"Copy code", "Copy output"}
    assert not [name for name in names if ": #" in name], "a remark stands over many cells"
    button = page.locator("button.copybtn:visible").first
    name = button.get_attribute("aria-label")
    button.focus()
    page.keyboard.press("Enter")
    expect(button).to_have_accessible_name(name.replace("Copy", "Copied!"))
    expect(button).to_have_accessible_name(name)


def test_every_icon_is_drawn_by_a_small_script(site, page):
    assert (site / "_static" / "scripts" / "fontawesome.js").stat().st_size < 150_000
    for name in ("book/index.html", LONG, "book/api/torch.html"):
        page.goto(name)
        page.wait_for_function("document.querySelectorAll('svg.svg-inline--fa path').length > 5")
        assert page.locator("i[class*=fa-]").count() == 0, "FontAwesome has no drawing for it"
        assert page.locator("svg.svg-inline--fa:not(:has(path))").count() == 0


@pytest.mark.parametrize(("name", "most"), [("book/index.html", 700_000), (LONG, 1_800_000), (HEAVY, 1_800_000)])
def test_a_page_is_light_before_the_first_touch(site, page, name, most):
    page.goto(name)
    page.wait_for_load_state("networkidle")
    total = weight_of(page)
    assert 200_000 < total < most, f"{total / 1e6:.2f} MB before the first touch, uncompressed"


def test_plain_words_of_code_have_the_colour_of_all_code(site, page):
    assert '<span class="n">' not in (site / LONG).read_text(encoding="utf-8")
    page.goto(LONG)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.evaluate(FOLLOW, scheme)
        assert page.evaluate("""() => {
            const colour = (element) => getComputedStyle(element).color;
            return [...document.querySelectorAll(".highlight")].every((code) => {
                const word = code.querySelector("pre").appendChild(document.createElement("span"));
                const plain = colour(word);
                word.className = "n";
                return plain === colour(word) && plain === colour(code);
            });
        }"""), scheme


def test_formulas_are_set_where_they_are(site):
    with_mathjax = set(pages_with(site, "/mathjax/startup.js"))
    assert "book/index.html" not in with_mathjax
    assert {LONG, "book/notation.html", "book/instructor.html"} < with_mathjax


def pages_with(site: Path, text: str) -> list[str]:
    return [name for name in pages_of(site) if text in (site / name).read_text(encoding="utf-8")]


def shown_tabs(page) -> list[str]:
    """The label of the open tab of each framework set on the page, in order."""
    return page.eval_on_selector_all(
        ".sd-tab-set:has(> [data-sync-group=framework])",
        "sets => sets.map(set => set.querySelector(':scope > input:checked + label').textContent.trim())",
    )


def not_shown(page, framework: str) -> list[str]:
    """What is wrong if every set of tabs that has this framework should show it."""
    have = page.locator(f".sd-tab-set:has(> label[data-sync-id={framework}])").count()
    hidden = page.locator(f"label[data-sync-id={framework}] + .sd-tab-content:not(:visible)").count()
    folded = page.locator(f"details:not([open]) label[data-sync-id={framework}] + .sd-tab-content").count()
    shown = shown_tabs(page)
    right = shown.count(LABELS[framework]) == have > 0 and hidden == folded
    return [] if right else [f"{page.url}: {framework} is chosen, {shown} are shown, {hidden} hidden"]


def not_printed(page) -> list[str]:
    """What is wrong if every tab should be printed with its label."""
    page.emulate_media(media="print")
    wrong = []
    for part in ("label", "div.sd-tab-content"):
        tabs = page.locator(f".sd-tab-set > {part}").count()
        folded = page.locator(f"details:not([open]) .sd-tab-set > {part}").count()
        shown = page.locator(f".sd-tab-set > {part}:visible").count()
        if not shown == tabs - folded > 0:
            wrong.append(f"{page.url}: {shown} of {tabs} {part}s, {folded} of them folded")
    page.emulate_media(media="screen")
    return wrong


def not_folded(page) -> list[str]:
    """What is wrong if each solution should be folded and open with a click."""
    wrong = []
    for folded in page.locator("details", has=page.locator("summary", has_text=SOLUTION)).all():
        if not folded.is_visible():
            continue  # inside the closed tab of another framework
        content = folded.locator(":scope > *:not(summary)").first
        before = content.is_visible()
        folded.locator("summary").first.click()
        if before or not content.is_visible():
            wrong.append(f"{page.url}: a solution that was {'open' if before else 'folded, and stays so'}")
    return wrong


class Reader:
    """Chooses another framework on each page with tabs, prints it, and opens solutions; `met` is what went wrong."""

    def __init__(self, site: Path):
        self.with_tabs = pages_with(site, 'data-sync-group="framework"')
        self.with_solutions = pages_with(site, SOLUTION)
        self.pages = {*self.with_tabs, *self.with_solutions}
        self.met: dict[str, list[str]] = {"tabs": [], "print": [], "solutions": []}
        self.chosen, self.other = None, next(iter(LABELS))

    def visit(self, page, name: str) -> None:
        if name in self.with_tabs:
            if self.chosen is not None:
                self.met["tabs"] += not_shown(page, self.chosen)  # as on the page before
            page.locator(f"label[data-sync-id={self.other}]:visible").first.click()
            self.met["tabs"] += not_shown(page, self.other)
            self.chosen, (self.other,) = self.other, LABELS.keys() - {self.other}
            kept = page.evaluate("localStorage.getItem('sphinx-design-tab-id-framework')")
            self.met["tabs"] += [] if kept == self.chosen else [f"{self.chosen} was chosen, {kept} is kept"]
            self.met["print"] += not_printed(page)
        if name in self.with_solutions:
            self.met["solutions"] += not_folded(page)


@pytest.mark.parametrize(
    ("what", "promise"),
    [
        ("tabs", "tabs stay in step within a page and across pages"),
        ("print", "print shows every tab with its label"),
        ("solutions", "solutions are folded and open"),
    ],
)
def test_pages_with_tabs_and_solutions(visited, what, promise):
    reader = visited[1]
    assert len(reader.with_tabs) > 1 and reader.with_solutions, "tabs on two pages or more, exercises with solutions"
    assert not reader.met[what], f"promised: {promise}\n" + "\n".join(reader.met[what][:40])


def test_tabs_work_from_the_keyboard(site, page):
    page.goto(pages_with(site, 'data-sync-group="framework"')[0])
    before = shown_tabs(page)
    page.locator(".sd-tab-set:has(> [data-sync-group=framework]) > input").first.focus()
    page.keyboard.press("ArrowRight")
    assert shown_tabs(page)[0] != before[0]


@pytest.mark.parametrize("side", ["primary", "secondary"])
def test_the_focus_returns_from_contents_that_lie_over_the_page(page, side):
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(LONG)
    toggle = page.locator(f".{side}-toggle")
    toggle.focus()
    page.keyboard.press("Enter")
    over = page.locator(f"#pst-{side}-sidebar-modal")
    over.wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    over.wait_for(state="hidden")
    expect(toggle).to_be_focused()


RING = """(element) => {
  const style = getComputedStyle(element);
  return (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 1) || style.boxShadow !== "none";
}"""


def test_who_comes_by_keyboard_sees_where(page):
    for width in (1400, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(LONG)
        page.keyboard.press("Tab")
        buttons = page.locator(".bd-header-article :is(a, button):visible").all()
        for button in buttons:
            button.focus()
            assert button.evaluate(RING), button.get_attribute("aria-label")
        assert len(buttons) > 4


def test_the_reader_can_choose_light_or_dark(page):
    page.goto("book/index.html")
    seen = set()
    for _ in range(3):  # automatic, light, dark
        page.locator("button.theme-switch-button:visible").first.click()
        seen.add(page.evaluate("document.documentElement.dataset.theme"))
    assert seen == {"light", "dark"}
    kept = page.evaluate("document.documentElement.dataset.theme")
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == kept


def test_search_finds_a_page(page):
    page.goto("search.html?q=softmax")
    first = page.locator("#search-results li a").first
    first.wait_for()
    first.click()
    page.wait_for_load_state()
    assert "softmax" in page.locator("article").first.inner_text().lower()


def test_search_quotes_the_text_and_not_the_buttons_around_it(page):
    page.goto("search.html?q=recurrence")
    title = page.locator("#search-results li", has=page.get_by_role("link", name="What recurrence costs")).first
    quoted = title.locator("p.context")
    quoted.wait_for()
    assert "recurrence costs" in quoted.inner_text()
    assert not re.search("Contents|Download|Print", quoted.inner_text())
