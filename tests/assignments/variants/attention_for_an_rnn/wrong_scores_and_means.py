"""Wrong solutions of parts 1 and 2, in PyTorch."""

from tests.assignments.variants import Variant
from tests.assignments.variants.attention_for_an_rnn.changed import KEPT, body

MIN = "torch.finfo(scores.dtype).min"
MEAN = "return (weights[:, None] @ h)[:, 0], weights"

SCORES = [
    Variant(
        "no tanh",
        body("additive-scores", "return ((s @ W.T)[:, None] + h @ U.T) @ v"),
        {"test-additive-scores": 2},
        "the values; shapes and gradients are right",
    ),
    Variant(
        "the tanh of each part",
        body("additive-scores", "return (torch.tanh(s @ W.T)[:, None] + torch.tanh(h @ U.T)) @ v"),
        {"test-additive-scores": 2},
        "the values",
    ),
    Variant(
        "the units added up, without v",
        body("additive-scores", "return torch.tanh((s @ W.T)[:, None] + h @ U.T).sum(-1)"),
        {"test-additive-scores": 2},
        "the values; the gradients are those of what is computed",
    ),
    Variant(
        "the state forgotten",
        body("additive-scores", "return torch.tanh(h @ U.T) @ v"),
        {"test-additive-scores": 2},
        "the values; the gradients are those of what is computed",
    ),
    Variant(
        "a softmax at the end",
        body("additive-scores", "return torch.softmax(torch.tanh((s @ W.T)[:, None] + h @ U.T) @ v, 1)"),
        {"test-additive-scores": 2},
        "the values are weights",
    ),
    Variant(
        "the difference in the place of the sum",
        body("additive-scores", "return torch.tanh((s @ W.T)[:, None] - h @ U.T) @ v"),
        {"test-additive-scores": 2},
        "the values",
    ),
    Variant(
        "axes of length one squeezed away",
        body("additive-scores", "return (torch.tanh((s @ W.T)[:, None] + h @ U.T) @ v).squeeze()"),
        {"test-additive-scores": 1},
        "right unless there is one sentence or one token",
    ),
    Variant(
        "through NumPy",
        body(
            "additive-scores",
            "s, h, W, U, v = (a.detach().numpy() for a in (s, h, W, U, v))",
            "return torch.tensor(np.tanh((s @ W.T)[:, None] + h @ U.T) @ v)",
        ),
        {"test-additive-scores": 1},
        "the values are right, and nothing could be learned",
    ),
    Variant(
        "scores of shape (B, S, 1)",
        body("additive-scores", "return torch.tanh((s @ W.T)[:, None] + h @ U.T) @ v[:, None]"),
        {"test-additive-scores": 1},
        "right without the last axis",
    ),
    Variant(
        "scores of shape (S, B)",
        body("additive-scores", "return (torch.tanh((s @ W.T)[:, None] + h @ U.T) @ v).T"),
        {"test-additive-scores": 1},
        "right when transposed",
    ),
]

MEANS = [
    Variant(
        "mask not used",
        body("attend", "weights = torch.softmax(scores, 1)", MEAN),
        {"test-attend": 1.5},
        "the softmax runs over fillers, and in an empty sentence they keep their weight",
    ),
    Variant(
        "mask after the softmax",
        body("attend", "weights = torch.softmax(scores, 1) * mask", MEAN),
        {"test-attend": 1},
        "the softmax runs over fillers; empty sentences are right",
    ),
    Variant(
        "mask inverted",
        body("attend", f"weights = torch.softmax(torch.where(mask, {MIN}, scores), 1) * ~mask", MEAN),
        {"test-attend": 1},
        "right with the mask the other way round",
    ),
    Variant(
        "a filler scores 0",
        body("attend", "weights = torch.softmax(scores * mask, 1)", MEAN),
        {"test-attend": 2},
        "0 is an ordinary score",
    ),
    Variant(
        "an empty sentence is NaN",
        body("attend", "weights = torch.softmax(scores.masked_fill(~mask, -torch.inf), 1)", MEAN),
        {"test-attend": 0.5},
        "the result and its gradient, beside an empty sentence",
    ),
    Variant(
        "an empty sentence attends to its fillers",
        body("attend", f"weights = torch.softmax(torch.where(mask, scores, {MIN}), 1)", MEAN),
        {"test-attend": 0.5},
        "equal scores share the weight, however negative",
    ),
    Variant(
        "a filler scores -20",
        body("attend", "weights = torch.softmax(torch.where(mask, scores, -20.0), 1) * mask", MEAN),
        {"test-attend": 0.5},
        "not little enough where all tokens fit badly",
    ),
    Variant(
        "softmax over the batch",
        body("attend", f"weights = torch.softmax(torch.where(mask, scores, {MIN}), 0) * mask", MEAN),
        {"test-attend": 2.5},
        "the weights of a sentence do not add up, with and without fillers",
    ),
    Variant(
        "the mean without weights",
        body(
            "attend",
            f"weights = torch.softmax(torch.where(mask, scores, {MIN}), 1) * mask",
            "real = mask[..., None].float()",
            "return (h * real).sum(1) / real.sum(1).clamp(min=1), weights",
        ),
        {"test-attend": 1.5},
        "the context, and no gradient reaches the scores",
    ),
    Variant(
        "the sum times the largest weight",
        body(
            "attend",
            f"weights = torch.softmax(torch.where(mask, scores, {MIN}), 1) * mask",
            "return h.sum(1) * weights.amax(1, keepdim=True), weights",
        ),
        {"test-attend": 1.5},
        "the context",
    ),
    Variant(
        "weights first",
        body(
            "attend",
            f"weights = torch.softmax(torch.where(mask, scores, {MIN}), 1) * mask",
            "return weights, (weights[:, None] @ h)[:, 0]",
        ),
        {"test-attend": 0.5},
        "the order is tested once; the decoder's step is tried with a right one",
    ),
    Variant(
        "fillers taken to stand at the end",
        body(
            "attend",
            "mask = torch.arange(scores.shape[1]) < mask.sum(1, keepdim=True)",
            f"weights = torch.softmax(torch.where(mask, scores, {MIN}), 1) * mask",
            MEAN,
        ),
        {"test-attend": 1.5},
        "fillers stand in front and inside, too, whatever their scores",
    ),
    Variant(
        "weights detached",
        body(
            "attend",
            f"weights = (torch.softmax(torch.where(mask, scores, {MIN}), 1) * mask).detach()",
            MEAN,
        ),
        {"test-attend": 0.5},
        "no gradient reaches the scores",
    ),
    Variant(
        "exp without the largest score taken away",
        body(
            "attend",
            "e = torch.exp(scores) * mask",
            "weights = e / e.sum(1, keepdim=True).clamp(min=1e-30)",
            MEAN,
        ),
        {"test-attend": 0.5},
        "large scores overflow",
    ),
    *(
        Variant(
            f"a filler scores {low:g}",
            body("attend", f"weights = torch.softmax(torch.where(mask, scores, {low}), 1) * mask", MEAN),
            {"test-attend": 0.5},
            "not little enough where all tokens fit very badly",
        )
        for low in (-400.0, -1000.0)
    ),
    Variant(
        "the context ignores the mask",
        body(
            "attend",
            f"weights = torch.softmax(torch.where(mask, scores, {MIN}), 1) * mask",
            "spread = torch.softmax(scores, 1) * mask.any(1, keepdim=True)",
            "return (spread[:, None] @ h)[:, 0], weights",
        ),
        {"test-attend": 1},
        "the context with fillers; the weights that are returned are right",
    ),
    Variant(
        "context of shape (B, 1, d)",
        body(
            "attend",
            f"weights = torch.softmax(torch.where(mask, scores, {MIN}), 1) * mask",
            "return weights[:, None] @ h, weights",
        ),
        {"test-attend": 0.5},
        "right without the axis of length one",
    ),
    Variant(
        "context of one sentence squeezed",
        body(
            "attend",
            f"weights = torch.softmax(torch.where(mask, scores, {MIN}), 1) * mask",
            "return (weights[:, None] @ h).squeeze(), weights",
        ),
        {"test-attend": 0.5},
        "right unless there is one sentence",
    ),
    *(
        Variant(
            f"the columns cut off behind the longest sentence{more}",
            body(
                "attend",
                "longest = int(mask.sum(1).max())",
                "S, scores, h, mask = len(mask[0]), scores[:, :longest], h[:, :longest], mask[:, :longest]",
                f"weights = torch.softmax(torch.where(mask, scores, {MIN}), 1) * mask",
                f"return (weights[:, None] @ h)[:, 0], {returned}",
            ),
            {"test-attend": 1},
            "right where a sentence fills the batch",
        )
        for more, returned in [
            ("", "weights"),
            (", and filled up again", "torch.nn.functional.pad(weights, (0, S - longest))"),
        ]
    ),
    Variant(
        "weights of shape (B, S, 1)",
        body(
            "attend",
            f"weights = (torch.softmax(torch.where(mask, scores, {MIN}), 1) * mask)[..., None]",
            "return (weights * h).sum(1), weights",
        ),
        {"test-attend": 0.5},
        "right without the axis of length one",
    ),
    Variant(
        "the mean through NumPy",
        body(
            "attend",
            "e = np.where(mask.numpy(), scores.numpy(), -3e38)",
            "e = np.exp(e - e.max(1, keepdims=True)) * mask.numpy()",
            "weights = e / np.maximum(e.sum(1, keepdims=True), 1e-9)",
            "return torch.tensor((weights[:, None] @ h.numpy())[:, 0]), torch.tensor(weights)",
        ),
        {"test-attend": 0.5},
        "the values are right, and nothing could be learned: charged once",
    ),
    Variant(
        "the scores of fillers overwritten",
        body(
            "attend",
            f"scores.data.masked_fill_(~mask, {MIN})",
            "weights = torch.softmax(scores, 1) * mask",
            MEAN,
        ),
        {"test-attend": 0.5},
        KEPT,
    ),
    Variant(
        "the scores of fillers overwritten, without `data`",
        body("attend", f"scores[~mask] = {MIN}", "weights = torch.softmax(scores, 1) * mask", MEAN),
        {"test-attend": 0.5},
        "what is given must stay as it is, and has no gradient where it does not: charged once",
    ),
    Variant(
        "the annotations of fillers overwritten",
        body(
            "attend",
            "h.data[~mask] = 0",
            f"weights = torch.softmax(torch.where(mask, scores, {MIN}), 1) * mask",
            MEAN,
        ),
        {"test-attend": 0.5},
        KEPT,
    ),
]

VARIANTS = SCORES + MEANS
