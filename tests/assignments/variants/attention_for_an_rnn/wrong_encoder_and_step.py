"""Wrong solutions of parts 3 and 4, in PyTorch."""

from tests.assignments.variants import Variant
from tests.assignments.variants.attention_for_an_rnn.changed import KEPT, body

STEP = "state = torch.where(mask[:, t, None], cell(x[:, t], state), state)"


def reading(*lines: str, last="[read(forward, places), read(backward, places[::-1])]") -> dict[str, str]:
    """The reference of part 3 with another step."""
    loop = [f"        {line}" for line in lines]
    return body(
        "annotations",
        "def read(cell, places):",
        "    state, states = zero, {}",
        "    for t in places:",
        *loop,
        "    return torch.stack([states[t] for t in sorted(states)], dim=1)",
        "places = list(range(x.shape[1]))",
        f"return torch.cat({last}, dim=2)",
    )


def _joined(how: str) -> dict[str, str]:
    """The reference of part 3, whose two directions are put together in another way."""
    cells = reading(STEP, "states[t] = state", last="")
    last = how.format("read(forward, places)", "read(backward, places[::-1])")
    return {name: code.replace("return torch.cat(, dim=2)", f"return {last}") for name, code in cells.items()}


ENCODERS = [
    Variant(
        "fillers are read",
        reading("state = cell(x[:, t], state)", "states[t] = state"),
        {"test-annotations": 1},
        "not the same as alone, and no state is kept",
    ),
    Variant(
        "the state is zero at a filler",
        reading("state = torch.where(mask[:, t, None], cell(x[:, t], state), 0.0)", "states[t] = state"),
        {"test-annotations": 1},
        "not the same as alone, and no state is kept",
    ),
    Variant(
        "the backward states not turned round",
        body(
            "annotations",
            "def read(cell, places):",
            "    state, states = zero, []",
            "    for t in places:",
            f"        {STEP}",
            "        states.append(state)",
            "    return torch.stack(states, dim=1)",
            "places = list(range(x.shape[1]))",
            "return torch.cat([read(forward, places), read(backward, places[::-1])], dim=2)",
        ),
        {"test-annotations": 1},
        "right with the second half turned",
    ),
    Variant(
        "the state before each token",
        reading("states[t] = state", STEP),
        {"test-annotations": 1},
        "right with every state one token later",
    ),
    Variant(
        "both read forwards",
        reading(STEP, "states[t] = state", last="[read(forward, places), read(backward, places)]"),
        {"test-annotations": 1.5},
        "the way back, and what it keeps at fillers",
    ),
    Variant(
        "backward first",
        reading(STEP, "states[t] = state", last="[read(backward, places[::-1]), read(forward, places)]"),
        {"test-annotations": 0.5},
        "the order of the halves is tested once",
    ),
    Variant(
        "zeros in the place of the first state",
        reading(f"state = state if states else torch.zeros_like(zero)\n            {STEP}", "states[t] = state"),
        {"test-annotations": 0.5},
        "what both directions begin with",
    ),
    Variant(
        "one direction's cell for both",
        reading(STEP, "states[t] = state", last="[read(forward, places), read(forward, places[::-1])]"),
        {"test-annotations": 1},
        "the states of the way back",
    ),
    Variant(
        "the state detached at each step",
        reading(STEP, "states[t] = state", "state = state.detach()"),
        {"test-annotations": 0.5},
        "the values are right, and no gradient goes from one token to another",
    ),
    Variant(
        "fillers read as if they stood at the end",
        reading(
            "real = (t < mask.sum(1))[:, None]",
            "state = torch.where(real, cell(x[:, t], state), state)",
            "states[t] = state",
        ),
        {"test-annotations": 1},
        "fillers stand in front and inside, too",
    ),
    Variant(
        "tokens and fillers swapped",
        reading(STEP.replace("mask", "~mask"), "states[t] = state"),
        {"test-annotations": 1},
        "right with the mask the other way round",
    ),
    Variant(
        "the two cells swapped",
        reading(STEP, "states[t] = state", last="[read(backward, places), read(forward, places[::-1])]"),
        {"test-annotations": 1},
        "right with each cell in the place of the other",
    ),
    Variant(
        "the first state given on the way there alone",
        reading("state = state if states or cell is forward else 0 * zero", STEP, "states[t] = state"),
        {"test-annotations": 0.5},
        "what the way back begins with",
    ),
    Variant(
        "states as long as a token",
        body(
            "annotations",
            "B, S, d = x.shape",
            "found, halves = x.new_zeros(B, S, 2 * d), [(forward, range(S), 0), (backward, range(S)[::-1], d)]",
            "for cell, places, first in halves:",
            "    state = zero",
            "    for t in places:",
            f"        {STEP}",
            "        found[:, t, first : first + d] = state",
            "return found",
        ),
        {"test-annotations": 0.5},
        "one test has states that are shorter",
    ),
    Variant(
        "the tokens first, then the batch",
        _joined("torch.cat([{}, {}], dim=2).transpose(0, 1)"),
        {"test-annotations": 1},
        "right with the first two axes swapped",
    ),
    Variant("a pair of directions", _joined("{}, {}"), {"test-annotations": 1}, "right when joined"),
    Variant(
        "joined along the tokens",
        _joined("torch.cat([{}, {}], dim=1)"),
        {"test-annotations": 1},
        "right when joined along the last axis",
    ),
    Variant(
        "the halves interleaved",
        _joined("torch.stack([{}, {}], dim=3).flatten(2)"),
        {"test-annotations": 1},
        "right in another order of the last axis",
    ),
    Variant("the two directions added", _joined("{} + {}"), {"test-annotations": 1}, "right when taken apart"),
    Variant(
        "the mean of the two directions",
        _joined("({} + {}) / 2"),
        {"test-annotations": 1},
        "right when taken apart",
    ),
    Variant(
        "the two directions added, zeros in the place of the first state",
        {
            name: code.replace(STEP, f"state = state if states else torch.zeros_like(zero)\n            {STEP}")
            for name, code in _joined("{} + {}").items()
        },
        {"test-annotations": 2},
        "right when taken apart, but for what both directions begin with, and keep at fillers in front",
    ),
    Variant(
        "the way back begins with the last state",
        body(
            "annotations",
            "state, halves = zero, []",
            "places = list(range(x.shape[1]))",
            "for cell, order in [(forward, places), (backward, places[::-1])]:",
            "    states = {}",
            "    for t in order:",
            f"        {STEP}",
            "        states[t] = state",
            "    halves.append(torch.stack([states[t] for t in places], dim=1))",
            "return torch.cat(halves, dim=2)",
        ),
        {"test-annotations": 1},
        "right if each direction begins with the first state",
    ),
    Variant(
        "the first state overwritten on the way there",
        reading(
            "state[mask[:, t]] = cell(x[:, t], state)[mask[:, t]]",
            "states[t] = state.clone()",
        ),
        {"test-annotations": 1},
        "right if each direction begins with a first state of its own",
    ),
    *(
        Variant(
            f"zeros in the place of the first state at {what}",
            _joined(f"torch.cat([{there}, {{}}], dim=2){every}"),
            {"test-annotations": 0.5},
            "what a filler keeps is the first state there",
        )
        for what, there, every in [
            ("fillers in front", "{} * (mask.cumsum(1) > 0)[..., None]", ""),
            ("a sentence of fillers", "{}", " * mask.any(1)[:, None, None]"),
        ]
    ),
    Variant(
        "the columns cut off behind the longest sentence, in the encoder",
        {
            name: code.replace(
                "def read", "n = mask.sum(1).max()\n    x, mask = x[:, :n], mask[:, :n]\n    def read", 1
            )
            for name, code in reading(STEP, "states[t] = state").items()
        },
        {"test-annotations": 0.5},
        "right where a sentence fills the batch",
    ),
    Variant(
        "the forward states alone",
        reading(STEP, "states[t] = state", last="[read(forward, places)]"),
        {"test-annotations": 3.5},
        "the shape, which all but one test need",
    ),
    Variant(
        "the tokens of fillers overwritten",
        {
            name: code.replace("def read", "x.data[~mask] = 0\n    def read", 1)
            for name, code in reading(STEP, "states[t] = state").items()
        },
        {"test-annotations": 0.5},
        KEPT,
    ),
]

STEPS = [
    Variant(
        "the new state asks",
        body(
            "decoder-step",
            "context, _ = attend(score(s, h), h, mask)",
            "new = cell(torch.cat([y, context], 1), s)",
            "context, weights = attend(score(new, h), h, mask)",
            "return new, context, weights",
        ),
        {"test-decoder-step": 1},
        "context and weights; the cell has read the right ones",
    ),
    Variant(
        "context before the token",
        body(
            "decoder-step",
            "context, weights = attend(score(s, h), h, mask)",
            "return cell(torch.cat([context, y], 1), s), context, weights",
        ),
        {"test-decoder-step": 1},
        "what the cell reads",
    ),
    Variant(
        "returns the old state",
        body(
            "decoder-step",
            "context, weights = attend(score(s, h), h, mask)",
            "cell(torch.cat([y, context], 1), s)",
            "return s, context, weights",
        ),
        {"test-decoder-step": 1},
        "the new state; the gradients are those of what is returned",
    ),
    Variant(
        "mask not passed on",
        body(
            "decoder-step",
            "context, weights = attend(score(s, h), h, torch.ones_like(mask))",
            "return cell(torch.cat([y, context], 1), s), context, weights",
        ),
        {"test-decoder-step": 0.5},
        "one test has fillers",
    ),
    Variant(
        "returns weights before context",
        body(
            "decoder-step",
            "context, weights = attend(score(s, h), h, mask)",
            "return cell(torch.cat([y, context], 1), s), weights, context",
        ),
        {"test-decoder-step": 0.5},
        "right in another order",
    ),
    Variant(
        "the cell is called twice",
        body(
            "decoder-step",
            "context, weights = attend(score(s, h), h, mask)",
            "read = torch.cat([y, context], 1)",
            "return cell(read, cell(read, s)), context, weights",
        ),
        {"test-decoder-step": 1},
        "the cell's calls; what the second returned is returned",
    ),
    Variant(
        "the mask inverted on the way",
        body(
            "decoder-step",
            "context, weights = attend(score(s, h), h, ~mask)",
            "return cell(torch.cat([y, context], 1), s), context, weights",
        ),
        {"test-decoder-step": 1},
        "right with the mask the other way round",
    ),
    Variant(
        "a dot product, whatever score is given",
        body(
            "decoder-step",
            "context, weights = attend((h @ s[..., None])[..., 0], h, mask)",
            "return cell(torch.cat([y, context], 1), s), context, weights",
        ),
        {"test-decoder-step": 1},
        "context and weights; the cell reads the context that is returned",
    ),
    Variant(
        "a softmax of its own",
        body(
            "decoder-step",
            "weights = torch.softmax(score(s, h).masked_fill(~mask, -torch.inf), 1)",
            "context = (weights[:, None] @ h)[:, 0]",
            "return cell(torch.cat([y, context], 1), s), context, weights",
        ),
        {"test-decoder-step": 0.5},
        "NaN in a sentence without any token",
    ),
    Variant(
        "token and context stacked",
        body(
            "decoder-step",
            "context, weights = attend(score(s, h), h, mask)",
            "return cell(torch.stack([y, context], -1).reshape(len(y), -1), s), context, weights",
        ),
        {"test-decoder-step": 4},
        "an error, unless tokens and annotations have the same length",
    ),
    Variant(
        "one long row of tokens and contexts",
        body(
            "decoder-step",
            "context, weights = attend(score(s, h), h, mask)",
            "return cell(torch.cat([y.view(1, -1), context.view(1, -1)], 1), s), context, weights",
        ),
        {"test-decoder-step": 1},
        "what the cell reads",
    ),
    Variant(
        "the context added to the token",
        body(
            "decoder-step",
            "context, weights = attend(score(s, h), h, mask)",
            "return cell(y + context[:, : y.shape[1]], s), context, weights",
        ),
        {"test-decoder-step": 1},
        "what the cell reads",
    ),
    *(
        Variant(
            f"{what} detached",
            body(
                "decoder-step",
                f"context, weights = attend({scored}, h, mask)",
                f"return cell(torch.cat([{read}], 1), {state}), context, weights",
            ),
            {"test-decoder-step": 0.5},
            "the values are right; the gradients are not theirs",
        )
        for what, scored, read, state in [
            ("context", "score(s, h)", "y, context.detach()", "s"),
            ("the score", "score(s, h).detach()", "y, context", "s"),
            ("the state that asks", "score(s.detach(), h)", "y, context", "s"),
            ("the state that the cell gets", "score(s, h)", "y, context", "s.detach()"),
            ("the token", "score(s, h)", "y.detach(), context", "s"),
        ]
    ),
    Variant(
        "the state overwritten with the next",
        body(
            "decoder-step",
            "context, weights = attend(score(s, h), h, mask)",
            "new = cell(torch.cat([y, context], 1), s)",
            "s.data.copy_(new)",
            "return new, context, weights",
        ),
        {"test-decoder-step": 0.5},
        KEPT,
    ),
]

VARIANTS = ENCODERS + STEPS
