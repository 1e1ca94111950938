"""Draw the lectures' diagrams: python book/draw_diagrams.py writes notebooks/diagrams/NAME.svg, one for each function.

What is a number in them is computed here. The lectures show the files by `![...](diagrams/NAME.svg)`.
"""

import math
from pathlib import Path

import numpy as np

from course_lib.lecture.drawing import Diagram
from course_lib.masks import causal_mask
from course_lib.numpy import softmax

FOLDER = Path(__file__).parents[1] / "notebooks" / "diagrams"
DRAWN = {}


def drawn(function):
    """Register a function that draws a diagram by its name, with hyphens."""
    DRAWN[function.__name__.replace("_", "-")] = function
    return function


@drawn
def recurrence() -> Diagram:
    d = Diagram(
        500, 226,
        "A recurrent network unrolled over four steps. At each step the cell reads a token and the state before it. "
        "Only the last state is passed on: whatever the answer needs of the first token has gone through every step.",
    )  # fmt: skip
    cells = []
    for t, word in enumerate(("los", "gatos", "negros", "duermen")):
        x = 10 + 102 * t
        cell = d.box(x, 92, 72, 46, "cell", learned=True)
        cells.append(cell)
        d.text(x + 36, 208, word, italic=True)
        d.arrow((x + 36, 194), cell.bottom, text=f"x_{t + 1}_")
    for t, (before, after) in enumerate(zip(cells, cells[1:], strict=False)):
        d.arrow(before.right, after.left, text=f"h_{t + 1}_", colour="value")
    end = cells[-1].right
    d.arrow(end, (436, end[1]), colour="warn", width=3)
    d.box(438, 86, 56, 58, "h_4_", "(d)", colour="warn")
    d.curve("M 46 88 C 80 34, 300 34, 346 86", dashed=True, head=True)
    d.text(196, 18, "the first word has to survive every step", 13, muted=True)
    d.text(466, 66, "all there is", 12, colour="warn")
    return d


@drawn
def alignment() -> Diagram:
    d = Diagram(
        500, 292,
        "One step of a decoder with attention. The decoder's state is compared with each of the four annotations of "
        "the source; the scores become weights that sum to one; their weighted sum, the context, goes into the next "
        "state together with the word before.",
    )  # fmt: skip
    weights = softmax(np.array([0.4, 2.2, 1.0, -0.6]))
    d.text(8, 274, "source", 13, anchor="start", muted=True)
    for j, (word, weight) in enumerate(zip(("los", "gatos", "negros", "duermen"), weights, strict=True)):
        x = 100 + 96 * j
        box = d.box(x, 216, 78, 34, f"h_{j + 1}_", colour="value")
        d.text(x + 39, 274, word, italic=True)
        d.arrow(box.top, (196 + 32 * j, 146), colour="value", width=0.6 + 6 * weight, head=False)
        d.text(x + 39 + (17 if j > 1 else -17), 198, f"{weight:.2f}".removeprefix("0"), 13)
    context = d.box(190, 104, 108, 40, "context", colour="out")
    state = d.box(12, 44, 96, 40, "state s_2_", colour="query")
    new = d.box(366, 44, 104, 40, "state s_3_", colour="query", learned=True)
    d.arrow(state.right, new.left, colour="query")
    d.arrow(context.right, (418, 124), new.bottom, colour="out")
    d.arrow(state.bottom, (60, 233), (98, 233), colour="query", dashed=True)
    d.text(66, 160, "score", 13, anchor="start", muted=True)
    d.text(66, 177, "each h", 13, anchor="start", muted=True)
    d.arrow(new.top, (418, 6), text="next word", side=-1, at=0.55)
    d.text(240, 22, "word before", 13, muted=True)
    d.arrow((284, 22), (330, 22), (366, 50))
    return d


@drawn
def attention() -> Diagram:
    d = Diagram(
        500, 406,
        "Scaled dot-product attention. Three learned matrices make queries, keys and values of the same tokens. Each "
        "query is multiplied with every key, the scores are divided by the square root of d k and hidden by the mask, "
        "a softmax makes weights of each row, and the weights average the values.",
    )  # fmt: skip
    x = d.box(170, 360, 160, 40, "tokens x", "(T, d_model_)")
    tops = {}
    for name, colour, left in (("q = x W_Q_", "query", 14), ("k = x W_K_", "key", 182), ("v = x W_V_", "value", 350)):
        box = d.box(left, 280, 136, 44, name, "(T, d_v_)" if colour == "value" else "(T, d_k_)", colour, learned=True)
        start = {"query": (x.left, (box.bottom[0], 380)), "key": (x.top,), "value": (x.right, (box.bottom[0], 380))}
        d.arrow(*start[colour], box.bottom)
        tops[colour] = box.top
    scores = d.box(40, 208, 240, 42, "q kᵀ / √d_k_", "(T, T): each query with each key")
    d.arrow(tops["query"], (tops["query"][0], 252), colour="query")
    d.arrow(tops["key"], (tops["key"][0], 252), colour="key")
    mask = d.box(40, 148, 240, 34, "mask, softmax of each row")
    d.arrow(scores.top, mask.bottom)
    weights = d.box(40, 80, 240, 42, "weights", "(T, T): each row sums to 1")
    d.arrow(mask.top, weights.bottom)
    out = d.box(170, 8, 180, 42, "weights · v", "(T, d_v_)", "out")
    d.arrow((224, 80), (224, 52))
    d.arrow(tops["value"], (tops["value"][0], 29), out.right, colour="value")
    return d


@drawn
def heads() -> Diagram:
    d = Diagram(
        500, 356,
        "Multi-head attention. Queries, keys and values of d model features are split into four heads of d head "
        "features each. Every head attends on its own, with weights of its own. The results are put side by side "
        "again and mixed by one last matrix.",
    )  # fmt: skip
    x = d.box(160, 314, 180, 38, "x", "(T, d_model_)")
    qkv = d.box(110, 244, 280, 42, "q, k, v", "three times (T, d_model_)", learned=True)
    d.arrow(x.top, qkv.bottom)
    rng = np.random.default_rng(3)
    for h in range(4):
        left = 30 + 116 * h
        table = softmax(3 * rng.normal(size=(4, 4)))
        cells = d.cells(left + 10, 134, table.tolist(), 17, "out")
        d.text(left + 44, 214, f"head {h + 1}", 13)
        d.arrow((152 + 65 * h, 242), (left + 44, 224))
        d.arrow((cells.top[0], 131), (152 + 65 * h, 110), colour="out")
    d.text(250, 170, "(T, T)", 12, muted=True)
    d.text(4, 236, "split: (T, d_head_) each", 12, anchor="start", muted=True)
    out = d.box(110, 66, 280, 42, "side by side", "(T, H d_head_) = (T, d_model_)")
    last = d.box(160, 6, 180, 36, "mixed by W_O_", colour="out", learned=True)
    d.arrow(out.top, last.bottom, colour="out")
    return d


@drawn
def masks() -> Diagram:
    d = Diagram(
        500, 216,
        "Three masks as squares; a row is a query, a column a key, a cross is hidden. Padding hides the last two "
        "columns for every query. The causal mask hides what lies to the right of the diagonal. Both together hide "
        "what either hides.",
    )  # fmt: skip
    padding = np.tile([True, True, True, False, False], (5, 1))
    causal = np.asarray(causal_mask(5)).reshape(5, 5)
    words = ("she", "sees", "it", "[PAD]", "[PAD]")
    for k, (name, mask) in enumerate((("padding", padding), ("causal", causal), ("both: &", padding & causal))):
        left = 62 + 150 * k
        rows = [[0.75 if seen else None for seen in row] for row in mask]
        table = d.cells(left, 34, rows, 26, "key", rows_named=words if k == 0 else ())
        d.text(table.top[0], 18, "keys →", 12, muted=True)
        d.text(table.top[0], 188, name, bold=True)
    d.text(8, 18, "queries ↓", 12, anchor="start", muted=True)
    return d


@drawn
def clock() -> Diagram:
    d = Diagram(
        500, 214,
        "Sinusoidal positions as clocks. Each pair of features is one hand that turns at its own rate; at positions "
        "0, 1, 2 and 3 the fast hand has gone far, the slow one a little. No two positions show the same time.",
    )  # fmt: skip
    for i, rate in enumerate((1.0, 0.3, 0.06)):
        y = 56 + 62 * i
        d.text(6, y - 9, f"pair {i + 1}", 13, anchor="start")
        d.text(6, y + 9, f"{rate:g} a position", 12, anchor="start", muted=True)
        for position in range(4):
            x = 166 + 96 * position
            d.circle(x, y, 26)
            end = (x + 24 * math.sin(rate * position), y - 24 * math.cos(rate * position))
            d.arrow((x, y), end, colour="query", width=2.2)
    for position in range(4):
        d.text(166 + 96 * position, 14, f"position {position}", 13)
    return d


@drawn
def rotary() -> Diagram:
    d = Diagram(
        500, 214,
        "Rotary positions. A query at position 5 and a key at position 2 are each turned by an angle in proportion to "
        "their position. Moved on together to positions 8 and 5, both have turned further, and the angle between them, "
        "of which the score is made, is the same.",
    )  # fmt: skip
    rate, fresh = 0.2, {"query": 0.1, "key": 1.45}
    for side, moved in enumerate((0, 3)):
        x, y = 128 + 245 * side, 104
        d.circle(x, y, 78)
        places = {"query": 5 + moved, "key": 2 + moved}
        angles = {colour: fresh[colour] + rate * place for colour, place in places.items()}
        for colour, angle in angles.items():
            start = fresh[colour]
            d.arrow((x, y), (x + 66 * math.cos(start), y - 66 * math.sin(start)), colour=colour, dashed=True, width=1.2)
            d.arrow((x, y), (x + 76 * math.cos(angle), y - 76 * math.sin(angle)), colour=colour, width=3)
            name = f"{colour[0]}_{places[colour]}_"
            d.text(x + 93 * math.cos(angle), y - 91 * math.sin(angle), name)
        between = math.degrees(angles["key"] - angles["query"])
        d.text(x, 202, f"between them: {between:.0f}°", 13)
    d.text(250, 14, "dashed: before the turn", 12, muted=True)
    return d


@drawn
def transformer() -> Diagram:
    d = Diagram(
        500, 500,
        "The Transformer. On the left the encoder: source tokens and positions enter a stream to which, in each layer, "
        "self-attention and a feed-forward network add. On the right the decoder: its stream gets causal self-attention, "
        "cross-attention to the encoder's output, and a feed-forward network; a linear layer and a softmax predict the "
        "next token.",
    )  # fmt: skip

    def sublayer(x, y, name, colour, side):
        """A part beside the stream at x that reads from it below y and adds to it above."""
        box = d.box(x + (24 if side > 0 else -164), y - 18, 140, 36, name, colour=colour, learned=True, size=14)
        d.arrow((x, y + 34), (box.bottom[0], y + 34), box.bottom)
        plus = d.circle(x, y - 36, 9, "+", size=15)
        d.arrow(box.top, (box.top[0], y - 36), plus.right if side > 0 else plus.left)
        return box

    left, right = 190, 316
    d.box(70, 456, 150, 38, "source tokens", "+ positions")
    d.box(280, 456, 150, 38, "target tokens", "+ positions, one later")
    d.arrow((left, 456), (left, 224), (right - 2, 224), width=3, colour="value", head=False)
    d.arrow((right, 456), (right, 62), width=3)
    d.box(10, 254, 206, 190, dashed=True)
    d.box(290, 92, 204, 352, dashed=True)
    d.text(14, 242, "encoder, N layers", 13, anchor="start", muted=True)
    d.text(492, 80, "decoder, N layers", 13, anchor="end", muted=True)
    sublayer(left, 396, "self-attention", "query", -1)
    sublayer(left, 304, "feed-forward", "plain", -1)
    sublayer(right, 396, "causal attention", "query", 1)
    cross = sublayer(right, 264, "cross-attention", "value", 1)
    sublayer(right, 148, "feed-forward", "plain", 1)
    d.arrow((right, 224), (right + 6, 224), colour="value", head=False, width=3)
    d.text(150, 212, "memory: keys and values", 12, muted=True)
    d.box(226, 8, 180, 42, "linear, softmax", "(T, V): the next token", "out", learned=True)
    del cross
    return d


def main() -> None:
    """Write every diagram."""
    FOLDER.mkdir(exist_ok=True)
    for name, function in DRAWN.items():
        (FOLDER / f"{name}.svg").write_text(function().svg(), encoding="utf-8")
    print(f"{len(DRAWN)} diagrams are drawn in {FOLDER}")


if __name__ == "__main__":
    main()
