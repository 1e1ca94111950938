"""The glossary says its terms in a sentence each, and lectures link the first use of each."""

import re
import sys
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell

from tests.support.lecture_files import LECTURES, prose, read
from tests.support.tiny_book import build, text

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
import glossary_cards  # noqa: E402

PAGE = (ROOT / "book" / "glossary.md").read_text(encoding="utf-8")
TERMS = glossary_cards.entries(PAGE)
# Names that a reader may know and look for, where the lectures say it in other words.
KNOWN_ELSEWHERE = {"additive attention", "autoregressive", "positional encoding"}


def test_terms_are_sorted_short_and_said_in_plain_words():
    assert TERMS.keys() > KNOWN_ELSEWHERE
    assert len(TERMS) > 50 and list(TERMS) == sorted(TERMS, key=str.lower)
    assert PAGE.count("\n  See {doc}`../notebooks/") + PAGE.count(" See {doc}`../notebooks/") >= len(TERMS)
    long = [term for term, words in TERMS.items() if not 3 <= len(words.split()) <= 40]
    assert long == [] and all(words.endswith(".") for words in TERMS.values())
    assert not re.search(r"[`{}$]", "".join(TERMS.values()).replace("[CLS]", "")), "a card shows plain text"


def test_the_page_says_which_everyday_words_are_not_marked():
    beginning = PAGE.partition("```")[0]
    assert set(re.findall(r"\*([a-z]+)\*", beginning)) == glossary_cards.EVERYDAY <= TERMS.keys()


@pytest.mark.parametrize("term", sorted(TERMS.keys() - KNOWN_ELSEWHERE))
def test_a_term_is_one_that_the_lecture_it_points_to_uses(term):
    entry = re.search(rf"^{re.escape(term)}\n((?:  .*\n)+)", PAGE, re.MULTILINE)[1]
    (stem,) = re.findall(r"\{doc\}`\.\./notebooks/([\w-]+)`", entry)
    (path,) = [path for path in LECTURES if path.stem == stem]
    assert glossary_cards.pattern(term).search(" ".join(prose(read(path)).split())), f"{stem} does not say {term!r}"


@pytest.mark.parametrize(
    ("term", "said", "found"),
    [
        ("attention", "Attention is", "Attention"),
        ("attention", "self-attention is", None),
        ("logits", "the logits, then", "logits"),
        ("probe", "two probes", "probes"),
        ("nat", "nature", None),
        ("BLEU", "a Bleu sky", None),
        ("causal mask", "a causal\nmask", "causal\nmask"),
    ],
)
def test_a_term_is_found_as_a_word(term, said, found):
    match = glossary_cards.pattern(term).search(said)
    assert (match and match[0]) == found


GLOSSARY = """# Glossary

```{glossary}
BLEU
  A score.

dropout
  Some *zeros* in `x`. See {doc}`../index`.

softmax
  Sums to one.

causal mask
  Hides the future.

mask
  Of all days.
```
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    cells = [
        text("## Dropout\n\n[dropout](https://example.org) `dropout` *dropout*.\n\n```\ndropout(x)\n```"),
        text("Now dropout, and dropout again."),
        new_code_cell("dropout = softmax", metadata={"tags": []}),
        text("A **softmax** is a softmax. A causal mask is a mask. BLEU."),
        text("## References\n\n- unknown"),
    ]
    folder = tmp_path_factory.mktemp("glossary") / "book"
    built = build(
        folder,
        [text("```{toctree}\nbook/glossary\nnotebooks/a\n```")],
        extensions=("glossary_cards",),
        files={"book/glossary.md": GLOSSARY, "notebooks/a.md": "# A\n\n" + "\n\n".join(c.source for c in cells)},
    )
    assert built.warnings == ""
    return built.page("notebooks/a"), built.page("book/glossary")


def test_the_first_use_in_running_text_is_linked_and_no_other(page):
    lecture, glossary = page
    linked = [(link.text, link["data-says"]) for link in lecture.select("a.term")]
    assert linked == [("dropout", "Some zeros in x."), ("causal mask", "Hides the future."), ("BLEU", "A score.")]
    around = lecture.select_one("a.term").parent.text
    assert around == "Now dropout, and dropout again."
    for link in lecture.select("a.term"):
        page_of, _, anchor = link["href"].partition("#")
        assert page_of == "../book/glossary.html" and glossary.find(id=anchor) is not None
    assert glossary.select("a.term") == []


def test_each_term_of_the_real_glossary_has_a_place_to_lead_to(tmp_path):
    said = " and ".join(TERMS)
    built = build(
        tmp_path,
        [text("```{toctree}\nbook/glossary\nnotebooks/a\n```")],
        extensions=("glossary_cards",),
        files={"book/glossary.md": re.sub(r"\{doc\}`[^`]*`", "it", PAGE), "notebooks/a.md": f"# A\n\n{said}."},
    )
    assert built.warnings == ""
    ids = [dt["id"] for dt in built.page("book/glossary").select("dl.glossary > dt")]
    assert len(ids) == len(TERMS)
    anchors = [link["href"].partition("#")[2] for link in built.page("notebooks/a").select("a.term")]
    assert len(anchors) == len(TERMS.keys() - glossary_cards.EVERYDAY) and set(anchors) <= set(ids)
