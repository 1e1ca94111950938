"""Draw what a live figure shows before it lives: python book/draw_live.py writes notebooks/live/NAME.svg for each.

The numbers are those of the course's own models, computed here; the figures that load no model are in `draw_plain.py`
and `draw_dictionary.py`.
The book brings the drawing to life where a page shows
it by `![...](live/NAME.svg)` or by the directive `{live-figure} NAME` (`book/_ext/live_figures.py`); on paper, in
JupyterLab and without JavaScript it stays as it is. What the page needs to begin with stands in the drawing's element:
its text, and of a head its layer and number.
"""

import re
import sys
from html import escape
from pathlib import Path

import numpy as np
from scipy.special import log_softmax

from course_lib.decoding.search import beam_search
from course_lib.lecture.drawing import Diagram
from course_lib.numpy import BertForMaskedLM, load_translator, softmax
from course_lib.text.wordpiece import WordPiece

sys.path.insert(0, str(Path(__file__).parent))
import draw_dictionary
import draw_plain

FOLDER = Path(__file__).parents[1] / "notebooks" / "live"
TEXTS = {
    "translator": "Me gusta el vino blanco.",
    "heads": "The king gave his crown to the queen.",
    # of the test sentences of at most five words, the first of which width 2 finds another translation than greedy
    # search, in six tokens at most
    "beam": "Fui justo.",
    "blank": "In the United ___, the song was number one.",
}
WIDTH = 2  # of the drawing of the beam
LAYER, HEAD = 1, 3  # of the drawing of heads, counted from one


def shown(token: str) -> str:
    """A token as `shown` and `shownPiece` of book/_static/live/figures/parts.js name it."""
    if token.startswith("▁"):
        return token[1:] or "(space)"
    return f"-{token[2:]}" if token.startswith("##") else token


def alignment(text: str) -> tuple[str, list[str], list[str], np.ndarray]:
    """A translation, its tokens (T), those of its source (S), and the mean of the last layer's heads (T, S).

    Row t is what the decoder looked at before it wrote token t.
    """
    translate = load_translator()
    tokenizer = translate.source_tokenizer
    translation = translate(text)
    source, target = (tokenizer.encode(said)[0] for said in (text, translation))
    output = translate.model(source[None], target[None, :-1], return_layers=True)
    weights = output.cross_weights[-1][0].mean(axis=0)
    return translation, tokenizer.tokens(target[1:]), tokenizer.tokens(source), weights


def head(text: str) -> tuple[list[str], np.ndarray]:
    """The tokens (T) of a text, and what each attends to in one head of the small BERT (T, T)."""
    tokenizer = WordPiece.from_pretrained("bert-en")
    ids = tokenizer.encode(text).ids
    output = BertForMaskedLM.from_pretrained("bert-en")(ids, return_layers=True)
    return tokenizer.tokens(ids[0]), output.weights[LAYER - 1][0, HEAD - 1]


def filled(text: str, k: int) -> list[tuple[str, float]]:
    """The k most probable tokens for the blank of a text, with their probabilities."""
    tokenizer = WordPiece.from_pretrained("bert-en")
    ids = tokenizer.encode(text.replace("___", "[MASK]")).ids
    blank = ids == tokenizer.mask_id
    p = softmax(BertForMaskedLM.from_pretrained("bert-en")(ids, at=blank).logits[0])
    best = np.argsort(-p)[:k]
    return [(token, float(p[i])) for token, i in zip(tokenizer.tokens(best), best, strict=True)]


class Overheard:
    """A model's `next_logits` that keeps what it was asked, ids (N, t), and what it answered, logits (N, V)."""

    def __init__(self, asked):
        self.asked, self.reorder, self.calls = asked, asked.reorder, []

    def __call__(self, ids):
        self.calls.append((ids, self.asked(ids).astype(np.float64)))
        return self.calls[-1][1].copy()


def searched(text: str, width: int, translate=None) -> tuple[list[str], list[dict]]:
    """The tokens that beam search finds for a text, and each of its steps.

    A step has its candidates, {tokens, p, fate}: those that are "kept", those that have "ended", and as many of the
    best that are "dropped" as the beam is wide; and the positions that the decoder computes, cached and uncached. The
    search is the library's: what it did is read off what it asked. `translate` is the course's translator if not given.
    """
    translate = translate or load_translator()
    tokenizer, end = translate.source_tokenizer, translate.source_tokenizer.end_id
    source = tokenizer.encode(text)[0]
    heard = Overheard(translate.model.next_logits(source[None]))
    found = beam_search(heard, [[tokenizer.start_id]], end, len(source) + 50, width, 0.6, min_len=1)
    totals, room, steps = {(): 0.0}, width, []
    for t, (ids, logits) in enumerate(heard.calls, start=1):
        logits[:, end] = -np.inf if t == 1 else logits[:, end]  # min_len
        rows = [tuple(row[1:]) for row in ids.tolist()]
        sums = np.array([[totals[row]] for row in rows]) + log_softmax(logits, axis=1)
        candidates = []
        for rank, place in enumerate(np.argsort(-sums, axis=None, kind="stable")[: room + width]):
            parent, token = divmod(int(place), sums.shape[1])
            said = (*rows[parent], token)
            totals[said] = sums.flat[place]
            fate = "dropped" if rank >= room else "ended" if token == end else "kept"
            candidates.append({"tokens": tokenizer.tokens(said), "p": float(np.exp(totals[said])), "fate": fate})
        room -= sum(candidate["fate"] == "ended" for candidate in candidates)
        steps.append({"candidates": candidates, "cached": len(rows), "uncached": len(rows) * t})
    best = found.ids[0, 0]
    return tokenizer.tokens(best[best != tokenizer.pad_id]), steps


def largest(weights: np.ndarray, tokens: list[str]) -> str:
    return f"“{shown(tokens[weights.argmax()])}”"


def translator() -> Diagram:
    text = TEXTS["translator"]
    translation, target, source, weights = alignment(text)
    assert not any(token[0].isalnum() for token in (*source, *target)), "the page writes a hyphen before such a piece"
    looked = ", ".join(
        f"before “{shown(token)}” mostly at {largest(row, source)}"
        for token, row in zip(target, weights, strict=True)
        if re.fullmatch(r"▁\w{4,}", token)
    )
    d = Diagram(
        400, 324,
        f"A translation and what the model looked at: “{text}” became “{translation}” Each row is a token that it "
        f"wrote, each column one that it read, each cell a weight, the mean of the heads of the last layer: {looked}.",
    )  # fmt: skip
    names = [shown(token) for token in source]
    d.cells(78, 60, weights.tolist(), 36, "query", [shown(token) for token in target], (), numbers=True)
    for j, name in enumerate(names):
        d.text(96 + 36 * j, 46 if j % 2 else 26, name, 13)  # on two lines: neighbours may be wider than a cell
    d.text(200, 290, "columns: tokens read, rows: tokens written", 13, muted=True)
    d.text(200, 310, "last layer, mean of its heads", 13, muted=True)
    return d


def heads() -> Diagram:
    text = TEXTS["heads"]
    tokens, weights = head(text)
    n = len(tokens)
    assert np.mean([weights[t, t - 1] for t in range(1, n)]) > 0.7, "the description says so"
    d = Diagram(
        460, 114 + 34 * n,
        f"What each token of “{text}” attends to in layer {LAYER}, head {HEAD} of the small BERT. Rows look, columns "
        "are looked at. The full cells stand just left of the diagonal: most of the weight goes to the token before.",
    )  # fmt: skip
    d.cells(78, 64, weights.tolist(), 34, "query", [shown(token) for token in tokens], (), numbers=True)
    for j, token in enumerate(tokens):
        d.text(95 + 34 * j, 50 if j % 2 else 30, shown(token), 13)
    d.text(230, 82 + 34 * n, "rows: tokens that look, columns: tokens looked at", 13, muted=True)
    d.text(230, 102 + 34 * n, f"layer {LAYER}, head {HEAD}", 13, muted=True)
    return d


def blank() -> Diagram:
    found, asked = filled(TEXTS["blank"], 8), TEXTS["blank"].replace("___", "[MASK]")
    (first, p), (second, q) = found[:2]
    assert p > 0.7 and p + q > 0.9, "the description says so"
    d = Diagram(
        440, 68 + 28 * len(found),
        f"What the small BERT puts into the blank of “{TEXTS['blank'].replace('___', '…')}” A bar for each of the most "
        f"probable tokens: “{first}” has most of the probability, “{second}” nearly all the rest.",
    )  # fmt: skip
    d.text(220, 24, asked, 15, italic=True)
    for i, (token, p) in enumerate(found):
        y = 62 + 28 * i
        d.text(88, y, shown(token), 14, anchor="end")
        d.box(98, y - 9, max(280 * p, 1), 18, colour="query")
        d.text(110 + 280 * p, y, f"{p:.3f}", 13, anchor="start", muted=True)
    return d


def beam() -> Diagram:
    found, steps = searched(TEXTS["beam"], WIDTH)
    sums = [sum(step[kind] for step in steps) for kind in ("cached", "uncached")]
    said = "".join(found[:-1]).replace("▁", " ").strip()
    n, wide = len(steps), 500 // (len(steps) + 1)
    d = Diagram(
        wide * n + wide, 236,
        f"Beam search of width {WIDTH} for “{TEXTS['beam']}” as a tree. Each column has the candidates for one more "
        "token, with the probability of the whole beginning. Full boxes are kept, dashed ones dropped; thick is "
        f"“{said}”, which it finds. The decoder computes {sums[0]} positions with its cache, and would compute "
        f"{sums[1]} without.",
    )  # fmt: skip
    places = {(): d.box(4, 6, wide - 14, 42, "START", "1.00", size=12)}
    for t, step in enumerate(steps, start=1):
        for rank, candidate in enumerate(step["candidates"]):
            tokens, kept = tuple(candidate["tokens"]), candidate["fate"] != "dropped"
            best = kept and list(tokens) == found[: len(tokens)]
            places[tokens] = box = d.box(
                4 + wide * t, 6 + 52 * rank, wide - 14, 42, shown(tokens[-1]).strip("[]"), f"{candidate['p']:.2f}",
                "value" if candidate["fate"] == "ended" else "query" if kept else "plain",
                learned=best, dashed=not kept, size=12,
            )  # fmt: skip
            d.arrow(places[tokens[:-1]].right, box.left, dashed=not kept, head=False, width=2.6 if best else 1.2)
    d.text(d.width / 2, 224, f"positions computed: {sums[0]} with the cache, {sums[1]} without", 13, muted=True)
    return d


DRAWN = {"translator": translator, "beam": beam, "heads": heads, "blank": blank, **draw_plain.DRAWN}
DRAWN["dictionary"] = draw_dictionary.dictionary


def svg(name: str) -> str:
    """The drawing with what the page needs to begin with."""
    data = {"text": TEXTS[name]} if name in TEXTS else {}
    data |= {"answer": alignment(TEXTS[name])[0]} if name == "translator" else {}
    data |= {"layer": LAYER, "head": HEAD} if name == "heads" else {}
    attributes = "".join(f'data-{key}="{escape(str(value))}" ' for key, value in data.items())
    return DRAWN[name]().svg().replace("<svg ", f"<svg {attributes}", 1)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in DRAWN:
        (FOLDER / f"{name}.svg").write_text(svg(name), encoding="utf-8")
        print(FOLDER / f"{name}.svg")
