"""The extension that folds the sections for the curious, on a book of a few cells."""

from tests.support.tiny_book import build, code, text


def test_a_section_for_the_curious_is_folded_under_its_heading(tmp_path):
    cells = [
        text("## Before\n\nopen words"),
        text("### For the curious: the *internals* of a metric\n\nfolded words"),
        code("folded = 1", "torch"),
        code("folded = 2", "tensorflow"),
        text("## After\n\nmore open words"),
    ]
    book = build(tmp_path, cells, extensions=("curious",))
    assert book.warnings == ""
    page = book.page()
    (details,) = page.select("details")
    assert details.summary.h3.text.startswith("For the curious: the internals of a metric")
    assert not details.has_attr("open")
    assert "folded words" in details.text and "folded = 1" in details.text and "folded = 2" in details.text
    assert details.select(".sd-tab-set")
    assert "open words" not in details.text
    assert page.select_one("#after").find_parent("details") is None


def test_a_heading_that_only_mentions_curiosity_is_left(tmp_path):
    page = build(tmp_path, [text("### Curious\n\nFor the curious: words")], extensions=("curious",)).page()
    assert not page.select("details")
