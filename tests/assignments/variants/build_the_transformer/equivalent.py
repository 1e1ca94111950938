"""Generated changes of the reference that are right all the same: by cell and change, with the reason."""

LAST = "feed_forward({0}, w['W1'], w['b1'], w['W2'], w['b2'])"
SUBLAYERS = [
    ("encoder-layer", "x =", "x", "attention(x, x, mask)", 1),
    ("encoder-layer", "return", "x", LAST.format("x"), 2),
    ("decoder-layer", "y =", "y", "self_attention(y, y, target_mask)", 1),
    ("decoder-layer", "y =", "y", "cross_attention(y, memory, source_mask)", 2),
    ("decoder-layer", "return", "y", LAST.format("y"), 3),
]
REAL = "return (ids != pad_id)[:, None] & "
RATE = "return d_model ** (-0.5) * "

EQUIVALENT = {
    (
        cell,
        f"{to} add_and_norm({x}, {sublayer}, w['gain{norm}'], w['bias{norm}'])  ->  "
        f"{to} add_and_norm({sublayer}, {x}, w['gain{norm}'], w['bias{norm}'])",
    ): "the two are added"
    for cell, to, x, sublayer, norm in SUBLAYERS
}
EQUIVALENT |= {
    ("masks", f"{REAL}(places[None] <= places[:, None])  ->  {REAL}(places <= places[:, None])"):
        "broadcasting puts the axis in front",
    (
        "learning-rate",
        f"{RATE}min(step ** (-0.5), step * warmup ** (-1.5))  ->  "
        f"{RATE}min(step * warmup ** (-1.5), step ** (-0.5))",
    ): "the smaller of two, in any order",
}  # fmt: skip
