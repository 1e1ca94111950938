"""The extension that turns neighbouring cells of different frameworks into tabs, on books of a few cells."""

import pytest

from tests.support.tiny_book import build, code, text

N, T, F = "numpy", "torch", "tensorflow"


def run_of(*tags):
    """Code cells whose source names their place: cell_0, cell_1, ..."""
    return [code(f"cell_{i} = 1", *([tag] if tag else [])) for i, tag in enumerate(tags)]


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        pytest.param([N, T, F], [{"NumPy": [0], "PyTorch": [1], "TensorFlow": [2]}], id="one-of-each"),
        pytest.param([T, F], [{"PyTorch": [0], "TensorFlow": [1]}], id="two-frameworks"),
        pytest.param([F, T], [{"PyTorch": [1], "TensorFlow": [0]}], id="labels-keep-one-order"),
        pytest.param([T, T, F], [{"PyTorch": [0, 1], "TensorFlow": [2]}], id="neighbours-share-a-tab"),
        pytest.param(
            [T, F, T, F],
            [{"PyTorch": [0], "TensorFlow": [1]}, {"PyTorch": [2], "TensorFlow": [3]}],
            id="a-framework-that-comes-back-starts-a-set",
        ),
        pytest.param([T, F, T], [{"PyTorch": [0], "TensorFlow": [1]}], id="the-rest-is-one-framework"),
        pytest.param([T, T], [], id="one-framework-only"),
        pytest.param([T], [], id="one-cell-only"),
        pytest.param([T, None, F], [], id="an-untagged-cell-between"),
        pytest.param([None, None], [], id="no-tags"),
        pytest.param([None, N, T, None], [{"NumPy": [1], "PyTorch": [2]}], id="untagged-around"),
    ],
)
def test_grouping(tmp_path, tags, expected):
    book = build(tmp_path, run_of(*tags))
    assert book.warnings == ""
    found = [
        {label: [i for i in range(len(tags)) if f"cell_{i} " in content] for label, content in tab_set.items()}
        for tab_set in book.sets()
    ]
    assert found == expected
    assert [list(tab_set) for tab_set in found] == [list(tab_set) for tab_set in expected]
    everything = book.page().text
    assert [everything.count(f"cell_{i} ") for i in range(len(tags))] == [1] * len(tags)


def test_all_sets_share_one_sync_group(tmp_path):
    page = build(tmp_path, run_of(N, T, None, T, F)).page()
    labels = page.select("label.sd-tab-label")
    assert {label["data-sync-group"] for label in labels} == {"framework"}
    assert [label["data-sync-id"] for label in labels] == [N, T, T, F]
    checked = [tab_set.select_one("input")["checked"] for tab_set in page.select(".sd-tab-set")]
    assert checked == ["checked", "checked"]


def test_a_hand_written_set_joins_the_group(tmp_path):
    by_hand = "::::{tab-set}\n:sync-group: framework\n\n:::{tab-item} PyTorch\n:sync: torch\n\nwords\n:::\n::::"
    book = build(tmp_path, [text(by_hand), *run_of(T, F)], myst_enable_extensions=["colon_fence"])
    assert book.warnings == ""
    groups = [(label["data-sync-group"], label["data-sync-id"]) for label in book.page().select("label")]
    assert groups.count(("framework", "torch")) == 2


def test_removed_and_empty_cells_do_not_break_a_run(tmp_path):
    cells = [
        code("first = 1", T),
        code("removed = 1", "remove-cell"),
        code("silent = 1", "remove-input"),
        code("second = 1", F),
    ]
    book = build(tmp_path, cells)
    assert book.warnings == ""
    assert [list(tab_set) for tab_set in book.sets()] == [["PyTorch", "TensorFlow"]]
    assert "removed" not in book.page().text and "silent" not in book.page().text
    assert not [cell for cell in book.page().select("div.cell") if not cell.text.strip()]


def test_a_tab_says_its_framework_once(tmp_path):
    cells = [code("# PyTorch\n\ncell_0 = 1", T), code("# TensorFlow\ncell_1 = 1  # TensorFlow", F)]
    cells += [text("Alone:"), code("# PyTorch\ncell_2 = 1", T)]
    book = build(tmp_path, cells)
    assert [{label: content.strip() for label, content in tabs.items()} for tabs in book.sets()] == [
        {"PyTorch": "cell_0 = 1", "TensorFlow": "cell_1 = 1  # TensorFlow"}
    ]
    assert "# PyTorch\ncell_2 = 1" in book.page().text


def test_paragraphs_and_headings_end_a_run(tmp_path):
    cells = [
        code("a = 1", T),
        text("Words."),
        code("b = 1", F),
        text("## Heading"),
        code("c = 1", T),
        code("d = 1", F),
        text("### Deeper"),
        code("e = 1", N),
    ]
    book = build(tmp_path, cells)
    assert book.warnings == ""
    [only] = book.sets()
    assert "c = 1" in only["PyTorch"] and "d = 1" in only["TensorFlow"]
    assert book.page().find("h2").find_parent("section").select_one(".sd-tab-set") is not None


def test_markdown_cells_go_into_tabs(tmp_path):
    cells = [
        text("PyTorch *counts*.", T),
        code("a = 1", T),
        text("TensorFlow *traces*.", F),
        code("b = 1", F),
        text("After."),
    ]
    book = build(tmp_path, cells)
    assert book.warnings == ""
    [only] = book.sets()
    assert "PyTorch counts." in only["PyTorch"] and "a = 1" in only["PyTorch"]
    assert "TensorFlow traces." in only["TensorFlow"] and "b = 1" in only["TensorFlow"]
    assert "After." not in "".join(only.values())
    assert book.page().find("em", string="traces")


def test_a_lone_tagged_markdown_cell_stays_in_place(tmp_path):
    book = build(tmp_path, [text("Before.", T), text("After.")])
    assert book.warnings == "" and book.sets() == []
    assert book.page().text.index("Before.") < book.page().text.index("After.")


def test_a_heading_in_a_tagged_markdown_cell_is_a_warning(tmp_path):
    book = build(tmp_path, [text("## Heading\n\nwords", T), code("a = 1", F)])
    assert "a Markdown cell with a heading cannot go into a tab" in book.warnings
    assert book.page().find("h2").text.startswith("Heading")


@pytest.mark.parametrize(
    ("tag", "meant"),
    [
        ("pytorch", T),
        ("Torch", T),
        ("tf", F),
        ("keras", F),
        ("tensorfow", F),
        ("np", N),
        ("framework-numpy", N),
    ],
)
def test_a_tag_close_to_a_framework_is_a_warning(tmp_path, tag, meant):
    book = build(tmp_path, [code("a = 1", tag), code("b = 1", T)])
    assert f"cell tag '{tag}' names no framework; write '{meant}'" in book.warnings
    assert "index.ipynb" in book.warnings
    assert book.sets() == []


def test_a_misspelt_tag_on_a_markdown_cell_is_a_warning(tmp_path):
    assert "names no framework" in build(tmp_path, [text("words", "pytorch")]).warnings


def test_two_frameworks_in_one_cell_are_a_warning(tmp_path):
    assert "this one is tagged torch and tensorflow" in build(tmp_path, [code("a = 1", T, F)]).warnings


@pytest.mark.parametrize(
    "tag",
    ["hide-input", "nbval-ignore-output", "scroll-output", "full-width", "remove-stderr", "training", "slow"],
)
def test_unrelated_tags_are_left_alone(tmp_path, tag):
    assert build(tmp_path, [code("a = 1", tag, printed="x")]).warnings == ""


def test_hidden_input_and_output_inside_tabs(tmp_path):
    cells = [
        code("a = 1", T, "hide-input", printed="from torch"),
        code("b = 1", F, "hide-output", printed="from tensorflow"),
    ]
    book = build(tmp_path, cells)
    assert book.warnings == ""
    first, second = book.page().select(".sd-tab-content")
    assert "a = 1" in first.select_one("details").text and "from torch" not in first.select_one("details").text
    assert "from tensorflow" in second.select_one("details").text


def test_figures_keep_alt_text_caption_and_number_inside_tabs(tmp_path):
    def figure(tag, alt):
        settings = {"image": {"alt": alt}, "figure": {"caption": f"*{alt}*", "name": f"fig-{tag}"}}
        return code("plot()", tag, figure=True, mystnb=settings)

    cells = [
        figure(T, "Loss in PyTorch"),
        figure(F, "Loss in TensorFlow"),
        text("See {numref}`fig-tensorflow`."),
    ]
    book = build(tmp_path, cells, numfig=True)
    assert book.warnings == ""
    first, second = book.page().select(".sd-tab-content")
    assert first.img["alt"] == "Loss in PyTorch" and second.img["alt"] == "Loss in TensorFlow"
    assert "Fig. 2" in second.text
    assert book.page().find("a", href="#fig-tensorflow", string=lambda s: s is None or "Fig. 2" in s)


def test_cells_of_a_gated_exercise(tmp_path):
    cells = [
        text("````{exercise-start} Try it\n:label: try-it\n````"),
        text("Compute it."),
        code("a = 1", T),
        code("b = 1", F),
        text("````{exercise-end}\n````"),
    ]
    book = build(tmp_path, cells, extensions=("sphinx_exercise",))
    assert book.warnings == ""
    assert [list(tab_set) for tab_set in book.sets()] == [["PyTorch", "TensorFlow"]]
    assert book.page().select_one("div.exercise .sd-tab-set") is not None


def test_other_builders_show_every_tab_with_its_label(tmp_path):
    book = build(tmp_path, run_of(T, F), builder="text")
    assert book.warnings == ""
    shown = (book.out / "index.txt").read_text(encoding="utf-8")
    assert [shown.index(s) for s in ("PyTorch", "cell_0", "TensorFlow", "cell_1")] == sorted(
        shown.index(s) for s in ("PyTorch", "cell_0", "TensorFlow", "cell_1")
    )


@pytest.mark.parametrize("tag", ["solution", "hide-cell"])
def test_solutions_are_folded_under_a_label(tmp_path, tag):
    book = build(tmp_path, [code("answer = 42", tag, printed="forty-two")])
    assert book.warnings == ""
    folded = book.page().select_one("details")
    assert "open" not in folded.attrs
    assert "Show solution" in folded.summary.text and "Hide solution" in folded.summary.text
    assert "answer = 42" in folded.text and "forty-two" in folded.text


def test_solutions_inside_tabs(tmp_path):
    book = build(tmp_path, [code("a = 1", T, "solution"), code("b = 1", F, "solution")])
    assert book.warnings == ""
    assert ["Show solution" in tab.text for tab in book.page().select(".sd-tab-content details")] == [
        True,
        True,
    ]


def test_a_label_in_the_cell_wins_and_hide_input_is_no_solution(tmp_path):
    own = {"code_prompt_show": "Show a hint", "code_prompt_hide": "Hide the hint"}
    book = build(tmp_path, [code("a = 1", "solution", mystnb=own), code("b = 1", "hide-input", printed="x")])
    first, second = (summary.text for summary in book.page().select("summary"))
    assert "Show a hint" in first and "Show solution" not in first
    assert "Show solution" not in second
