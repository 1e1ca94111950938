"""Wrong solutions of part 3: what is charged without a mask, and what with one."""

from tests.assignments.variants import Variant

MASKED = """
    if mask is None:
        weights = softmax(scores)
    else:
        weights = softmax(np.where(mask, scores, np.finfo(float).min)) * mask
    return weights @ v, weights
"""
SCORES = "    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])\n"
HEAD = "def attention(q, k, v, mask=None):\n"


def scores(line: str) -> dict[str, str]:
    """The reference with another way to the scores."""
    return {"attention": HEAD + f"    {line}" + MASKED}


def masking(*lines: str) -> dict[str, str]:
    """The reference with another way from the scores to the weights."""
    body = "".join(f"    {line}\n" for line in lines)
    return {"attention": HEAD + SCORES + body + "    return weights @ v, weights"}


EMPTY = "weights = weights if mask is None else weights * mask"
RIGHT = ["weights = softmax(scores if mask is None else np.where(mask, scores, np.finfo(float).min))", EMPTY]
INVERTED = "every property but that the mask broadcasts needs the right polarity"

VARIANTS = [
    Variant(
        "no scale",
        scores("scores = q @ np.swapaxes(k, -1, -2)"),
        {"test-attention": 1},
        "a softmax of q k^T with another factor: only the scale is wrong, with a mask nothing more",
    ),
    Variant(
        "scaled by d_k",
        scores("scores = q @ np.swapaxes(k, -1, -2) / q.shape[-1]"),
        {"test-attention": 1},
        "only the scale is wrong",
    ),
    Variant(
        "scale from d_v",
        scores("scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(v.shape[-1])"),
        {"test-attention": 1},
        "only the scale is wrong; d_v differs from d_k in the test",
    ),
    Variant(
        "scale from the number of keys",
        scores("scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(k.shape[-2])"),
        {"test-attention": 1},
        "only the scale is wrong; S differs from d_k in the test",
    ),
    Variant(
        "multiplied by the scale",
        scores("scores = q @ np.swapaxes(k, -1, -2) * np.sqrt(q.shape[-1])"),
        {"test-attention": 1},
        "only the scale is wrong",
    ),
    Variant(
        "sign of the scores flipped",
        scores("scores = -q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])"),
        {"test-attention": 1},
        "keys unlike the query get more weight; the scale is right but for its sign",
    ),
    Variant(
        "softmax over the queries",
        {
            "attention": HEAD
            + SCORES
            + """
    if mask is not None:
        scores = np.where(mask, scores, np.finfo(float).min)
    weights = np.swapaxes(softmax(np.swapaxes(scores, -1, -2)), -1, -2)
    if mask is not None:
        weights = weights * mask
    return weights @ v, weights
"""
        },
        {"test-attention": 2, "test-masked-attention": 2},
        "weights and scale are wrong; with a mask the keys of a row do not share its weight, nor beside an empty row, "
        "nor where a forbidden key fits well",
    ),
    Variant(
        "batch ignored: k.T",
        scores("scores = q @ k.T / np.sqrt(q.shape[-1])"),
        {"test-attention": 0.5, "test-masked-attention": 0.5},
        "matrices alone are right; leading axes are tested once without a mask, and once with one",
    ),
    Variant(
        "only the first sequence of the batch",
        {
            "attention": """
            def attention(q, k, v, mask=None):
                while q.ndim > 2:
                    q, k, v = q[0], k[0], v[0]
                    mask = mask[0] if mask is not None and mask.ndim > 2 else mask
                scores = q @ k.T / np.sqrt(q.shape[-1])
                weights = softmax(scores if mask is None else np.where(mask, scores, -1e300))
                weights = weights if mask is None else weights * mask
                return weights @ v, weights
            """
        },
        {"test-attention": 0.5, "test-masked-attention": 0.5},
        "as above: right for matrices alone",
    ),
    Variant(
        "scaled by the square root of 4",
        scores("scores = q @ np.swapaxes(k, -1, -2) / 2"),
        {"test-attention": 1},
        "only the scale is wrong; it is right for the example",
    ),
    Variant(
        "scale from axis 1",
        scores("scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[1])"),
        {"test-attention": 0.5},
        "right for matrices; in batches the scale is wrong, which is charged without a mask only",
    ),
    Variant(
        "sign of the scores flipped, called with other names",
        {
            "attention": """
            def attention(Q, K, V, mask=None):
                scores = -Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
                weights = softmax(scores if mask is None else np.where(mask, scores, np.finfo(float).min))
                weights = weights if mask is None else weights * mask
                return weights @ V, weights
            """,
            "multi-head-attention": """
            def multi_head_attention(q, k, v, w_q, w_k, w_v, w_out, n_heads, mask=None):
                Q, K, V = (split_heads(x @ w.T, n_heads) for x, w in ((q, w_q), (k, w_k), (v, w_v)))
                context, weights = attention(Q=Q, K=K, V=V, mask=mask)
                return merge_heads(context) @ w_out.T, weights
            """,
        },
        {"test-attention": 1},
        "multi-head attention is tried with a right one that takes these names",
    ),
    Variant(
        "attention for at most four axes",
        scores("scores = q @ k.transpose({2: (1, 0), 3: (0, 2, 1), 4: (0, 1, 3, 2)}[k.ndim]) / np.sqrt(q.shape[-1])"),
        {"test-attention": 0.5},
        "any number of leading axes is asked for; with a mask there are two",
    ),
    Variant(
        "returns the context alone",
        {"attention": HEAD + SCORES + MASKED.replace("return weights @ v, weights", "return weights @ v")},
        {"test-attention": 5, "test-masked-attention": 5},
        "no test can tell context from weights; multi-head attention is tried with a right one",
    ),
    Variant(
        "returns weights and context exchanged",
        {"attention": HEAD + SCORES + MASKED.replace("weights @ v, weights", "weights, weights @ v")},
        {"test-attention": 0.5},
        "the order is tested once; elsewhere the shapes say which is which",
    ),
    Variant(
        "weights transposed in the product",
        {
            "attention": HEAD
            + SCORES
            + MASKED.replace(
                "weights @ v,",
                "np.einsum('...ts,...td->...sd', weights, np.resize(v, v.shape[:-2] + (q.shape[-2], v.shape[-1]))),",
            )
        },
        {"test-attention": 2, "test-masked-attention": 1.5},
        "the weights are right; every test of the context fails: product, leading axes, large scores, empty row, "
        "causality",
    ),
    Variant(
        "mask not used",
        masking("weights = softmax(scores)"),
        {"test-masked-attention": 5},
        "every test asks for some effect of the mask",
    ),
    Variant(
        "mask inverted",
        masking(
            "mask = np.zeros(1, bool) if mask is None else mask",
            "weights = softmax(np.where(mask, np.finfo(float).min, scores)) * ~mask",
        ),
        {"test-masked-attention": 4.5},
        INVERTED,
    ),
    Variant(
        "scores multiplied by the mask",
        masking("weights = softmax(scores if mask is None else scores * mask)"),
        {"test-masked-attention": 4.5},
        "a score of 0 is an ordinary score; the mask broadcasts",
    ),
    Variant(
        "mask added as 0 and 1",
        masking("weights = softmax(scores if mask is None else scores + mask)"),
        {"test-masked-attention": 4.5},
        "allowed keys are preferred, forbidden ones still attended to",
    ),
    Variant(
        "mask after the softmax",
        masking("weights = softmax(scores) if mask is None else softmax(scores) * mask"),
        {"test-masked-attention": 2.5},
        "forbidden keys get nothing, an empty row gives zeros; the rest does not add up, and the future shows "
        "in the denominator",
    ),
    Variant(
        "mask after the softmax, renormalised, empty row NaN",
        masking(
            "weights = softmax(scores) if mask is None else softmax(scores) * mask",
            "weights = weights / weights.sum(axis=-1, keepdims=True)",
        ),
        {"test-masked-attention": 1},
        "0 / 0 in the empty row alone",
    ),
    Variant(
        "empty row NaN",
        masking("weights = softmax(scores if mask is None else np.where(mask, scores, -np.inf))"),
        {"test-masked-attention": 1},
        "-inf minus -inf in the empty row alone",
    ),
    Variant(
        "empty row uniform",
        masking("weights = softmax(scores if mask is None else np.where(mask, scores, -1e9))"),
        {"test-masked-attention": 1},
        "equal scores share the weight, however negative",
    ),
    Variant(
        "one NaN wipes everything",
        masking(
            "weights = softmax(scores if mask is None else np.where(mask, scores, -np.inf))",
            "weights = np.zeros_like(weights) if np.isnan(weights).any() else weights",
        ),
        {"test-masked-attention": 2},
        "the empty row is cured by emptying all rows: nothing but zeros, the other rows are wrong, and so are "
        "the other sequences of a batch",
    ),
    Variant(
        "forbidden score too mild",
        masking("weights = softmax(scores if mask is None else np.where(mask, scores, -5.0))"),
        {"test-masked-attention": 4.5},
        "exp(-5) is no zero: forbidden keys keep some weight",
    ),
    Variant(
        "mask of the context only",
        masking(
            "weights = softmax(scores)",
            "kept = weights if mask is None else softmax(np.where(mask, scores, np.finfo(float).min)) * mask",
            "return kept @ v, weights",
        ),
        {"test-masked-attention": 4.5},
        "the context obeys the mask, the weights returned do not: all tests of the weights fail",
    ),
    Variant(
        "causal only: mask cut to a square",
        masking(
            "T, S = scores.shape[-2:]",
            "mask = None if mask is None else np.tril(np.ones((T, S), bool))",
            "weights = softmax(scores if mask is None else np.where(mask, scores, np.finfo(float).min))",
        ),
        {"test-masked-attention": 4},
        "it does what a causal mask asks, the same whatever the mask's shape, and ignores every other mask",
    ),
    Variant(
        "attention changes its arguments",
        {"attention": HEAD + "    q /= np.sqrt(q.shape[-1])\n    scores = q @ np.swapaxes(k, -1, -2)" + MASKED},
        {"test-attention": 0.5},
        "the rule is tested once",
    ),
    Variant(
        "attention in float32",
        {
            "attention": HEAD
            + SCORES
            + MASKED.replace("weights @ v, weights", "(weights @ v).astype('f4'), weights.astype('f4')")
        },
        {"test-attention": 0.5},
        "the dtype is tested once",
    ),
    Variant(
        "softmax written into attention without the maximum",
        {
            "attention": HEAD
            + SCORES
            + """
    e = np.exp(scores) if mask is None else np.exp(scores) * mask
    total = e.sum(axis=-1, keepdims=True)
    weights = e / np.where(total == 0, 1, total)
    return weights @ v, weights
"""
        },
        {"test-attention": 0.5},
        "right for moderate scores, infinite for large ones",
    ),
    Variant(
        "forbidden score of -20",
        masking("weights = softmax(scores if mask is None else np.where(mask, scores, -20.0))", EMPTY),
        {"test-masked-attention": 0.5},
        "no number that small will do where all allowed keys fit badly",
    ),
    Variant(
        "forbidden score of -100",
        masking("weights = softmax(scores if mask is None else np.where(mask, scores, -100.0))", EMPTY),
        {"test-masked-attention": 0.5},
        "as above",
    ),
    Variant(
        "mask not broadcast",
        masking(
            "if mask is not None: scores[~mask] = np.finfo(float).min",
            "weights = softmax(scores)",
            EMPTY,
        ),
        {"test-masked-attention": 0.5},
        "right for a mask of the shape of the scores",
    ),
    Variant(
        "the mask is changed",
        masking(
            "if mask is not None: mask[..., 0] = True",
            "weights = softmax(scores if mask is None else np.where(mask, scores, np.finfo(float).min))",
            EMPTY,
        ),
        {"test-masked-attention": 1.5},
        "the first key is always allowed, so that no row is empty, and the argument is another one where a row was",
    ),
    Variant(
        "the first allowed keys, as many as there are",
        {
            "attention": HEAD
            + SCORES
            + """
    allowed = np.broadcast_to(True if mask is None else mask, scores.shape)
    weights = np.zeros(scores.shape)
    for row in np.ndindex(scores.shape[:-1]):
        n = allowed[row].sum()
        if n:
            weights[row][:n] = softmax(scores[row][:n])
    return weights @ v, weights
"""
        },
        {"test-masked-attention": 3},
        "right where the allowed keys stand in front: empty rows, and a causal mask; the same in batches",
    ),
    Variant(
        "rows of equal scores taken for empty ones",
        masking(
            "scores = scores if mask is None else np.where(mask, scores, np.finfo(float).min)",
            "weights = softmax(scores)",
            "weights = weights if mask is None else np.where(np.ptp(scores, -1, keepdims=True) == 0, 0.0, weights)",
        ),
        {"test-masked-attention": 0.5},
        "a row of equal scores that may see every key is no empty row",
    ),
    Variant(
        "the mask of the first sequence for all",
        masking("mask = mask[0] if mask is not None and mask.ndim == 4 else mask", *RIGHT),
        {"test-masked-attention": 0.5},
        "right for one mask for all; each sequence has its own in one test",
    ),
    Variant(
        "the mask of the first head for all",
        masking("mask = mask[:, :1] if mask is not None and mask.ndim == 4 else mask", *RIGHT),
        {"test-masked-attention": 0.5},
        "right for a mask without heads",
    ),
    Variant(
        "empty rows emptied in matrices alone",
        masking(
            "weights = softmax(scores if mask is None else np.where(mask, scores, np.finfo(float).min))",
            "weights = weights * mask if mask is not None and mask.ndim < 4 else weights",
        ),
        {"test-masked-attention": 0.5},
        "a batch with a sentence of padding only is right in one test",
    ),
    Variant(
        "a mask without True ignored",
        masking("mask = mask if np.any(mask) else None", *RIGHT),
        {"test-masked-attention": 0.5},
        "all rows are empty then",
    ),
    Variant(
        "empty rows allowed everything, in the mask given",
        masking(
            "empty = False if mask is None else ~mask.any(axis=-1, keepdims=True)",
            "if mask is not None: mask |= empty",
            "weights = softmax(scores if mask is None else np.where(mask, scores, -np.inf))",
            "weights = np.where(empty, 0.0, weights)",
        ),
        {"test-masked-attention": 0.5},
        "the weights are right; the argument is another one where a row is empty",
    ),
]
