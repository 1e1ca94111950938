"""Live figures as a reader meets them: opened from the file system and from a server, touched, typed into."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from bs4 import BeautifulSoup

from tests.support.live_page import FIGURES, PLAIN, draw_live, live_figures, pack_weights, write_page
from tests.support.site_checker import COLOURS, CONTENT, serve
from tests.support.tiny_book import build, text

SCRIPTS = Path(live_figures.__file__).parents[1] / "_static" / "live"
WEIGHTS = "/weights/"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("live")).parent


class Visit:
    """A page with everything that it asked for and complained of."""

    def __init__(self, browser, url, **settings):
        self.page = browser.new_page(**settings)
        self.page.set_default_timeout(600_000)
        self.requests, self.complaints = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(url)
        self.page.wait_for_selector(".live-form")

    def figure(self, name):
        return self.page.locator(f".live-figure[data-live={name}]")

    def ask(self, name, said):
        """Type a text into a figure and press Enter; returns what the status says then."""
        figure = self.figure(name)
        figure.locator("input[type=text]").fill(said)
        figure.locator(".live-status").evaluate("(status) => { status.textContent = ''; }")
        figure.locator("input[type=text]").press("Enter")
        self.page.wait_for_function(
            f"""() => {{
              const said = document.querySelector("[data-live={name}] .live-status").textContent;
              return said && !/^(Loading|The model is ready|The model computes)/.test(said);
            }}"""
        )
        return figure.locator(".live-status").inner_text()


@pytest.fixture(scope="module")
def visit(browser, folder):
    opened = Visit(browser, (folder / "index.html").as_uri())
    yield opened
    opened.page.close()


@pytest.mark.parametrize("name", FIGURES + PLAIN)
def test_the_committed_drawing_is_what_the_models_say(name):
    committed = (draw_live.FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert committed == draw_live.svg(name), "run python book/draw_live.py"


def test_each_figure_has_a_drawing_a_script_and_weights():
    everything = set(live_figures.NAMES)
    assert everything == set(draw_live.DRAWN) == {path.stem for path in draw_live.FOLDER.glob("*.svg")}
    assert set(live_figures.CHECKPOINT.values()) == set(pack_weights.CHECKPOINTS)
    files = {path.relative_to(SCRIPTS).with_suffix("").as_posix() for path in SCRIPTS.rglob("*.js")}
    modules = re.search(r"const MODULES = \[(.*?)\]", (SCRIPTS / "live.js").read_text(encoding="utf-8"), re.DOTALL)
    assert files == set(live_figures.scripts(live_figures.NAMES)) | set(re.findall(r'"(\w+)"', modules[1]))


@pytest.mark.parametrize("path", sorted(SCRIPTS.rglob("*.js")), ids=lambda path: path.stem)
def test_a_module_is_short_and_asks_nothing_of_the_network(path):
    script = path.read_text(encoding="utf-8")
    assert len(script.splitlines()) <= 300
    script = script.replace("http://www.w3.org/2000/svg", "")  # the name of a namespace, which no browser asks for
    assert not re.search(r"https?://|\bfetch\(|XMLHttpRequest|import\s", script)


@pytest.mark.parametrize("scheme", ["file", "http"])
def test_nothing_is_loaded_before_the_first_touch_and_nothing_from_elsewhere(browser, folder, scheme):
    with serve(folder) as address:
        base = address if scheme == "http" else folder.as_uri()
        visit = Visit(browser, f"{base.rstrip('/')}/index.html")
        before = list(visit.requests)
        assert not [url for url in before if WEIGHTS in url or url.endswith("/tensors.js")]
        loaded = [folder / url.removeprefix(base).lstrip("/") for url in before if url.startswith(base)]
        assert sum(path.stat().st_size for path in loaded if path.is_file()) < 135_000  # of four figures
        visit.figure("translator").locator(".live-status").evaluate(
            """(status) => {
              window.said = [];  // all of it: a fast disk has the weights before one could look
              new MutationObserver(() => window.said.push(status.textContent)).observe(status, { childList: true });
            }"""
        )
        visit.figure("translator").locator("input[type=text]").focus()
        status = visit.ask("translator", "Nunca he visto el mar.")
        assert "MB" in visit.page.evaluate("window.said.find((text) => text)")
        assert status.startswith("Translated in")
        assert visit.figure("translator").locator(".live-answer").inner_text() == "I've never seen the sea."
        weights = [url for url in visit.requests if WEIGHTS in url]
        assert [url.rpartition("/")[2] for url in weights] == ["translator-es-en.js"], "no other model, and once"
        assert not [url for url in visit.requests if not url.startswith((base, "blob:", "data:"))]
        assert not visit.complaints
        visit.page.close()


@pytest.mark.parametrize("name", ["translator", "heads"])
def test_the_first_answer_is_what_the_drawing_shows(visit, name):
    """To half a hundredth for the drawing's rounding, half for the page's, and a tenth of that for the weights'."""
    figure = visit.figure(name)
    visit.ask(name, draw_live.TEXTS[name])
    svg = BeautifulSoup((draw_live.FOLDER / f"{name}.svg").read_text(encoding="utf-8"), "html.parser")
    drawn = [float(t.text) for t in svg.find_all("text") if re.fullmatch(r"\.\d\d|1\.00", t.text)]
    shown = figure.locator(".live-table td[style]").all_text_contents()
    np.testing.assert_allclose([float(cell) for cell in shown], drawn, atol=0.011)
    assert figure.locator("svg").count() == 0, "the answer takes the drawing's place"


def test_the_first_filled_blank_is_what_the_drawing_shows(visit):
    visit.ask("blank", draw_live.TEXTS["blank"])
    rows = visit.figure("blank").locator(".live-bars tbody tr")
    shown = [(row.locator("th").inner_text(), float(row.locator("td").nth(1).inner_text())) for row in rows.all()]
    expected = draw_live.filled(draw_live.TEXTS["blank"], len(shown))
    assert [token for token, _ in shown][:2] == [token for token, _ in expected][:2] == ["states", "kingdom"]
    np.testing.assert_allclose([p for _, p in shown], [p for _, p in expected], atol=0.002)
    assert "" not in visit.figure("blank").locator("th").all_inner_texts(), "a header without a name"


def test_the_beam_grows_step_by_step_to_what_its_drawing_shows(visit):
    visit.ask("beam", draw_live.TEXTS["beam"])
    figure, keyboard = visit.figure("beam"), visit.page.keyboard
    found, steps = draw_live.searched(draw_live.TEXTS["beam"], draw_live.WIDTH)
    said = figure.locator(".live-said")
    figure.get_by_label("Step").focus()
    counts = {"cached": 0, "uncached": 0}
    for t, step in enumerate(steps, start=1):
        keyboard.press("ArrowRight" if t > 1 else "Home")
        assert said.inner_text().startswith(f"Step {t} of {len(steps)}. ")
        rows = figure.locator(".live-bars").first.locator("tbody tr").all()
        cells = [row.locator("td").all_inner_texts()[1:] for row in rows]
        for (p, fate), candidate in zip(cells, step["candidates"], strict=True):
            assert fate == candidate["fate"]
            assert float(p.removeprefix("<")) == pytest.approx(candidate["p"], abs=0.011)
        counts = {kind: counts[kind] + step[kind] for kind in counts}
        told = figure.locator(".live-bars").nth(1).locator("tbody td:last-child").all_inner_texts()
        assert told == [str(counts["cached"]), str(counts["uncached"])]
        assert figure.locator(".live-tree rect").count() == 1 + sum(len(step["candidates"]) for step in steps[:t])
    translation = "".join(found[:-1]).replace("▁", " ").strip()
    assert said.inner_text().endswith(f"The search is over and takes “{translation}”.")
    assert figure.locator(".live-tree g.live-best").count() == 1 + len(found), "from the start token on"
    assert f"computes {counts['cached']} positions" in draw_live.DRAWN["beam"]().alt


def test_a_beam_of_one_is_greedy_and_a_button_goes_on(visit):
    figure = visit.figure("beam")
    figure.get_by_label("Width of the beam").select_option("0")
    visit.ask("beam", "Nunca he visto el mar.")
    for _ in range(40):
        figure.get_by_role("button", name="Next step").click()
    assert "The search is over" in figure.locator(".live-said").inner_text()
    assert (
        figure.locator(".live-tree g.live-kept, .live-tree g.live-ended").count()
        == figure.locator("g.live-best").count()
    )
    figure.get_by_label("Width of the beam").select_option("1")


@pytest.mark.parametrize(
    ("name", "said", "expected"),
    [
        ("beam", "", "type a sentence"),
        ("translator", "", "type a sentence"),
        ("translator", "  ", "type a sentence"),
        ("translator", "una casa muy grande " * 20, "60 are the most"),
        ("translator", "猫が寝ている", "knows nothing"),
        ("translator", "a\ud800", "half of a character"),
        ("heads", "", "type a sentence"),
        ("heads", "the king and " * 20, "32 are the most"),
        ("heads", "猫", "knows nothing"),
        ("blank", "No blank at all.", "___"),
        ("blank", "Two ___ are ___ many.", "only one"),
        ("blank", "An ellipsis … is no blank.", "___"),
    ],
)
def test_a_mistake_is_said_where_it_can_be_mended(visit, name, said, expected):
    figure = visit.figure(name)
    if "\ud800" in said:  # which no keyboard types, and Playwright cannot send
        figure.locator("input[type=text]").evaluate("(input) => { input.value = 'a' + String.fromCharCode(0xd800); }")
        figure.locator("button[type=submit]").click()
        visit.page.wait_for_selector(f"[data-live={name}] .live-wrong")
        status = figure.locator(".live-status").inner_text()
    else:
        status = visit.ask(name, said)
    assert expected in status
    field = figure.locator("input[type=text]")
    assert field.get_attribute("aria-invalid") == "true"
    described = visit.page.locator(f"#{field.get_attribute('aria-describedby')}")
    assert described.inner_text() == status and described.get_attribute("aria-live") == "polite"
    visit.ask(name, draw_live.TEXTS[name])
    assert field.get_attribute("aria-invalid") is None
    assert not visit.complaints


def test_an_unknown_character_is_named(visit):
    assert "lacks “猫”" in visit.ask("translator", "El 猫 duerme.")
    assert "lacks “U+202E”," in visit.ask("translator", "El \u202evino."), "it would turn the sentence around"
    assert "lacks “\u2068ש\u2069”," in visit.ask("translator", "El ש duerme."), "and this one its neighbours"


def test_a_slow_answer_is_announced(visit):
    visit.ask("translator", draw_live.TEXTS["translator"])
    said = visit.page.evaluate(
        """async () => {
          const figure = document.querySelector("[data-live=translator]");
          const [status, ask, seen] = [figure.querySelector(".live-status"), live.ask, []];
          new MutationObserver(() => seen.push(status.textContent)).observe(status, { childList: true });
          live.ask = (...question) => new Promise((go) => setTimeout(go, 900)).then(() => ask(...question));
          figure.querySelector("button[type=submit]").click();
          for (let i = 0; i < 600 && seen.length < 2; i++) await new Promise((go) => setTimeout(go, 100));
          live.ask = ask;
          return seen;
        }"""
    )
    assert said[0] == "The model computes …" and said[1].startswith("Translated in") and len(said) == 2


def test_one_unknown_token_is_one(visit):
    assert visit.ask("blank", "😀 ___").endswith("does not know 1 token, read as [UNK].")
    assert visit.ask("blank", "😀 ___ 猫").endswith("does not know 2 tokens, read as [UNK].")


@pytest.mark.parametrize("name", FIGURES)
def test_no_old_answer_stands_under_a_question_that_has_none(visit, name):
    figure = visit.figure(name)
    visit.ask(name, draw_live.TEXTS[name])
    assert figure.locator("table").count() >= 1
    assert "type a sentence" in visit.ask(name, "")
    assert figure.locator("table").count() == 0 and figure.locator(".live-said").all_inner_texts() in ([], [""])
    assert figure.locator(".live-result").inner_text() == ""
    assert figure.locator(".live-answer").all_inner_texts() in ([], [""])
    visit.ask(name, draw_live.TEXTS[name])
    assert figure.locator("table").count() >= 1


def test_the_translation_of_the_first_sentence_stands_there_until_another_is_asked(browser, folder):
    visit = Visit(browser, (folder / "index.html").as_uri())
    answer = visit.figure("translator").locator(".live-answer")
    assert answer.inner_text() == draw_live.alignment(draw_live.TEXTS["translator"])[0] == "I like white wine."
    assert "type a sentence" in visit.ask("translator", "")
    assert answer.inner_text() == "" and visit.figure("translator").locator("svg.diagram").is_visible()
    visit.page.close()


def test_a_word_without_end_stays_on_a_phone(browser, folder):
    visit = Visit(browser, (folder / "index.html").as_uri(), viewport={"width": 360, "height": 900})
    visit.ask("translator", "1234567890" * 4)
    answer = visit.figure("translator").locator(".live-answer").inner_text()
    assert max(map(len, answer.split())) > 50, "the model does not repeat itself: choose another text"
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 360
    visit.page.close()


def test_each_figure_says_under_which_licence_its_weights_are():
    from course_lib.data.registry import REGISTRY

    # what was trained on a corpus that allows it has the course's own licence; the other one that of its registry entry
    own = (Path(__file__).parents[2] / "LICENSE").read_text(encoding="utf-8").split(" License")[0]
    of_weights = {"translator-es-en": own, "bert-en": REGISTRY["bert-en"].licence.split(",")[0]}
    for name, checkpoint in live_figures.CHECKPOINT.items():
        html = BeautifulSoup(live_figures.element(name, "<svg></svg>", 1, "there.html"), "html.parser")
        said = html.select_one(".live-licence")
        assert said.get_text().startswith(f"Weights: {of_weights[checkpoint]}; they learned from ")
        assert said.a["href"] == "there.html"
        corpus = {"translator-es-en": "tatoeba-es-en", "bert-en": "wikitext-2"}[checkpoint]
        assert f", {REGISTRY[corpus].licence}." in said.get_text()


def test_a_figure_works_from_the_keyboard_alone(visit):
    figure, keyboard = visit.figure("translator"), visit.page.keyboard
    visit.ask("translator", draw_live.TEXTS["translator"])
    for _ in range(20):
        keyboard.press("Tab")
        if visit.page.evaluate("document.activeElement.type") == "radio":
            break
    said = figure.locator(".live-said")
    assert re.fullmatch(r"Before it wrote “wine”, it looked most at “vino” \(0\.9\d\), then .*", said.inner_text())
    keyboard.press("ArrowLeft")
    assert re.fullmatch(r"Before it wrote “white”, it looked most at “blanco” \(0\.6\d\), then .*", said.inner_text())
    keyboard.press("Tab")
    keyboard.press("Enter")
    assert figure.locator("details[open] .live-table").count() == 1


def test_a_token_that_comes_twice_is_told_from_its_double(visit):
    visit.ask("heads", "The cat saw the dog.")
    figure = visit.figure("heads")
    figure.locator(".live-line label", has_text="dog").click()
    said = figure.locator(".live-said").inner_text()
    assert said.startswith("“dog” looks most at “the” at position 5 ("), "of two, the one before it"
    figure.locator(".live-line label", has_text="the").first.click()
    assert figure.locator(".live-said").inner_text().startswith("“the” at position 2 looks most at ")


def test_the_sentence_stays_in_the_page_from_answer_to_answer(visit):
    visit.ask("heads", "The cat saw the dog.")
    said = visit.figure("heads").locator(".live-said")
    said.evaluate("(element) => { element.dataset.kept = 'yes'; }")
    visit.ask("heads", "A bird sang.")
    assert said.get_attribute("data-kept") == "yes", "what is made anew is read from its beginning, or not at all"
    assert said.get_attribute("aria-live") == "polite"


def test_another_layer_and_head_show_other_weights_for_the_same_token(visit):
    figure = visit.figure("heads")
    visit.ask("heads", draw_live.TEXTS["heads"])
    figure.locator(".live-line label", has_text="queen").click()
    assert "looks most at “the”" in figure.locator(".live-said").inner_text()  # the head of the drawing: one before
    figure.get_by_label("Head").select_option("4")
    assert "“queen” looks most at" in figure.locator(".live-said").inner_text()
    cells = figure.locator(".live-table tbody tr", has_text="queen").locator("td[style]")
    row = [float(cell) for cell in cells.all_text_contents()]
    assert sum(row) == pytest.approx(1, abs=0.06)
    assert figure.locator("details[open]").count() == 0
    figure.locator("summary").click()
    figure.get_by_label("Head").select_option("0")
    assert figure.locator("details[open]").count() == 1, "the table stays as the reader left it"
    grid = np.array([float(c) for c in figure.locator(".live-table td[style]").all_text_contents()])
    n = int(len(grid) ** 0.5)
    np.testing.assert_allclose(grid.reshape(n, n).sum(axis=1), 1, atol=0.005 * n)


def test_a_temperature_divides_the_scores_of_the_head_once_more(visit):
    from course_lib.numpy import BertForMaskedLM, softmax
    from course_lib.text.wordpiece import WordPiece

    figure = visit.figure("heads")
    visit.ask("heads", draw_live.TEXTS["heads"])
    figure.get_by_label("Layer").select_option(index=1)
    figure.get_by_label("Head").select_option("2")
    slide = figure.get_by_role("slider", name="Temperature")
    ids = WordPiece.from_pretrained("bert-en").encode([draw_live.TEXTS["heads"]]).ids
    weights = BertForMaskedLM.from_pretrained("bert-en")(ids, return_layers=True).weights[1][0, 1]
    for x, said in (("-2.5", "0.18 = 1/√32: no scale is left"), ("3", "8.00"), ("0", "1.00")):
        slide.evaluate("(slide, x) => { slide.value = x; slide.dispatchEvent(new Event('input')); }", x)
        assert slide.get_attribute("aria-valuetext") == said
        cells = figure.locator(".live-table td[style]").evaluate_all("(cells) => cells.map((cell) => cell.textContent)")
        shown = np.reshape(np.array(cells, dtype=float), weights.shape)
        np.testing.assert_allclose(shown, softmax(np.log(weights) / 2 ** float(x)), atol=0.01)
    assert slide.evaluate("(slide) => slide.isConnected"), "who drags it keeps hold of it"


def test_a_later_question_overtakes_an_earlier_one(visit):
    figure = visit.figure("translator")
    visit.ask("translator", draw_live.TEXTS["translator"])
    visit.page.evaluate(
        """() => {
          const answer = document.querySelector("[data-live=translator] .live-answer");
          window.shown = [];
          new MutationObserver(() => window.shown.push(answer.textContent)).observe(answer, { childList: true });
          document.querySelectorAll("[data-live=translator] .live-example").forEach((chip) => chip.click());
        }"""
    )
    assert figure.locator("input[type=text]").input_value() == figure.locator(".live-example").last.inner_text()
    visit.page.wait_for_function("window.shown.at(-1)?.includes('terrible')")
    assert visit.page.evaluate("window.shown") == ["This wallet is terrible."], "no answer to what nobody asks any more"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_answers_can_be_read_in_light_and_dark_and_on_a_phone(browser, folder, theme, width):
    visit = Visit(browser, (folder / "index.html").as_uri(), viewport={"width": width, "height": 900})
    visit.page.evaluate(
        """(theme) => {
          document.documentElement.dataset.theme = theme;
          const dark = theme === "dark";
          const [ground, ink, muted] = dark ? ["#121212", "#ced6dd", "#9ca4af"] : ["#fff", "#222832", "#48566b"];
          document.body.style.cssText = `--pst-color-background: ${ground}; --pst-color-text-base: ${ink};
            --pst-color-text-muted: ${muted}; background: ${ground}; color: ${ink}`;
        }""",
        theme,  # its colours in the book, where the theme sets them
    )
    for name in FIGURES:
        visit.ask(name, draw_live.TEXTS[name])
    for summary in visit.page.locator("details summary").all():
        summary.click()
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    assert not [finding for finding in visit.page.evaluate(CONTENT) if finding[0] != "heading"]
    assert not visit.page.evaluate(COLOURS, theme)["findings"]
    small = visit.page.eval_on_selector_all(
        ".live-figure :is(button, select, .live-line label)",
        "all => all.map(e => e.getBoundingClientRect()).filter(b => Math.min(b.width, b.height) < 24).length",
    )
    assert small == 0, "a finger needs 24 pixels (WCAG 2.2, 2.5.8)"
    unnamed = visit.page.eval_on_selector_all(
        ".live-figure :is(input, select)", "all => all.filter(e => !e.labels.length).length"
    )
    assert unnamed == 0
    visit.page.close()


def test_without_scripts_the_drawing_stands_there_and_says_what_it_shows(browser, folder):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((folder / "index.html").as_uri())
    for name in FIGURES:
        drawing = page.locator(f".live-figure[data-live={name}] svg")
        assert drawing.is_visible() and drawing.get_attribute("aria-label") == draw_live.DRAWN[name]().alt
    assert page.locator("form, input, button").count() == 0, "nothing that would not work"
    context.close()


def test_a_file_that_is_not_there_is_said_and_can_be_tried_again(browser, tmp_path):
    page = write_page(tmp_path, ("blank",))
    weights = tmp_path / "_static" / "live" / "weights" / "bert-en.js"
    weights.rename(tmp_path / "aside.js")
    visit = Visit(browser, page.as_uri())
    assert "could not be loaded" in visit.ask("blank", draw_live.TEXTS["blank"])
    (tmp_path / "aside.js").rename(weights)
    assert visit.ask("blank", draw_live.TEXTS["blank"]).startswith("Most probable: “states”")
    visit.page.close()


def test_a_file_that_ends_early_is_said_and_can_be_tried_again(browser, tmp_path):
    page = write_page(tmp_path, ("blank",))
    weights = tmp_path / "_static" / "live" / "weights" / "bert-en.js"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    with serve(tmp_path) as address:  # a file that was opened as one may come from the browser's memory
        visit = Visit(browser, address + page.name)
        visit.page.route("**/weights/*.js", lambda route: route.fulfill(path=weights))
        assert "is damaged" in visit.ask("blank", draw_live.TEXTS["blank"])
        weights.write_bytes(whole)
        visit.ask("blank", draw_live.TEXTS["blank"])  # what the first touch found may still be said in between
        visit.page.wait_for_function(
            "document.querySelector('[data-live=blank] .live-status').textContent.startsWith('Most probable: “states”')"
        )
        visit.page.close()


def test_the_page_never_stalls_while_a_model_computes(browser, folder):
    """The page counts frames of its own while the worker translates a long sentence."""
    visit = Visit(browser, (folder / "index.html").as_uri())
    visit.ask("translator", "Hola.")
    ticks = visit.page.evaluate(
        """async () => {
          let ticks = 0;
          const timer = setInterval(() => ticks++, 5);
          const text = "Una casa muy grande y muy vieja que tiene una puerta roja y cuatro ventanas.";
          await live.ask("translator-es-en", "translate", { text, width: 8 });
          clearInterval(timer);
          return ticks;
        }"""
    )
    assert ticks >= 3
    visit.page.close()


def test_the_directive_and_a_lectures_image_become_live(tmp_path):
    cells = [
        text("```{live-figure} translator\n```"),
        text("![What a head looks at.](notebooks/live/heads.svg)"),
        text("![Why there is a scale.](notebooks/live/scale.svg)"),
        text("![A plain diagram.](notebooks/live/other.svg)"),
    ]
    shown = ("translator", "heads", "scale")
    drawings = {f"notebooks/live/{n}.svg": (draw_live.FOLDER / f"{n}.svg").read_text() for n in shown}
    files = {**{"notebooks/.keep": ""}, **{name: content for name, content in drawings.items()}}
    files["notebooks/live/other.svg"] = drawings["notebooks/live/heads.svg"]
    book = build(tmp_path, cells, extensions=("live_figures",), files=files)
    assert book.warnings == ""
    figures = book.page().select(".live-figure")
    assert [figure["data-live"] for figure in figures] == list(shown)
    assert all(figure.svg["data-text"] for figure in figures[:2])
    assert set(figures[2].attrs) == {"class", "data-live"} and not figures[2].select(".live-licence"), "it has no model"
    assert float(figures[0]["data-megabytes"]) == pytest.approx(4.9, abs=0.3)
    scripts = [script.get("src", "") for script in book.page().find_all("script")]
    found = [src for src in scripts if "live/" in src]
    assert [src.partition("live/")[2].partition(".js")[0] for src in found] == live_figures.scripts(shown)
    written = sorted((book.out / "_static" / "live" / "weights").glob("*.js"))
    assert [path.stem for path in written] == sorted(pack_weights.CHECKPOINTS)


def test_pages_without_a_live_figure_load_nothing_of_it(tmp_path):
    book = build(tmp_path, [text("Words.")], extensions=("live_figures",))
    assert "live/" not in str(book.page().head)


def test_an_unknown_figure_is_named(tmp_path):
    book = build(tmp_path, [text("```{live-figure} oracle\n```")], extensions=("live_figures",))
    assert "no live figure 'oracle'" in book.warnings


def test_weights_are_written_again_only_when_something_changed(tmp_path, monkeypatch):
    times = []
    for bits in (12, 12, 8):
        monkeypatch.setattr(pack_weights, "BITS", bits)
        monkeypatch.setattr(pack_weights, "script", lambda name, bits=bits: f"{name} {bits}\n")
        times.append([path.stat().st_mtime_ns for path in pack_weights.write(tmp_path)])
    assert times[0] == times[1] and all(a != b for a, b in zip(times[1], times[2], strict=True))
    assert "8 bits" in (tmp_path / "bert-en.js").read_text(encoding="utf-8").splitlines()[0]


def test_an_interrupted_writing_leaves_no_half_a_file(tmp_path, monkeypatch):
    def interrupted(name):
        raise KeyboardInterrupt

    monkeypatch.setattr(pack_weights, "script", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pack_weights.write(tmp_path / "there")
    assert not list(tmp_path.rglob("*.js"))


def test_the_command_writes_where_it_is_told(tmp_path, capsys, monkeypatch):
    import runpy

    monkeypatch.setattr(sys, "argv", ["pack_weights.py", str(tmp_path / "there")])
    runpy.run_path(pack_weights.__file__, run_name="__main__")
    printed = capsys.readouterr().out
    assert printed.count("MB") == len(pack_weights.CHECKPOINTS) == len(list((tmp_path / "there").glob("*.js")))


def test_a_lectures_image_says_what_the_drawing_says_and_every_drawing_is_shown_somewhere():
    root = Path(live_figures.__file__).parents[2]
    shown = {}
    for path in sorted(root.glob("notebooks/[0-9][0-9]-*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        markdown = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        for alt, name in re.findall(r"^!\[([^]]*)\]\(live/([\w-]+)\.svg\)$", markdown, flags=re.MULTILINE):
            shown.setdefault(name, []).append(path.stem)
            assert alt == draw_live.DRAWN[name]().alt, f"{path.stem}: in the book, only the drawing's label is read"
    assert set(shown) == set(live_figures.NAMES)
    assert "```{live-figure} translator" in (root / "book" / "index.md").read_text(encoding="utf-8")
