"""Draw the lectures' diagrams: python book/draw_diagrams.py writes notebooks/diagrams/NAME.svg, one for each function.

What is a number in them is computed here. The lectures show the files by `![...](diagrams/NAME.svg)`.
"""

import math
from pathlib import Path

import numpy as np

from course_lib.audio.log_mel import HOP, RATE, log_mel
from course_lib.data import syllables
from course_lib.lecture.drawing import Diagram
from course_lib.masks import causal_mask, window_mask
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
def asking() -> Diagram:
    d = Diagram(
        520, 250,
        "What the word it takes from four words. Where its own vector asks, it finds itself most, and cup no more "
        "than table. Where one matrix makes a query of it and another makes keys of all words, cup gives the most.",
    )  # fmt: skip
    words, x = ("cup", "table", "it", "pushed"), np.array([[1, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0]])
    w_q, w_k = np.array([[0, 0], [0, 0], [2, 2]]), np.array([[1, 0], [0, 1], [0, 0]])
    rows = softmax(x[2] @ x.T), softmax(x[2] @ w_q @ (x @ w_k).T / math.sqrt(2))
    titles = ("its own vector asks", "W^Q^ asks, W^K^ is found")
    for left, title, weights in zip((8, 272), titles, rows, strict=True):
        d.text(left + 120, 16, title, bold=True)
        new = d.box(left + 70, 196, 100, 44, "new vector", "of it", "out")
        for j, (word, weight) in enumerate(zip(words, weights, strict=True)):
            box = d.box(left + 61 * j, 40, 57, 34, word, colour="query" if word == "it" else "value")
            end = (left + 84 + 24 * j, 194)
            d.arrow((box.bottom[0], 112), end, colour="value", width=0.8 + 9 * weight, head=False)
            d.text(box.bottom[0], 92, f"{weight:.2f}".removeprefix("0"), bold=True)
        d.text(new.right[0] + 6, 218, "mean", 13, anchor="start", muted=True)
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
def shared_keys() -> Diagram:
    d = Diagram(
        512, 168,
        "Who shares keys and values, with four heads of queries. Multi-head attention: each head has its own. "
        "Grouped-query attention: two heads share one set. Multi-query attention: all four share one set.",
    )  # fmt: skip
    for panel, (name, sets) in enumerate((("multi-head", 4), ("grouped-query", 2), ("multi-query", 1))):
        left, each = 8 + 172 * panel, 4 // sets
        d.text(left + 76, 14, name, bold=True)
        for h in range(4):
            query = d.box(left + 39 * h, 34, 34, 34, f"q_{h + 1}_", colour="query")
            middle = left + 17 + 39 * (each * (h // each) + (each - 1) / 2)
            d.arrow(query.bottom, (middle, 110), head=False)
        for n in range(sets):
            middle = left + 17 + 39 * (each * n + (each - 1) / 2)
            d.box(middle - 17, 110, 34, 44, colour="key")
            d.text(middle, 122, f"k_{n + 1}_")
            d.text(middle, 142, f"v_{n + 1}_")
    return d


@drawn
def clock() -> Diagram:
    d = Diagram(
        500, 214,
        "Sinusoidal positions as clocks. Each pair of features, a sine and a cosine, is one hand that turns at its own "
        "rate. At positions 0, 1, 2 and 3 the hand of pair 0 has gone far, that of pair 2 a little. No two positions "
        "show the same time.",
    )  # fmt: skip
    for i in range(3):
        y, rate = 56 + 62 * i, 10_000 ** (-2 * i / 16)
        d.text(6, y - 9, f"pair {i}", 14, anchor="start")
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
        "Rotary positions. Query and key are the same arrow. At positions 5 and 2 each is turned by an angle in "
        "proportion to its position. Moved on together to positions 8 and 5, both have turned further. The angle "
        "between them, from which the score is made, is the same.",
    )  # fmt: skip
    rate = 0.2
    for side, moved in enumerate((0, 3)):
        x, y = 128 + 245 * side, 128
        d.circle(x, y, 78)
        places = {"query": 5 + moved, "key": 2 + moved}
        angles = {colour: rate * place for colour, place in places.items()}
        d.text(x, 14, f"q at position {places['query']}, k at {places['key']}", 14, bold=True)
        d.arrow((x, y), (x + 60, y), dashed=True, width=1.2)
        for colour, angle in angles.items():
            d.arrow((x, y), (x + 76 * math.cos(angle), y - 76 * math.sin(angle)), colour=colour, width=3)
            d.text(x + 93 * math.cos(angle), y - 91 * math.sin(angle), f"{colour[0]}_{places[colour]}_")
        ends = [f"{x + 34 * math.cos(angle):.1f} {y - 34 * math.sin(angle):.1f}" for angle in angles.values()]
        d.curve(f"M {ends[1]} A 34 34 0 0 0 {ends[0]}", "warn", width=2.5)
        d.text(x, 226, f"between them: {angles['query'] - angles['key']:.1f} rad", 14)
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
        asks = "query" if name == "cross-attention" else "plain"
        d.arrow((x, y + 34), (box.bottom[0], y + 34), box.bottom, colour=asks)
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
    d.text(444, 325, "queries", 13)
    d.text(482, 70, "(T, d_model_)", 12.5, anchor="end", muted=True)
    d.box(304, 8, 208, 44, "linear, softmax", "(T, V): the next token", "out", learned=True)
    return d


@drawn
def norm_places() -> Diagram:
    d = Diagram(
        520, 304,
        "Two ways to build a sub-layer. Post-norm, left: the sub-layer's output is added to the stream, and the norm "
        "stands on the stream, above the sum. Pre-norm, right: the norm stands on the branch, before the sub-layer, "
        "and the stream itself runs through untouched.",
    )  # fmt: skip
    for x, name in ((206, "post-norm"), (470, "pre-norm")):
        pre = name == "pre-norm"
        d.text(x - 90, 14, name, bold=True)
        plus = d.circle(x, 130, 9, "+")
        part = d.box(x - 186, 154, 132, 40, "sub-layer F", "(T, d_model_)", "query", learned=True)
        start = (x, 262), (part.bottom[0], 262)
        if pre:
            norm = d.box(x - 186, 214, 132, 32, "norm", colour="warn", learned=True)
            d.arrow(*start, norm.bottom)
            d.arrow(norm.top, part.bottom)
        else:
            d.arrow(*start, part.bottom)
        d.arrow(part.top, (part.top[0], 130), plus.left)
        d.arrow((x, 280), plus.bottom, width=3)
        if pre:
            d.arrow(plus.top, (x, 28), width=3)
        else:
            norm = d.box(x - 44, 58, 88, 32, "norm", colour="warn", learned=True)
            d.arrow(plus.top, norm.bottom, width=3)
            d.arrow(norm.top, (x, 28), width=3)
        d.text(x - 34, 293, "x: (T, d_model_)", 13)
    return d


@drawn
def family() -> Diagram:
    d = Diagram(
        520, 232,
        "Who may attend to whom, rows asking, columns answering. Encoder-only: everybody, everybody. Decoder-only: "
        "each token itself and those before. Prefix language model: the first half each other, the second half the "
        "first and those before, in one square. Encoder-decoder: the same pattern in three squares, each with weights "
        "and a softmax of its own.",
    )  # fmt: skip
    n, half, size, top = 6, 3, 17, 64
    causal = causal_mask(n)[0, 0]
    prefix = causal.copy()
    prefix[:, :half] = True
    panels = (
        ("encoder-only", "BERT", np.ones((n, n), bool)),
        ("decoder-only", "GPT", causal),
        ("prefix LM", "one stack", prefix),
    )
    for i, (title, example, mask) in enumerate(panels):
        left = 10 + 128 * i
        d.text(left + n * size / 2, 16, title, 13, bold=True)
        d.text(left + n * size / 2, 36, example, 13, muted=True)
        d.cells(left, top, [[0.6 if seen else None for seen in row] for row in mask], size, "query")
    left, gap = 398, 14
    d.text(left + 58, 16, "encoder-decoder", 13, bold=True)
    d.text(left + 58, 36, "T5: two stacks", 13, muted=True)
    square = [[0.6] * half] * half
    d.cells(left, top, square, size, "query")
    d.cells(left, top + half * size + gap, square, size, "key")
    triangle = [[0.6 if seen else None for seen in row] for row in causal_mask(half)[0, 0]]
    d.cells(left + half * size + gap, top + half * size + gap, triangle, size, "query")
    d.text(left + 58, top + 24, "encoder", 12.5, anchor="start", muted=True)
    bottom = top + 2 * half * size + gap
    d.text(left + 25, bottom + 14, "cross", 12.5, muted=True)
    d.text(left + 91, bottom + 14, "decoder", 12.5, muted=True)
    d.text(10 + n * size / 2, top + n * size + 16, "columns: asked", 12.5, muted=True)
    d.text(260, 218, "Each row of a square is one softmax. Crossed out: hidden.", 13)
    return d


@drawn
def cost() -> Diagram:
    d = Diagram(
        520, 328,
        "What an encoder layer of 512 features holds, to scale; a square is one mebibyte. Weights: 4 squares of "
        "attention, 8 of the feed-forward layer. Training adds 36 of gradients and means. A sentence of 512 tokens "
        "adds 8 squares of vectors, 4 of hidden features, and 8 of attention that grow with its square. "
        "A decoder layer's cache: 2.",
    )  # fmt: skip
    size, left = 23, 10

    def row(y, title, *groups):
        """Squares in groups: how many, how full, their colour, and what they are."""
        d.text(left, y, title, 14, anchor="start", bold=True)
        x = left
        for number, full, colour, name in groups:
            d.cells(x, y + 14, [[full] * number], size, colour)
            if name:
                d.text(x + number * size / 2, y + 14 + size + 12, name, 12.5, muted=True)
            x += number * size + 14

    row(14, "weights", (4, 0.9, "query", "attention"), (8, 0.9, "plain", "feed-forward"))
    d.text(left, 84, "gradients and Adam's two means, in training", 14, anchor="start", bold=True)
    d.cells(left, 98, [[0.35] * 4] * 3, size, "query")
    d.cells(left + 4 * size + 14, 98, [[0.35] * 8] * 3, size, "plain")
    row(
        198, "activations, kept for the backward pass: T = 512",
        (8, 0.9, "value", "vectors, 8 T d"), (4, 0.9, "plain", "hidden, 4 T d"), (8, 0.9, "warn", "attention, H T^2^"),
    )  # fmt: skip
    row(272, "a decoder's layer, generating", (2, 0.9, "key", ""))
    d.text(left + 2 * size + 8, 298, "cache, 2 T d", 12.5, anchor="start", muted=True)
    square = d.box(356, 28, size, size)
    d.text(square.right[0] + 8, 34, "d × d = 512 × 512", 13, anchor="start")
    d.text(square.right[0] + 8, 52, "numbers, 1 MiB", 13, anchor="start")
    d.text(196, 290, "Twice as many tokens: the weights of attention", 13, anchor="start")
    d.text(196, 308, "times four, the rest of these rows times two.", 13, anchor="start")
    return d


@drawn
def gru() -> Diagram:
    d = Diagram(
        520, 272,
        "One step of a GRU. Along the top the state runs from left to right: the gate z lets a part of it through, and "
        "one minus z of the candidate n is added. The candidate is made of the input and of that part of the state "
        "which the gate r lets through.",
    )  # fmt: skip
    top, mixed, low, lower = 48, 106, 222, 250
    z = d.box(96, 152, 68, 38, "gate z", "sigmoid", learned=True)
    r = d.box(228, 152, 68, 38, "gate r", "sigmoid", learned=True)
    n = d.box(386, 152, 68, 38, "n", "tanh", "out", learned=True)
    d.text(4, top, "h_t−1_", anchor="start")
    d.text(4, lower + 8, "x_t_", anchor="start")
    keep, add = d.circle(130, top, 11, "×"), d.circle(420, top, 11, "+")
    let, take = d.circle(340, 171, 11, "×"), d.circle(420, mixed, 11, "×")
    d.arrow((46, top), keep.left, colour="value", width=3)
    d.arrow(keep.right, add.left, text="z h_t−1_: what stays", colour="value", width=3)
    d.arrow(add.right, (484, top), colour="value", width=3)
    d.text(488, top, "h_t_", anchor="start")
    d.arrow(z.top, keep.bottom)
    d.arrow((130, mixed), take.left, text="1 − z")
    d.arrow(n.top, take.bottom, colour="out")
    d.arrow(take.top, add.bottom, text="(1 − z) n", colour="out")
    d.arrow(r.right, let.left)
    d.arrow(let.right, n.left, colour="value")
    d.arrow((70, top), (70, low), (340, low), let.bottom, colour="value")
    for gate in (z, r):
        d.arrow((gate.bottom[0] - 14, low), (gate.bottom[0] - 14, 191), colour="value")
        d.arrow((gate.bottom[0] + 14, lower + 8), (gate.bottom[0] + 14, 191))
    d.arrow((30, lower + 8), (420, lower + 8), n.bottom)
    return d


@drawn
def training() -> Diagram:
    d = Diagram(
        520, 372,
        "Training a translator. Families of pairs are split in three. Training pairs become ids, batches, then inputs "
        "and labels; the model's logits and the labels give a loss, whose gradient Adam turns into new weights. "
        "Validation pairs choose the best weights, and test pairs score those once.",
    )  # fmt: skip
    steps = [
        ("sentence pairs", "Spanish, English"), ("split by families", ""), ("sub-words", "ids (S,) and (T,)"),
        ("batches by tokens", "ids (B, S) and (B, T)"), ("teacher forcing", "labels (B, T \u2212 1)"),
    ]  # fmt: skip
    left = [d.box(8, 10 + 76 * i, 168, 48, *step, learned=i == 2) for i, step in enumerate(steps)]
    for i, (above, below) in enumerate(zip(left, left[1:], strict=False)):
        d.arrow(above.bottom, below.top, text="training pairs" if i == 1 else "")
    model = d.box(296, 314, 138, 48, "Transformer", "logits (B, T \u2212 1, V)", learned=True)
    loss = d.box(296, 238, 138, 48, "loss", "masked, smoothed")
    adam = d.box(296, 162, 138, 48, "Adam", "rate of update n", colour="value")
    best = d.box(296, 86, 138, 48, "best weights", "by validation loss", colour="out")
    score = d.box(296, 10, 138, 48, "score", "BLEU, once", colour="out")
    d.arrow(left[4].right, model.left, text="source, inputs", side=-1)
    d.arrow((176, 326), (236, 326), (236, 262), loss.left, text="labels", at=0.8, side=-1)
    d.arrow(model.top, loss.bottom, text="logits", side=-1)
    d.arrow(loss.top, adam.bottom, text="gradient", colour="value", side=-1)
    d.arrow(adam.right, (450, 186), (450, 338), model.right, text="weights", colour="out", at=0.5)
    d.arrow(adam.top, best.bottom, text="now and then", colour="out", side=-1)
    d.arrow(left[1].right, best.left, text="validation pairs", side=-1)
    d.arrow((176, 98), (248, 98), (248, 34), score.left)
    d.text(211, 72, "test pairs", 12.5, muted=True)
    d.arrow(best.top, score.bottom, colour="out")
    return d


@drawn
def teacher_forcing() -> Diagram:
    d = Diagram(
        520, 412,
        "Teacher forcing against translating. In training the decoder reads the right target, shifted right by one; "
        "all its answers are compared with the labels after a single pass. In translation each pass gives one token, "
        "which the next pass reads.",
    )  # fmt: skip
    target = ("Never", "mind", ".")
    d.text(4, 16, "training: the target is known, one pass", 15, anchor="start", bold=True)
    model = d.box(98, 100, 416, 36, "decoder, causal mask", learned=True)
    for t, (given, label) in enumerate(zip(("[START]", *target), (*target, "[END]"), strict=True)):
        x = 98 + 106 * t
        read = d.box(x, 164, 98, 30, given)
        wanted = d.box(x, 36, 98, 30, label)
        d.arrow(read.top, (x + 49, model.y + 38))
        d.arrow((x + 49, model.y), wanted.bottom, colour="out")
    for y, name in ((51, "labels"), (82, "loss of each"), (179, "inputs")):
        d.text(4, y, name, 14, anchor="start", muted=True)
    d.text(306, 210, "the labels, shifted right by one", 14, muted=True)
    d.text(4, 250, "translating: the target is not known, a pass for each token", 15, anchor="start", bold=True)
    x = 8
    for t in range(3):
        width = 62 * (t + 1) + 4 * t
        model = d.box(x, 320, width, 32, "decoder", learned=True, size=13.5)
        for j, given in enumerate(("[START]", *target)[: t + 1]):
            read = d.box(x + 66 * j, 370, 62, 28, given, colour="plain" if not j else "out", size=14)
            d.arrow(read.top, (read.top[0], 353))
        written = d.box(x + width - 62, 272, 62, 28, target[t], colour="out", size=14)
        d.arrow((written.bottom[0], 320), written.bottom, colour="out")
        if t < 2:
            after = x + width + 50
            last = after + 66 * (t + 1) + 31
            d.arrow(
                written.right, (x + width + 25, 286), (x + width + 25, 407), (last, 407), (last, 399), colour="out",
                dashed=True,
            )  # fmt: skip
        x += width + 50
    return d


@drawn
def beam_search() -> Diagram:
    d = Diagram(
        520, 330,
        "Beam search of width 2 as a tree, with the logarithm of the probability of each beginning. After every token "
        "the two best beginnings stay, whichever branch they come from, and the others are dropped. The best sentence "
        "begins with the second best word, which a greedy search drops.",
    )  # fmt: skip
    after = {
        (): {"It": 0.5, "Never": 0.4, "That": 0.1},
        ("It",): {"doesn't": 0.5, "is": 0.3, "was": 0.2},
        ("Never",): {"mind": 0.9, "say": 0.1},
        ("Never", "mind"): {".": 0.9, "it": 0.1},
        ("It", "doesn't"): {"matter": 0.7, "hurt": 0.3},
    }
    beam, lefts = {(): (0.0, d.box(4, 148, 70, 34, "[START]", size=14))}, (112, 254, 396)
    for step, left in enumerate(lefts):
        found = {
            (*begun, token): (score + math.log(p), box)
            for begun, (score, box) in beam.items()
            for token, p in after[begun].items()
        }
        kept = sorted(found, key=lambda begun: found[begun][0])[-2:]
        beam, gap = {}, 246 / (len(found) - 1)
        for i, (begun, (score, parent)) in enumerate(found.items()):
            stays = begun in kept
            colour = "out" if stays else "plain"
            said = f"log p = {score:.2f}".replace("-", "−")
            box = d.box(left, 34 + gap * i, 116, 44, begun[-1], said, colour, dashed=not stays)
            d.arrow(parent.right, box.left, colour=colour, dashed=not stays, width=2.2 if stays else 1.2)
            if stays:
                beam[begun] = (score, box)
        d.text(left + 58, 14, f"after token {step + 1}", 14, muted=True)
    return d


@drawn
def cache() -> Diagram:
    d = Diagram(
        520, 326,
        "The cache of a decoder that reads its fourth token. With it, the keys and values of the three tokens before "
        "are kept, and one query, one key and one value are computed. Without it, all rows are computed again, the "
        "same as before, and of four rows of weights only the last is used.",
    )  # fmt: skip
    words = ("this", "is", "a", "problem")
    size = 17
    for panel, (title, old) in enumerate((("with the cache", 0.3), ("without", 1.0))):
        left = 82 + 228 * panel
        d.text(left + 96, 12, title, bold=True)
        if panel:
            d.box(left - 8, 48, 204, 61, "", colour="warn", dashed=True)
        for b, (name, colour) in enumerate((("q", "query"), ("k", "key"), ("v", "value"))):
            x = left + 68 * b
            d.text(x + 1.5 * size, 36, name, bold=True)
            rows = [[old] * 3] * 3 + [[1.0] * 3]
            if colour == "query" and panel == 0:
                d.cells(x, 54 + 3 * (size + 3), [[1.0] * 3], size, colour)
                continue
            for i, row in enumerate(rows):
                d.cells(x, 54 + i * (size + 3), [row], size, colour)
        if panel == 0:
            for i, word in enumerate(words):
                d.text(left - 8, 54 + (size + 3) * i + size / 2, word, 14, anchor="end")
            d.text(left + 68, 148, "pale: kept from before", 13, muted=True)
            d.text(left + 68, 166, "full: computed now", 13, muted=True)
        else:
            d.text(left + 94, 148, "computed again,", 13, muted=True)
            d.text(left + 94, 166, "the same as before", 13, muted=True)
        rows = softmax(np.array([[1.0, -9, -9, -9], [0.2, 0.9, -9, -9], [0.4, 0.1, 0.8, -9], [0.3, 0.9, 0.1, 0.6]]))
        shown = [[None if j > i else float(w) for j, w in enumerate(row)] for i, row in enumerate(rows)]
        d.cells(left + 60, 200 + (60 if panel == 0 else 0), shown[3:] if panel == 0 else shown, 20, "out")
        if panel == 0:
            d.text(left + 100, 246, "its row of weights", 14)
        else:
            d.text(left + 150, 270, "used", 13, anchor="start")
            d.text(left + 150, 228, "unused", 13, anchor="start", muted=True)
        d.text(left + 100, 304, "(1, 4)" if panel == 0 else "(4, 4)", 13, muted=True)
    return d


@drawn
def activation_patching() -> Diagram:
    d = Diagram(
        520, 356,
        "Activation patching. Two runs of one translator: the first reads gato, the second perro; both decoders have "
        "read the same English. In the row that predicts the next token, one head's output is copied from the first "
        "run into the second, whose later layers are computed anew. The logits of dog and cat say how far it moved.",
    )  # fmt: skip
    size = 19
    for y, source, answer, after in ((52, "gato", "cat", "the rest"), (232, "perro", "?", "anew")):
        second = source == "perro"
        colour = "key" if second else "warn"
        middle = y + 1.5 * size
        d.text(4, y + 84 if second else y - 38, f"{'patched' if second else 'kept'}: {source}", 14, "start", bold=True)
        read = d.box(4, middle - 20, 58, 40, source, colour=colour)
        encoder = d.box(88, middle - 20, 80, 40, "encoder", learned=True)
        for row in range(3):
            for head in range(4):
                copied = row == 2 and head == 1
                kind = "warn" if copied else colour
                d.cells(222 + size * head, y + size * row, [[1.0 if copied else 0.25]], size, kind)
        rest = d.box(352, middle - 23, 80, 46, "decoder", after, learned=True)
        end = d.box(464, middle - 23, 52, 46, answer, "row t", colour="out" if second else "warn")
        d.arrow(read.right, encoder.left, colour=colour)
        d.arrow(encoder.right, (221, middle), colour=colour, text="(S, D)")
        d.arrow((222 + 4 * size, middle), rest.left, colour=colour, text="(T, D)")
        d.arrow(rest.right, end.left, colour="out" if second else "warn")
        d.text(216, y + 2.5 * size, "row t", 13, anchor="end", muted=True)
    d.text(260, 14, "cross-attention heads of one layer", 13, muted=True)
    d.text(260, 34, "1   2  …  H", 13, muted=True)
    x = 222 + 1.5 * size
    d.arrow((x, 52 + 3 * size + 2), (x, 230 + 2 * size), colour="warn", width=3)
    d.text(x + 12, 150, "one head's output in row t", 14, anchor="start")
    d.text(x + 12, 170, "is copied: (D / H,)", 14, anchor="start")
    d.text(516, 316, "dog minus cat: how far did it move?", 13, anchor="end", muted=True)
    d.text(4, 342, "both decoders have read: I saw a white", 13, anchor="start", muted=True)
    return d


@drawn
def pretraining() -> Diagram:
    d = Diagram(
        520, 508,
        "BERT's pretraining. Three tokens of a pair of texts are chosen: one becomes MASK, one another token, one "
        "stays. The encoder reads the result. Only the chosen vectors go on to the vocabulary's logits, to be compared "
        "with what stood there. The vector of CLS tells whether the second text follows the first. "
        "Both losses are added.",
    )  # fmt: skip
    text = ("[CLS]", "the", "plot", "drags", "[SEP]", "too", "long", "[SEP]")
    read = ("[CLS]", "the", "[MASK]", "drags", "[SEP]", "too", "blue", "[SEP]")
    left, step, blanks = 50, 54, (2, 3, 6)
    fates = {2: "masked", 3: "kept", 6: "another"}
    for i in range(8):
        x = left + step * i
        chosen = i in blanks
        d.box(x, 462, step - 5, 28, text[i], colour="value" if chosen else "plain", size=13)
        d.box(x, 394, step - 5, 28, read[i], colour="warn" if chosen else "plain", size=13, dashed=chosen)
        d.arrow((x + 24, 461), (x + 24, 424), dashed=chosen)
        if chosen:
            d.text(x + 24, 383, fates[i], 12, muted=True)
        d.arrow((x + 24, 374), (x + 24, 357))
        d.text(x + 24, 500, "0" if i < 5 else "1", 12, muted=True)
        used = i == 0 or chosen
        d.box(x, 274, step - 5, 24, f"h_{i}_" if used else "", colour="out" if used else "plain", size=13)
        d.arrow((x + 24, 317), (x + 24, 300), colour="out" if used else "plain")
    d.text(2, 476, "text", 13, anchor="start")
    d.text(2, 500, "segment", 12, anchor="start", muted=True)
    d.text(2, 402, "read", 13, anchor="start")
    d.text(2, 420, "(T,)", 12.5, anchor="start", muted=True)
    d.text(2, 286, "(T, d)", 12.5, anchor="start", muted=True)
    d.box(left, 318, step * 8 - 5, 38, "encoder: every token sees both sides", learned=True)
    pooler = d.box(8, 196, 122, 40, "pooler, linear", "→ (2,)", learned=True, size=14)
    head = d.box(152, 196, 252, 40, "head: one score for each token", "(N, d) → (N, V)", learned=True, size=14)
    d.arrow((left + 24, 273), (left + 24, 238), colour="out")
    for i in blanks:
        d.arrow((left + step * i + 24, 273), (left + step * i + 24, 238), colour="out")
    d.text(left + step * 4.5 + 22, 256, "only the N blanks", 12.5, muted=True)
    follows = d.box(8, 118, 122, 40, "does it follow?", "L_next_", colour="warn", size=14)
    filled = d.box(152, 118, 252, 40, "what stood there?", "L_blanks_", colour="warn", size=14)
    d.arrow(pooler.top, follows.bottom)
    d.arrow(head.top, filled.bottom)
    d.text(head.top[0] + 8, 177, "softmax", 12.5, anchor="start", muted=True)
    total = d.box(152, 40, 252, 40, "L = L_blanks_ + L_next_", colour="warn")
    d.arrow(filled.top, total.bottom, colour="warn")
    d.arrow((69, 118), (69, 60), (151, 60), colour="warn")
    d.curve("M 482 476 L 500 476 Q 508 476 508 468 L 508 146 Q 508 138 500 138 L 408 138", "value", head=True)
    d.text(461, 104, "answers:", 13)
    d.text(461, 122, "plot, drags, long", 12)
    d.text(152, 16, "two losses from text alone", 14, anchor="start", bold=True)
    return d


@drawn
def waiting() -> Diagram:
    d = Diagram(
        520, 224,
        "Why a small BERT waits. A head must look beside the blank, what it brings must name one token, and the layers "
        "behind must score what fits. They can use a token only once a head looks at one; a gradient turns the head "
        "only once what it brings is used. Each waits for the other.",
    )  # fmt: skip
    looks = d.box(8, 84, 142, 56, "a head looks", "beside the blank", learned=True, size=14)
    brings = d.box(189, 84, 142, 56, "what it brings", "names one token", learned=True, size=14)
    uses = d.box(370, 84, 142, 56, "layers behind", "score what fits", learned=True, size=14)
    d.arrow(looks.right, brings.left, colour="value", width=3)
    d.arrow(brings.right, uses.left, colour="value", width=3)
    d.curve("M 79 83 C 110 28, 410 28, 441 81", "warn", dashed=True, head=True)
    d.curve("M 441 141 C 410 196, 110 196, 79 143", "warn", dashed=True, head=True)
    d.text(260, 22, "can use a token only once a head looks at one", 14)
    d.text(260, 62, "each waits for the other", 14, bold=True)
    d.text(260, 206, "a gradient turns the head only once what it brings is used", 14)
    return d


@drawn
def hidden_states() -> Diagram:
    d = Diagram(
        520, 468,
        "From tokens to hidden states. Each token is the sum of three learned rows, of its id, its segment and its "
        "position, then normalised: this is hidden state 0. Six blocks follow; the output of block k is hidden state "
        "k. The last, number 6, is also called last_hidden; the pooler reads its first vector alone, that of CLS.",
    )  # fmt: skip
    tokens = ("[CLS]", "this", "box", "is", "light", "[SEP]")
    left, step, right = 76, 53, 400
    for r, (name, entries) in enumerate((("token", tokens), ("segment", "000000"), ("position", "012345"))):
        y = 344 + 44 * r
        d.text(2, y + 14, name, 13, anchor="start")
        for i, entry in enumerate(entries):
            d.box(left + step * i, y, step - 5, 28, entry, size=13, learned=True)
            if r < 2:
                d.text(left + step * i + 24, y + 36, "+", 14)
    d.text(right, 402, "three tables,", 13, anchor="start", muted=True)
    d.text(right, 420, "one row of each", 13, anchor="start", muted=True)
    norm = d.box(left, 302, step * 6 - 5, 24, "normalise", size=13, learned=True)
    rows = ((258, "hidden[0]", "the embeddings"), (176, "hidden[1]", "after block 1"),
            (60, "hidden[6]", "= last_hidden"))  # fmt: skip
    for y, name, what in rows:
        for i in range(6):
            d.box(left + step * i, y, step - 5, 20, colour="out")
        d.text(right, y + 2, name, 14, anchor="start", bold=True)
        d.text(right, y + 20, what, 13, anchor="start", muted=True)
    first = d.box(left, 218, step * 6 - 5, 26, "block 1: every token sees all others", size=13, learned=True)
    last = d.box(left, 102, step * 6 - 5, 26, "block 6", size=13, learned=True)
    for i in range(6):
        x = left + step * i + 24
        for below, above in ((343, norm.y + 25), (301, 279), (257, 245), (217, 197), (101, 81)):
            d.arrow((x, below), (x, above), colour="plain" if below > 260 else "out")
        d.arrow((x, 175), (x, 129), colour="out", dashed=True)
    d.text(right, 140, "…", 15, anchor="start", muted=True)
    d.text(right, 264 - 33, "(T, 384) each", 13, anchor="start", muted=True)
    pooler = d.box(left - 4, 8, 98, 28, "pooler", size=13, learned=True)
    d.arrow((left + 24, 59), (left + 24, pooler.bottom[1] + 1), colour="out")
    d.text(left + 104, 22, "reads [CLS] of the last layer: tanh(W h + b)", 13, anchor="start", muted=True)
    assert first.width == last.width
    return d


@drawn
def probe() -> Diagram:
    d = Diagram(
        520, 372,
        "A probe and its three controls. A frozen encoder makes a vector of each word; a linear probe learns to read "
        "the word's tag from it. Controls: random answers, one for each word, that the same probe learns; an encoder "
        "with random weights; and a dictionary of each word's most frequent tag, without any vector.",
    )  # fmt: skip
    words, tags, random = ("the", "box", "is", "light"), ("DT", "NN", "VBZ", "JJ"), ("VB", "IN", "CD", "VB")
    left, step = 8, 58
    d.text(left + 2 * step - 3, 16, "answers to learn", bold=True)
    for i in range(4):
        x = left + step * i
        d.box(x, 34, step - 6, 28, tags[i], colour="value", size=14)
        d.box(x, 72, step - 6, 28, random[i], colour="warn", size=14, dashed=True)
        d.box(x, 136, step - 6, 30, "probe", learned=True, size=13)
        d.box(x, 196, step - 6, 24, "h", colour="out", size=13)
        d.box(x, 322, step - 6, 30, words[i], size=14)
        d.arrow((x + 26, 195), (x + 26, 168), colour="out")
        d.arrow((x + 26, 135), (x + 26, 103))
        d.arrow((x + 26, 321), (x + 26, 299))
        d.arrow((x + 26, 247), (x + 26, 222), colour="out")
    d.box(left, 248, 4 * step - 6, 50, "encoder up to layer k", "frozen", dashed=True)
    x = 262
    d.text(x, 48, "the tag: what we ask for", 14, anchor="start")
    d.text(x, 86, "1  a random answer for each word:", 14, anchor="start")
    d.text(x + 18, 105, "what the probe learns by heart", 13, anchor="start", muted=True)
    d.text(x, 151, "one linear map for all words", 14, anchor="start")
    d.text(x, 208, "vectors of layer k, (384,) each", 14, anchor="start")
    d.text(x, 262, "2  the same with random weights:", 14, anchor="start")
    d.text(x + 18, 281, "what needs no training", 13, anchor="start", muted=True)
    d.text(x, 328, "3  a dictionary from word to tag:", 14, anchor="start")
    d.text(x + 18, 347, "what needs no vectors", 13, anchor="start", muted=True)
    return d


@drawn
def fine_tuning() -> Diagram:
    d = Diagram(
        520, 404,
        "Three ways to tune one model. A new classifier reads the tokens' mean vector. Frozen: the gradient "
        "stops at the classifier. Fine-tuned: it reaches layers and embeddings, and every weight moves. LoRA: it "
        "goes through the layers, not to the embeddings, and moves only two narrow matrices, A and B, beside the "
        "frozen matrices W of queries and values.",
    )  # fmt: skip
    for panel, title in enumerate(("frozen", "fine-tuned", "LoRA")):
        left, tuned = 4 + 178 * panel, panel == 1
        d.text(left + 62, 16, title, bold=True)
        state = "learns" if tuned else "frozen"
        loss = d.box(left, 36, 124, 34, "loss", colour="warn")
        classifier = d.box(left, 100, 124, 44, "classifier", "new: learns", "out", learned=True)
        vector = d.box(left, 176, 124, 44, "mean", "(384,)")
        height = 84 if panel == 2 else 44
        encoder = d.box(left, 252, 124, height, "", learned=tuned, dashed=not tuned)
        middle = left + 62
        if panel == 2:
            d.text(middle, 268, "queries, values", 13)
            d.box(left + 8, 282, 46, 46, "W", "frozen", dashed=True)
            d.text(left + 64, 306, "+", 15)
            d.box(left + 74, 282, 14, 46, "B", learned=True, colour="out", size=13)
            d.box(left + 92, 298, 26, 14, "A", learned=True, colour="out", size=13)
        else:
            d.text(middle, 268, "6 layers", 14)
            d.text(middle, 286, state, 13, muted=True)
        words = d.box(left, 356, 124, 44, "embeddings", state, learned=tuned, dashed=not tuned)
        for below, above, shape in (
            (words, encoder, ""),
            (encoder, vector, "(T, 384)"),
            (vector, classifier, ""),
            (classifier, loss, ""),
        ):
            d.arrow(below.top, above.bottom)
            if shape:
                d.text(middle + 6, (below.top[1] + above.bottom[1]) / 2, shape, 13, anchor="start", muted=True)
        x = left + 142
        ends = (classifier,) if panel == 0 else (classifier, encoder, words) if tuned else (classifier, encoder)
        d.curve(f"M {left + 124} 53 L {x - 8} 53 Q {x} 53 {x} 61", "warn", dashed=True, width=2.4)
        d.arrow((x, 61), (x, ends[-1].right[1]), ends[-1].right, colour="warn", dashed=True, width=2.4)
        for end in ends[:-1]:
            d.arrow((x, end.right[1]), end.right, colour="warn", dashed=True, width=2.4)
    d.text(148, 161, "stops here", 13, anchor="end", muted=True)
    return d


@drawn
def four_tasks() -> Diagram:
    d = Diagram(
        520, 404,
        "One frozen encoder and four tasks. Each has a narrow adapter inside the encoder and a head above it. A text's "
        "class is read from the mean of all vectors, tags from the first piece of each word, an answer's start and end "
        "from all vectors; for similarity the mean itself is the result.",
    )  # fmt: skip
    columns = (
        ("a text's class", ("classes (2,)",), "mean, linear", "384 to 2", "111111", "one text"),
        ("names", ("tags (T, 9)",), "linear", "384 to 9", "011010", "one text"),
        ("answers", ("starts (T,)", "ends (T,)"), "linear", "384 to 2", "111111", "question, text"),
        ("similarity", ("vector (384,)",), "mean", "to length 1", "111111", "each text alone"),
    )
    left, step, wide = 6, 129, 121
    for i, (title, outputs, head, shape, used, read) in enumerate(columns):
        x = left + step * i
        middle = x + wide / 2
        d.text(middle, 14, title, bold=True)
        for k, output in enumerate(outputs):
            d.text(middle, 54 - 20 * (len(outputs) - 1 - k), output, 13)
        made = d.box(x + 5, 92, wide - 10, 46, head, shape, "out", learned=head != "mean")
        d.arrow(made.top, (middle, 66), colour="out")
        for j, one in enumerate(used):
            cell = d.box(x + 3 + 19.5 * j, 176, 17, 22, colour="out" if one == "1" else "plain", dashed=one == "0")
            if one == "1":
                d.arrow(cell.top, (cell.top[0] + (middle - cell.top[0]) * 0.35, 140), colour="out", width=1)
        d.arrow((middle, 231), (middle, 201), text="(T, 384)")
        d.box(x + 12, 246, wide - 24, 46, "adapter", "learned", "value", learned=True)
        d.arrow((middle, 361), (middle, 337))
        d.text(middle, 374, read, 13)
    d.box(2, 232, 516, 104, dashed=True)
    d.text(260, 314, "one encoder for all: 6 layers, frozen", 15)
    d.text(260, 394, "T tokens each", 12.5, muted=True)
    return d


@drawn
def bert_family() -> Diagram:
    d = Diagram(
        520, 386,
        "BERT and three relatives, from tokens up to what a classifier reads; in red what differs. RoBERTa's positions "
        "begin at 2, without segments. DistilBERT has six layers for twelve, no segments and no pooler. ALBERT has "
        "narrow tables that a matrix widens, and runs one layer twelve times.",
    )  # fmt: skip
    columns = (
        ("BERT", "pooler", 12, (("token", "(30522, 768)"), ("position", "from 0"), ("segment", "0 or 1"))),
        ("RoBERTa", "dense", 12, (("token", "(50265, 768)"), ("position", "from 2"), None)),
        ("DistilBERT", "dense", 6, (("token", "(30522, 768)"), ("position", "from 0"), None)),
        ("ALBERT", "pooler", 1, (("token", "(30000, 128)"), ("position", "from 0"), ("segment", "0 or 1"))),
    )
    left, step, wide, top, high = 4, 130, 122, 76, 118
    for i, (title, head, layers, tables) in enumerate(columns):
        x = left + step * i
        middle = x + wide / 2
        d.text(middle, 14, title, bold=True)
        read = d.box(x + 16, 34, wide - 32, 28, head, colour="warn" if head == "dense" else "plain", learned=True)
        d.arrow((middle, top), read.bottom)
        colour = "plain" if layers == 12 else "warn"
        every = 12 // layers
        for j in range(0, 12, every) if layers > 1 else ():
            d.box(x + 22, top + 10 * j, wide - 44, 8, colour=colour, learned=True)
        if layers == 1:
            layer = d.box(x + 22, top + 43, wide - 44, 32, "layer", colour=colour, learned=True)
            right, low, up = layer.x + layer.width, layer.y + 26, layer.y + 6
            d.curve(
                f"M {right} {up} C {right + 24} {up - 14}, {right + 24} {low + 14}, {right + 3} {low}",
                colour,
                head=True,
            )
            d.curve(f"M {middle} {top + high} L {middle} {layer.y + 34}")
            d.curve(f"M {middle} {layer.y - 1} L {middle} {top}")
        d.text(middle, top + high + 10, "one, 12 times" if layers == 1 else f"{layers} layers", 13)
        narrow = title == "ALBERT"
        if narrow:
            d.box(x + 16, 217, wide - 32, 23, "", "(128, 768)", colour="warn", learned=True)
        d.arrow((middle, 248), (middle, 241 if narrow else 216))
        for k, table in enumerate(tables):
            y = 250 + 40 * k
            if table is None:
                d.box(x + 6, y, wide - 12, 36, "no segments", dashed=True, colour="warn", size=13)
                continue
            differs = narrow and k == 0 or title == "RoBERTa" and k == 1
            inset = 16 if narrow else 6
            d.box(
                x + inset, y, wide - 2 * inset, 36, *table, colour="warn" if differs else "plain", learned=True, size=13
            )
        d.text(middle, 376, "T tokens", 12.5, muted=True)
    return d


@drawn
def decoder_alone() -> Diagram:
    d = Diagram(
        520, 470,
        "A decoder alone. Tokens with positions go up through layers of masked self-attention and feed-forward "
        "networks to logits for the next token, by the token table used again. In training each position is compared "
        "with the token that follows. In generation the last position's token becomes the next input; a cache keeps "
        "earlier keys and values.",
    )  # fmt: skip
    words, nexts = ("the", "cat", "sat", "on"), ("cat", "sat", "on", "?")
    left, step, wide = 96, 68, 60
    right = left + 3 * step + wide
    middle = (left + right) / 2
    d.text(4, 452, "input", 13, anchor="start", muted=True)
    d.text(4, 30, "says next", 13, anchor="start", muted=True)
    table = d.box(left, 378, right - left, 40, "token + position", "tables (V, d) and (T, d)", learned=True)
    d.curve(f"M {left - 8} 150 H {right + 8} V 340 H {left - 8} Z", dashed=True, width=1.3)
    d.text(4, 248, "n layers", 13, anchor="start", muted=True)
    inner = right - left - 16
    attend = d.box(left + 8, 274, inner, 54, "masked self-attention", "H heads", colour="query", learned=True)
    d.box(left + 8, 176, inner, 44, "feed-forward", "each position alone", learned=True)
    head = d.box(left, 78, right - left, 40, "norm, then the token table", "(d, V), used again", learned=True)
    d.arrow((middle, 378), (middle, 330), text="(T, d)", at=0.36)
    d.arrow((middle, 274), (middle, 222), text="(T, d)")
    d.arrow((middle, 176), (middle, 120), text="(T, d)", at=0.62)
    for i, (word, after) in enumerate(zip(words, nexts, strict=True)):
        x = left + step * i
        last = i == 3
        d.box(x, 440, wide, 26, word, colour="key")
        d.arrow((x + wide / 2, 440), (x + wide / 2, table.y + table.height + 1))
        d.box(x, 18, wide, 26, after, colour="warn" if last else "out", dashed=last)
        said = "(T, V)" if i == 0 else ""
        d.arrow((x + wide / 2, head.y), (x + wide / 2, 46), text=said, colour="warn" if last else "out")
    seen = [[1.0 if s <= t else None for s in range(4)] for t in range(4)]
    x = 412
    d.cells(x, 250, seen, 18, "query")
    d.text(x + 36, 236, "causal mask", 13)
    d.text(x + 36, 336, "(T, T)", 12.5, muted=True)
    d.arrow((x - 3, 300), (attend.x + attend.width + 1, 300), colour="query")
    kept = d.box(x - 4, 176, 92, 42, "cache: k, v", "(H, t, d / H)", colour="value", size=13)
    d.arrow(kept.left, (384, 197), (384, 285), (attend.x + attend.width + 1, 285), colour="value")
    d.arrow((right, 31), (510, 31), (510, 453), (right + 2, 453), colour="warn", dashed=True)
    d.text(434, 46, "choose a token,", 13)
    d.text(434, 64, "then read it", 13)
    d.text(434, 432, "the new token", 13)
    return d


@drawn
def text_to_text() -> Diagram:
    d = Diagram(
        520, 320,
        "Four tasks through one model. Each source begins with a word that says what is asked: translate, mend, judge, "
        "answer. All four go through the same encoder and the same decoder, which write a sentence, a sentence, good, "
        "and a place. Encoder and decoder add to each score of self-attention a learned number, the same along each "
        "diagonal.",
    )  # fmt: skip
    asked = (
        ("translate:", "Me gusta leer.", "I like to read."),
        ("mend:", "I like read to.", "I like to read."),
        ("judge:", "A warm and funny film.", "good"),
        ("answer:", "Where is Ada? Ada ...", "attic"),
    )
    step, top, high = 58, 34, 46
    tall = 3 * step + high
    encoder = d.box(202, top, 92, tall, colour="key", learned=True)
    decoder = d.box(320, top, 82, tall, colour="query", learned=True)
    for box, name, seen, shape in (
        (encoder, "encoder", "all to all", "(S, d)"),
        (decoder, "decoder", "causal", "(T, d)"),
    ):
        middle = box.x + box.width / 2
        d.text(middle, top + 24, name)
        d.text(middle, top + 44, seen, 12.5, muted=True)
        d.text(middle, top + tall - 18, shape, 12.5, muted=True)
        by_distance = (0.15, 0.4, 0.9, 0.25, 0.6, 0.75, 0.3)  # of keys three before to three behind
        added = [[by_distance[j - i + 3] if name == "encoder" or j <= i else None for j in range(4)] for i in range(4)]
        d.text(middle, top + 76, "scores +", 12.5, muted=True)
        d.cells(middle - 32, top + 92, added, 16, "key" if box is encoder else "query")
    d.arrow(encoder.right, decoder.left, colour="key", width=2.6)
    for i, (word, source, target) in enumerate(asked):
        y = top + step * i
        box = d.box(4, y, 172, high, word, source, colour="warn")
        d.arrow(box.right, (encoder.x - 2, box.right[1]))
        said = d.box(428, y + 6, 90, high - 12, target, colour="out", size=12.5)
        d.arrow((decoder.x + decoder.width, said.left[1]), (426, said.left[1]), colour="out")
    d.text(90, 14, "what is asked, and of what", 13, muted=True)
    d.text(302, 14, "one set of weights", 13, bold=True)
    d.text(473, 14, "written", 13, muted=True)
    below = decoder.bottom[0], 268
    d.arrow((473, 248), (473, below[1]), below, (below[0], top + tall + 2), colour="out", dashed=True)
    d.text(417, 282, "written so far", 12.5, muted=True)
    d.text(260, 306, "each head adds a learned number per distance; far ones share one", 13)
    return d


@drawn
def long_inputs() -> Diagram:
    d = Diagram(
        520, 400,
        "Four ways to attend, with eight tokens. All scores: the whole square is held. By blocks: one tile is "
        "held at a time, and the numbers are the same. A window with one global position: most of the square is never "
        "computed. Linear: there is no square; each token adds to a matrix of fixed size, and asks it.",
    )  # fmt: skip
    size, left, top = 15, (62, 326), (42, 240)
    near = np.asarray(window_mask(1, 8, global_positions=(0,)))[0, 0]
    tile = np.zeros((8, 8))
    tile[4:6, 2:4] = 1
    for x, y, name, shown, colour, held in (
        (left[0], top[0], "all scores", np.ones((8, 8)), "query", "held: T × T"),
        (left[1], top[0], "by blocks", tile, "query", "held: a tile; same numbers"),
        (left[0], top[1], "window + global", near, "query", "T (2w + 1), and the global"),
    ):
        rows = [[0.75 if seen else (0.0 if name == "by blocks" else None) for seen in row] for row in shown]
        table = d.cells(x, y, rows, size, colour)
        d.text(table.top[0], y - 24, name, bold=True)
        d.text(table.bottom[0], y + 8 * size + 16, held, 13)
    for i in range(1, 4):
        x, y = left[1] + 2 * i * size, top[0] + 2 * i * size
        d.curve(f"M {left[1]} {y} h {8 * size} M {x} {top[0]} v {8 * size}", colour="out", width=2)
    x, y = left[1], top[1]
    d.text(x + 4 * size, y - 24, "linear", bold=True)
    token = d.box(x - 72, y + 13, 84, 40, "φ(k_t_), v_t_", colour="value")
    query = d.box(x - 72, y + 58, 84, 40, "φ(q_t_)", colour="query")
    state = d.cells(x + 56, y + 26, [[0.5] * 5] * 4, size, "value")
    d.text(state.top[0], y + 12, "S", italic=True)
    out = d.box(x + 148, y + 36, 42, 40, "o_t_", colour="out")
    d.arrow(token.right, (state.x - 3, token.right[1]), text="adds", colour="value")
    d.arrow(query.right, (state.x - 3, query.right[1]), text="asks", side=-1, colour="query")
    d.arrow(state.right, out.left, colour="out")
    d.text(x + 4 * size, y + 8 * size + 16, "held: d_k_ (d_v_ + 1)", 13)
    return d


@drawn
def running_softmax() -> Diagram:
    d = Diagram(
        520, 258,
        "A block of queries meets the keys and values a block at a time. Three things are carried along: of each query "
        "the largest score so far, the sum of the exponentials, and the weighted sum of values. When a larger score "
        "comes, both sums shrink by the same factor. At the end one is divided by the other.",
    )  # fmt: skip
    queries = d.box(8, 122, 74, 48, "Q block", "(B, d_k_)", "query")
    boxes, middle = [], 146
    for i in range(3):
        x = 116 + 112 * i
        block = d.box(x, 26, 86, 48, f"K_{i + 1}_, V_{i + 1}_", "B (d_k_ + d_v_)", "key")
        step = d.box(x, 122, 86, 48, "m, ℓ, o", "B (d_v_ + 2)", "value")
        d.arrow(block.bottom, step.top, text="scores" if i == 0 else "", colour="key")
        boxes.append(step)
    d.arrow(queries.right, boxes[0].left, colour="query")
    for before, after in zip(boxes, boxes[1:], strict=False):
        d.arrow(before.right, after.left, colour="warn", width=2.4)
    out = d.box(452, 122, 60, 48, "o / ℓ", "(B, d_v_)", "out")
    d.arrow(boxes[-1].right, out.left, colour="out", width=2.4)
    for x in (boxes[0].right[0] + 13, boxes[1].right[0] + 13):
        d.arrow((x, 206), (x, middle + 4), colour="warn", dashed=True)
    d.text(270, 220, "ℓ and o, times exp(m before − m now)", 14)
    d.text(270, 240, "m: largest score; ℓ: sum of exponentials; o: weighted sum", 13, muted=True)
    return d


@drawn
def patches() -> Diagram:
    d = Diagram(
        520, 452,
        "A Vision Transformer. The image is cut into square patches. Each patch is a row of pixels, and one learned "
        "matrix makes a token of it. A class token goes in front, and each token gets the learned vector of its "
        "number. Encoder layers let all tokens attend to all. The class token alone is classified.",
    )  # fmt: skip
    rng, size = np.random.default_rng(3), 13
    image = 0.12 + 0.12 * rng.random((6, 6))
    image[1:4, 2:5] = 0.9
    d.cells(12, 330, image.tolist(), size, "value")
    for i in (1, 2):
        d.curve(f"M 12 {330 + 26 * i} h 78 M {12 + 26 * i} 330 v 78", colour="out", width=2.4)
    d.text(51, 424, "image", 14)
    d.text(51, 441, "(C, H, W)", 12.5, muted=True)
    d.arrow((96, 369), (120, 369), colour="value")
    for n in range(4):
        row, column = divmod(n if n < 3 else 8, 3)
        part = image[2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
        left = 214 + (60 if n < 3 else 68) * n + (0 if n < 3 else 16)
        d.cells(left, 356, part.tolist(), size, "value")
        d.text(left + 13, 396, f"x_{n + 1 if n < 3 else 'N'}_", italic=True)
        token = d.box(left - 10, 232, 46, 34, f"z_{n + 1 if n < 3 else 'N'}_", colour="key")
        d.arrow((left + 13, 352), (left + 13, 322), colour="value")
        d.arrow((left + 13, 288), token.bottom, colour="key")
        d.arrow(token.top, (left + 13, 178), colour="query")
    d.text(410, 369, "...", 15)
    d.text(410, 249, "...", 15)
    d.text(168, 362, "cut: N rows", 13)
    d.text(168, 380, "(N, C P²)", 12.5, muted=True)
    d.box(196, 289, 296, 32, "the same matrix E for each: (C P², d)", colour="key", learned=True, size=14)
    token = d.box(136, 232, 46, 34, "z_0_", colour="warn")
    d.text(66, 305, "class token (d)", 14)
    d.arrow((122, 305), (159, 305), token.bottom, colour="warn")
    d.text(66, 240, "+ positions", 14)
    d.text(66, 258, "(1 + N, d), learned", 12.5, muted=True)
    d.box(128, 124, 364, 52, "encoder: all attend to all", "(1 + N, d), layer by layer", "query", learned=True)
    d.arrow(token.top, (159, 178), colour="query")
    d.box(128, 60, 140, 36, "classifier", colour="out", learned=True)
    d.arrow((159, 122), (159, 98), colour="warn", width=3)
    d.text(290, 108, "of z_0_ alone", 13)
    d.arrow((198, 58), (198, 34), colour="out")
    d.text(198, 20, "logits (n_classes_)", 14)
    return d


@drawn
def speech() -> Diagram:
    d = Diagram(
        520, 452,
        "From sound to text. Each hundredth of a second becomes a column of bands, the log-mel spectrogram. Two "
        "learned convolutions make a token of every second column, and in the encoder all attend to all. A causal "
        "decoder is given a start, what is asked and the syllables so far, attends to the encoder's tokens and says "
        "the next syllable.",
    )  # fmt: skip
    spoken = syllables.draw(1, np.random.default_rng(5), length=(3, 3), snr=None)
    said = [syllables.SYLLABLES[symbol] for symbol in spoken.symbols[0]]
    wave = spoken.waves[0, : int(spoken.ends[0][-1] * RATE) + HOP]
    left, wide, middle = 16, 210, 121
    heights = np.array([np.abs(part).max() for part in np.array_split(wave, wide)])
    heights = 22 * heights / heights.max()
    d.curve(" ".join(f"M {left + x} {410 - h:.1f} v {2 * h:.1f}" for x, h in enumerate(heights)), "value", width=1)
    d.text(middle, 442, "wave: 16,000 numbers a second", 13, muted=True)
    d.arrow((middle, 384), (middle, 364), colour="value")
    columns = np.array_split(log_mel(wave, n_mels=12), 30, axis=1)
    picture = np.stack([column.mean(axis=1) for column in columns], axis=1)[::-1]
    d.cells(left, 276, ((picture - picture.min()) / np.ptp(picture)).tolist(), 7, "value")
    d.text(middle, 264, "log-mel spectrogram (bands, F)", 13, muted=True)
    convolutions = d.box(
        left, 190, wide, 42, "two convolutions", "every second frame: (S, d)", colour="key", learned=True
    )
    d.arrow((middle, 253), (middle, 234), colour="value")
    d.arrow(convolutions.top, (middle, 160), colour="key")
    d.text(middle + 8, 175, "+ sinusoids", 13, anchor="start", muted=True)
    encoder = d.box(left, 98, wide, 60, "encoder: all attend to all", "(S, d), layer by layer", "key", learned=True)
    decoder = d.box(292, 98, 216, 60, "decoder, causal", "(T, d), layer by layer", "query", learned=True)
    d.arrow(encoder.right, decoder.left, colour="key", width=2.6)
    d.text(259, 108, "keys,", 12.5, muted=True)
    d.text(259, 146, "values", 12.5, muted=True)
    for i, (word, x, width) in enumerate(
        zip(("start", "write", "no times", *said[:2]), (292, 332, 374, 437, 474), (38, 40, 60, 34, 34), strict=True)
    ):
        colour = "warn" if i < 3 else "query"
        token = d.box(x, 198, width, 32, word, colour=colour, size=13)
        d.arrow(token.top, (token.top[0], 160), colour=colour)
        if i > 1:
            next_one = d.box(token.top[0] - 17, 38, 34, 32, said[i - 2], colour="out", dashed=i == 4, size=13)
            d.arrow((next_one.bottom[0], 96), (next_one.bottom[0], 72), colour="out")
    d.curve("M 292 240 v 6 h 142 v -6", "warn")
    d.text(363, 262, "what is asked", 13)
    d.text(472, 246, "so far", 13, muted=True)
    d.text(508, 20, "the next token, from (T, V) logits", 13, anchor="end", muted=True)
    return d


@drawn
def decisions() -> Diagram:
    d = Diagram(
        520, 352,
        "A Decision Transformer. Each step is three tokens: the return to go, the state, the action. They go through "
        "causal layers; at the state's token the action is predicted. The action goes to the world, which answers with "
        "a reward and the next state. The reward is subtracted from the return asked for, and the next step begins.",
    )  # fmt: skip
    wide, left = 50, 12
    names = ("R_1_", "s_1_", "a_1_", "R_2_", "s_2_", "a_2_", "R_3_", "s_3_")
    colours = {"R": "warn", "s": "key", "a": "out"}
    layers = d.box(left, 112, 8 * wide - 8, 54, "causal layers, as in GPT", "(3T, d)", colour="query", learned=True)
    for i, name in enumerate(names):
        x = left + wide * i
        box = d.box(x, 208, wide - 8, 34, name, colour=colours[name[0]])
        d.arrow(box.top, (box.top[0], layers.y + layers.height + 2), colour=colours[name[0]])
        if name[0] == "s":
            said = d.box(x, 42, wide - 8, 34, f"a_{name[2]}_", colour="out", dashed=i == 7)
            d.arrow((said.bottom[0], layers.y), (said.bottom[0], 78), colour="out")
    d.text(left, 22, "the action of each step, predicted at its state", 13, anchor="start", muted=True)
    for i, step in enumerate(("step 1", "step 2", "step 3")):
        d.text(left + wide * (3 * i + (1.42 if i < 2 else 0.92)), 258, step, 13, muted=True)
    d.box(436, 180, 76, 54, "world", "(s, a) to r, s", size=15)
    d.arrow((left + 8 * wide - 8, 59), (474, 59), (474, 178), text="does a_3_", colour="out", at=0.35, side=-1)
    after = d.box(292, 290, 140, 48, "R_4_ = R_3_ - r_3_", "asked for next", colour="warn", size=14)
    d.arrow((474, 236), (474, 314), (434, 314), colour="warn")
    d.text(478, 276, "r_3_", 13, anchor="start")
    d.arrow((420, after.y), (420, 228), colour="warn", dashed=True)
    d.text(left, 306, "what was paid is subtracted,", 13, anchor="start", muted=True)
    d.text(left, 324, "and step 4 begins with R_4_ and s_4_", 13, anchor="start", muted=True)
    return d


@drawn
def stitching() -> Diagram:
    d = Diagram(
        520, 246,
        "Two kinds of walks that cross. From the start some go by way of the hall and take the long way, 7 steps; "
        "others by way of the meadow, 4 steps. Some begin in the hall and go straight to the goal. The best way from "
        "the start, 2 steps, joins pieces of two walks.",
    )  # fmt: skip
    d.box(10, 104, 74, 42, "start", colour="key")
    d.box(202, 104, 74, 42, "hall", colour="key")
    d.box(434, 104, 76, 42, "goal", colour="out")
    d.arrow((84, 119), (200, 119), width=2.6)
    d.arrow((84, 131), (200, 131), colour="query", dashed=True, width=2)
    d.arrow((278, 131), (432, 131), colour="query", dashed=True, width=2)
    d.arrow((278, 119), (432, 119), colour="value", width=2.6)
    d.text(355, 102, "others, who begin here", 13)
    xs = [262 + 34 * i for i in range(5)]
    for x in xs:
        d.circle(x, 44, 8, colour="plain")
    d.arrow((239, 104), (239, 44), (252, 44), width=2.6)
    for a, b in zip(xs, xs[1:], strict=False):
        d.arrow((a + 9, 44), (b - 10, 44), width=2.6)
    d.arrow((407, 44), (472, 44), (472, 102), width=2.6)
    d.text(330, 18, "half of the walks from the start: 7 steps", 13)
    for x in (150, 239, 328):
        d.circle(x, 206, 8, colour="plain")
    d.arrow((47, 146), (47, 206), (140, 206), colour="warn", width=2.6)
    d.arrow((159, 206), (229, 206), colour="warn", width=2.6)
    d.arrow((248, 206), (318, 206), colour="warn", width=2.6)
    d.arrow((337, 206), (472, 206), (472, 148), colour="warn", width=2.6)
    d.text(242, 230, "the other half, by way of the meadow: 4 steps", 13)
    d.text(242, 164, "dashed: 2 steps, which nobody has gone whole", 13, bold=True)
    return d


def main() -> None:
    """Write every diagram."""
    FOLDER.mkdir(exist_ok=True)
    for name, function in DRAWN.items():
        (FOLDER / f"{name}.svg").write_text(function().svg(), encoding="utf-8")
    print(f"{len(DRAWN)} diagrams are drawn in {FOLDER}")


if __name__ == "__main__":
    main()
