"""The book as a reader meets it: built as it is published, without a warning, opened page by page in a browser."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.site_checker import inspect_links, inspect_page, open_window, pages_of, serve

ROOT = Path(__file__).parents[2]
URL, REPOSITORY = "https://example.org/course", "https://github.com/someone/course"
DEPLOYMENT = {"BOOK_URL": URL, "BOOK_REPOSITORY": REPOSITORY, "BOOK_BRANCH": "main"}  # as the workflow sets them


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """The folder of a book freshly built for its deployment; BOOK_SITE names one built so to check instead.

    The build for this machine alone is the second command of the README, `make book`.
    """
    if ready := os.environ.get("BOOK_SITE"):
        return Path(ready)
    out = tmp_path_factory.mktemp("book")
    jupyter_book = Path(sys.executable).with_name("jupyter-book")  # the package cannot be run with -m
    command = [str(jupyter_book), "build", str(ROOT), "--path-output", str(out)]
    # Warnings are errors, and so are references that cannot be resolved.
    built = subprocess.run(
        [*command, "-W", "-n", "--keep-going"],
        cwd=ROOT,
        env={**os.environ, **DEPLOYMENT},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert built.returncode == 0, f"the book does not build cleanly:\n{built.stdout[-2000:]}\n{built.stderr[-4000:]}"
    return out / "_build" / "html"


@pytest.fixture(scope="session")
def address(site):
    with serve(site) as base:
        yield base


@pytest.fixture(scope="session")
def findings(site, browser, address):
    """What is wrong with any page, by kind; the index of the whole site is one visit to every page."""
    by_kind: dict[str, list[str]] = {}
    with open_window(browser, address) as window:
        for name in pages_of(site):
            for finding in inspect_page(window, address, name):
                by_kind.setdefault(finding.kind, []).append(str(finding))
    return by_kind


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
    welcome = (ROOT / "book" / "index.md").read_text(encoding="utf-8")
    assert [name for name in lectures if name not in welcome] == [], "a lecture that the welcome page leaves out"


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


def test_the_address_of_the_book_leads_to_its_welcome_page(page):
    page.goto("index.html")
    page.wait_for_url("**/book/index.html")


@pytest.fixture
def page(browser, address):
    with open_window(browser, address) as window:
        yield window.new_page()


def pages_with(site: Path, text: str) -> list[str]:
    return [name for name in pages_of(site) if text in (site / name).read_text(encoding="utf-8")]


def shown_tabs(page) -> list[str]:
    """The label of the open tab of each framework set on the page, in order."""
    return page.eval_on_selector_all(
        ".sd-tab-set:has(> [data-sync-group=framework])",
        "sets => sets.map(set => set.querySelector(':scope > input:checked + label').textContent.trim())",
    )


def test_tabs_stay_in_step_within_a_page_and_across_pages(site, page):
    names = pages_with(site, 'data-sync-group="framework"')
    assert len(names) > 1, "framework tabs on two pages or more"
    for framework, label in (("tensorflow", "TensorFlow"), ("torch", "PyTorch")):
        page.goto(names[0])
        page.locator(f"label[data-sync-id={framework}]").first.click()
        for name in names:
            page.goto(name)
            have = page.locator(f".sd-tab-set:has(> label[data-sync-id={framework}])").count()
            assert shown_tabs(page).count(label) == have > 0, f"{name}: {shown_tabs(page)}"
            hidden = page.locator(f"label[data-sync-id={framework}] + .sd-tab-content:not(:visible)").count()
            folded = page.locator(f"details:not([open]) label[data-sync-id={framework}] + .sd-tab-content").count()
            assert hidden == folded
    assert page.evaluate("localStorage.getItem('sphinx-design-tab-id-framework')") == "torch"


def test_tabs_work_from_the_keyboard(site, page):
    page.goto(pages_with(site, 'data-sync-group="framework"')[0])
    before = shown_tabs(page)
    page.locator(".sd-tab-set:has(> [data-sync-group=framework]) > input").first.focus()
    page.keyboard.press("ArrowRight")
    assert shown_tabs(page)[0] != before[0]


def test_print_shows_every_tab_with_its_label(site, page):
    names = pages_with(site, 'data-sync-group="framework"')
    assert names
    for name in names:
        page.goto(name)
        page.emulate_media(media="print")
        for part in ("label", "div.sd-tab-content"):
            tabs = page.locator(f".sd-tab-set > {part}")
            folded = page.locator(f"details:not([open]) .sd-tab-set > {part}")
            shown = page.locator(f".sd-tab-set > {part}:visible")
            assert shown.count() == tabs.count() - folded.count() > 0


def test_solutions_are_folded_and_open(site, page):
    names = pages_with(site, "Show solution")
    assert names, "exercises whose solution is folded under 'Show solution'"
    for name in names:
        page.goto(name)
        for folded in page.locator("details", has=page.locator("summary", has_text="Show solution")).all():
            if not folded.is_visible():
                continue  # inside the closed tab of another framework
            content = folded.locator(":scope > *:not(summary)").first
            assert not content.is_visible()
            folded.locator("summary").first.click()
            assert content.is_visible(), name


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
    first.wait_for(timeout=60_000)
    first.click()
    page.wait_for_load_state()
    assert "softmax" in page.locator("article").first.inner_text().lower()
