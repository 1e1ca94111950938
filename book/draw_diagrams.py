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
        520, 236,
        "A recurrent network unrolled over four words. At each step the same cell reads a word and the state before. "
        "Only the last state is passed on, as long as ever, however long the sentence: what the answer needs of the "
        "first word must survive every step.",
    )  # fmt: skip
    cells = []
    for t, word in enumerate(("los", "gatos", "negros", "duermen")):
        x = 8 + 88 * t
        cell = d.box(x, 100, 58, 46, "cell", learned=True)
        cells.append(cell)
        d.text(x + 29, 220, word, italic=True)
        d.arrow((x + 29, 206), cell.bottom, text=f"x_{t + 1}_")
    for t, (before, after) in enumerate(zip(cells, cells[1:], strict=False)):
        d.arrow(before.right, after.left, text=f"h_{t + 1}_", colour="value")
    last = d.box(358, 94, 52, 58, "h_4_", "(d)", colour="warn")
    d.arrow(cells[-1].right, last.left, colour="warn", width=3)
    answer = d.box(442, 94, 70, 58, "answer")
    d.arrow(last.right, answer.left, colour="warn", width=3)
    d.curve("M 37 96 C 80 40, 250 40, 297 92", dashed=True, head=True)
    d.text(166, 20, "the first word must survive every step", 14)
    d.text(434, 62, "the bottleneck:", 14, bold=True)
    d.text(434, 80, "d numbers, all it gets", 14)
    return d


@drawn
def alignment() -> Diagram:
    d = Diagram(
        520, 366,
        "One step of a decoder with attention. The state before, as the query, is scored with each annotation of the "
        "source. A softmax turns the scores into weights that sum to one. The annotations, so weighted, add up to the "
        "context, which enters the next state together with the word before.",
    )  # fmt: skip
    words = ("los", "gatos", "negros", "duermen")
    weights = softmax(np.array([0.4, 2.2, 1.0, -0.6]))
    state = d.box(12, 44, 96, 42, "state s_2_", "query", "query")
    new = d.box(404, 44, 104, 42, "state s_3_", colour="query", learned=True)
    context = d.box(228, 104, 120, 42, "context c_3_", "weighted sum", "out")
    for y, name in ((196, "softmax"), (240, "score"), (350, "source")):
        d.text(66, y, name, 13, anchor="start", muted=True)
    level = 270
    d.arrow(state.bottom, (60, level), (418, level), (418, 255), colour="query")
    for j, (word, weight) in enumerate(zip(words, weights, strict=True)):
        x = 112 + 96 * j
        annotation = d.box(x, 288, 86, 40, f"h_{j + 1}_", colour="value")
        d.text(annotation.bottom[0], 350, word, italic=True)
        score = d.circle(x + 24, 240, 14, f"e_3{j + 1}_", size=14)
        d.arrow((x + 30, 288), (x + 30, 255), colour="key")
        if j < 3:
            d.arrow((x + 18, level), (x + 18, 255), colour="query")
        d.text(x + 24, 196, f"{weight:.2f}".removeprefix("0"), bold=True)
        d.arrow(score.top, (x + 24, 207))
        d.arrow(
            (x + 66, 288), (x + 66, 172), (252 + 24 * j, 147), colour="value", width=0.8 + 6 * weight, head=False
        )  # fmt: skip
    d.arrow(state.right, new.left, colour="query")
    d.arrow(context.right, (new.bottom[0], 125), new.bottom, colour="out")
    d.text(160, 18, "the word before, y_2_", 14)
    d.arrow((236, 18), (400, 18), (424, 42))
    d.arrow(new.top, (456, 6))
    d.text(464, 18, "y_3_", anchor="start")
    return d


@drawn
def attention() -> Diagram:
    d = Diagram(
        500, 406,
        "Scaled dot-product attention. Three learned matrices make queries, keys and values of the same tokens. Each "
        "query is multiplied with every key and the scores are divided by the square root of the keys' size. A softmax "
        "makes weights of each row, and the weights average the values.",
    )  # fmt: skip
    x = d.box(170, 360, 160, 40, "tokens X", "(T, d_model_)")
    tops = {}
    for name, colour, left in (("Q = X W^Q^", "query", 14), ("K = X W^K^", "key", 182), ("V = X W^V^", "value", 350)):
        box = d.box(left, 280, 136, 44, name, "(T, d_v_)" if colour == "value" else "(T, d_k_)", colour, learned=True)
        start = {"query": (x.left, (box.bottom[0], 380)), "key": (x.top,), "value": (x.right, (box.bottom[0], 380))}
        d.arrow(*start[colour], box.bottom)
        tops[colour] = box.top
    scores = d.box(40, 208, 240, 42, "Q Kᵀ / √d_k_", "(T, T): each query with each key")
    d.arrow(tops["query"], (tops["query"][0], 252), colour="query")
    d.arrow(tops["key"], (tops["key"][0], 252), colour="key")
    mask = d.box(40, 148, 240, 34, "softmax of each row")
    d.arrow(scores.top, mask.bottom)
    weights = d.box(40, 80, 240, 42, "weights", "(T, T): each row sums to 1")
    d.arrow(mask.top, weights.bottom)
    out = d.box(170, 8, 180, 42, "weights · V", "(T, d_v_)", "out")
    d.arrow((224, 80), (224, 52))
    d.arrow(tops["value"], (tops["value"][0], 29), out.right, colour="value")
    return d


@drawn
def heads() -> Diagram:
    d = Diagram(
        520, 424,
        "Multi-head attention with four heads. The features of the queries, keys and values are split into four parts. "
        "Head 1 gets the first part of each, head 2 the second, and each has attention weights of its own. The results "
        "are put side by side and mixed by one last matrix.",
    )  # fmt: skip
    x = d.box(170, 380, 180, 38, "tokens X", "(T, d_model_)")
    for b, (name, colour) in enumerate((("q", "query"), ("k", "key"), ("v", "value"))):
        left = 22 + 168 * b
        d.cells(left, 296, [[0.25] * 4], 35, colour)
        for h in range(4):
            d.text(left + 17.5 + 35 * h, 313, f"{name}_{h + 1}_")
            end = 40 + 124 * h + 24 * b
            d.arrow((left + 17.5 + 35 * h, 295), (end, 250), colour=colour, width=1.2)
        d.arrow((x.top[0] + 50 * (b - 1), 380), (left + 70, 333))
    rng = np.random.default_rng(3)
    side = d.box(90, 66, 340, 42, "side by side", "(T, H d_head_) = (T, d_model_)", "out")
    for h in range(4):
        left = 12 + 124 * h
        d.box(left, 136, 124 - 20, 112, "")
        d.cells(left + 18, 146, softmax(3 * rng.normal(size=(4, 4))).tolist(), 17, "plain")
        d.text(left + 52, 232, f"head {h + 1}", 14)
        d.arrow((left + 52, 135), (130 + 87 * h, 109), colour="out")
    d.text(440, 87, "merge", 13, anchor="start", muted=True)
    d.text(4, 399, "split: (T, d_head_) each", 13, anchor="start", muted=True)
    for left, name in ((120, "W^Q^"), (264, "W^K^"), (378, "W^V^")):
        d.text(left, 362, name, 14, anchor="start")
    last = d.box(160, 6, 200, 36, "mixed by W^O^", colour="out", learned=True)
    d.arrow(side.top, last.bottom, colour="out")
    return d


@drawn
def masks() -> Diagram:
    d = Diagram(
        512, 214,
        "Three masks as squares; a row is a query, a column a key, a cross is hidden. Padding hides the last two "
        "columns for every query. The causal mask hides what lies to the right of the diagonal. Both together hide "
        "what either hides.",
    )  # fmt: skip
    padding = np.tile([True, True, True, False, False], (5, 1))
    causal = np.asarray(causal_mask(5)).reshape(5, 5)
    words = ("she", "sees", "it", "[PAD]", "[PAD]")
    drawn_masks = {"padding": padding, "causal": causal, "padding & causal": padding & causal}
    for k, (name, mask) in enumerate(drawn_masks.items()):
        left = 62 + 154 * k
        rows = [[0.75 if seen else None for seen in row] for row in mask]
        table = d.cells(left, 34, rows, 26, "key", rows_named=words if k == 0 else ())
        d.text(table.top[0], 18, "keys →", 14, muted=True)
        d.text(table.top[0], 188, name, bold=True)
    d.text(4, 18, "queries ↓", 14, anchor="start", muted=True)
    return d


@drawn
def clock() -> Diagram:
    d = Diagram(
        500, 214,
        "Sinusoidal positions as clocks. Each pair of features, a sine and a cosine, is one hand that turns at its own "
        "rate; at positions 0, 1, 2 and 3 the fast hand has gone far, the slow one a little. No two positions show the "
        "same time.",
    )  # fmt: skip
    for i in range(3):
        y, rate = 56 + 62 * i, 10_000 ** (-2 * i / 16)
        d.text(6, y - 9, f"pair {i + 1}", 14, anchor="start")
        d.text(6, y + 10, f"{rate:.2g} rad a step", 13, anchor="start", muted=True)
        for position in range(4):
            x = 166 + 96 * position
            d.circle(x, y, 26)
            end = (x + 24 * math.sin(rate * position), y - 24 * math.cos(rate * position))
            d.arrow((x, y), end, colour="query", width=2.2)
    for position in range(4):
        d.text(166 + 96 * position, 14, f"position {position}", 14)
    return d


@drawn
def rotary() -> Diagram:
    d = Diagram(
        500, 262,
        "Rotary positions. A query at position 5 and a key at position 2 are each turned by an angle in proportion to "
        "their position. Moved on together to positions 8 and 5, both have turned further. The angle between them, "
        "from which the score is made, is the same.",
    )  # fmt: skip
    rate, fresh = 0.2, {"query": 0.1, "key": 1.45}
    for side, moved in enumerate((0, 3)):
        x, y = 128 + 245 * side, 128
        d.circle(x, y, 78)
        places = {"query": 5 + moved, "key": 2 + moved}
        angles = {colour: fresh[colour] + rate * place for colour, place in places.items()}
        d.text(x, 14, f"q at position {places['query']}, k at {places['key']}", 14, bold=True)
        for colour, angle in angles.items():
            start = fresh[colour]
            d.arrow((x, y), (x + 60 * math.cos(start), y - 60 * math.sin(start)), colour=colour, dashed=True, width=1.2)
            d.arrow((x, y), (x + 76 * math.cos(angle), y - 76 * math.sin(angle)), colour=colour, width=3)
            d.text(x + 93 * math.cos(angle), y - 91 * math.sin(angle), f"{colour[0]}_{places[colour]}_")
        ends = [f"{x + 34 * math.cos(angle):.1f} {y - 34 * math.sin(angle):.1f}" for angle in angles.values()]
        d.curve(f"M {ends[0]} A 34 34 0 0 0 {ends[1]}", "warn", width=2.5)
        between = math.degrees(angles["key"] - angles["query"])
        d.text(x, 226, f"between them: {between:.0f}°", 14)
    d.text(250, 250, "dashed: q and k before they are turned", 13, muted=True)
    return d


@drawn
def transformer() -> Diagram:
    d = Diagram(
        520, 522,
        "The Transformer. Left, the encoder: a stream to which self-attention and a feed-forward network add, layer "
        "after layer. Right, the decoder: its stream gets causal self-attention, cross-attention, whose keys and "
        "values come from the encoder's output, and a feed-forward network. A linear layer and a softmax predict the "
        "next token.",
    )  # fmt: skip

    def sublayer(x, y, name, colour):
        """A part beside the stream at x that reads from it below y and adds to it above."""
        box = d.box(x - 170, y - 18, 144, 36, name, colour=colour, learned=True)
        d.arrow((x, y + 34), (box.bottom[0], y + 34), box.bottom)
        plus = d.circle(x, y - 36, 9, "+")
        d.arrow(box.top, (box.top[0], y - 36), plus.left)
        return box

    left, right = 196, 490
    d.box(10, 246, 212, 206, dashed=True)
    d.box(304, 100, 210, 352, dashed=True)
    d.text(14, 234, "encoder, N layers", 14, anchor="start", muted=True)
    d.text(308, 88, "decoder, N layers", 14, anchor="start", muted=True)
    source = d.box(46, 468, 170, 46, "source tokens", "+ positions")
    target = d.box(300, 468, 210, 46, "target tokens", "shifted right, + positions")
    memory = d.box(142, 168, 108, 44, "memory", "(S, d_model_)", "value")
    d.arrow((left, source.y), (left, memory.bottom[1]), width=3)
    d.arrow((right, target.y), (right, 54), width=3)
    sublayer(left, 400, "self-attention", "query")
    sublayer(left, 302, "feed-forward", "plain")
    sublayer(right, 400, "causal attention", "query")
    cross = sublayer(right, 280, "cross-attention", "query")
    sublayer(right, 160, "feed-forward", "plain")
    for y, x, colour, below in ((182, 286, "key", 10), (198, 270, "value", 26)):
        enter = (cross.x, cross.y + below)
        d.arrow((memory.right[0], y), (x, y), (x, enter[1]), enter, colour=colour, width=2.4)
    d.text(258, 166, "keys", 13, anchor="start")
    d.text(264, 230, "values", 13, anchor="end")
    d.box(304, 8, 208, 44, "linear, softmax", "(T, V): the next token", "out", learned=True)
    return d


def main() -> None:
    """Write every diagram."""
    FOLDER.mkdir(exist_ok=True)
    for name, function in DRAWN.items():
        (FOLDER / f"{name}.svg").write_text(function().svg(), encoding="utf-8")
    print(f"{len(DRAWN)} diagrams are drawn in {FOLDER}")


if __name__ == "__main__":
    main()
