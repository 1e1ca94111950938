"""Wrong solutions of parts 4 and 5."""

from tests.assignments.variants import Variant

NO_W = "w_q, w_k, w_v, w_out, n_heads, mask=None):\n"


def multi_head(body: str) -> dict[str, str]:
    """A multi-head attention with this body."""
    head = "def multi_head_attention(q, k, v, " + NO_W
    return {"multi-head-attention": head + "".join(f"    {line}\n" for line in body.strip().splitlines())}


VARIANTS = [
    Variant(
        "heads split without transposing",
        {
            "split-heads": """
            def split_heads(x, n_heads):
                B, T, D = x.shape
                return x.reshape(B, n_heads, T, D // n_heads)
            """
        },
        {"test-split-heads": 1.5},
        "right shape, wrong numbers; reshape itself raises the ValueError",
    ),
    Variant(
        "heads interleaved",
        {
            "split-heads": """
            def split_heads(x, n_heads):
                B, T, D = x.shape
                return x.reshape(B, T, D // n_heads, n_heads).transpose(0, 3, 1, 2)
            """
        },
        {"test-split-heads": 1.5},
        "head 0 gets every n-th number; the shape is right",
    ),
    Variant(
        "heads left at axis 2",
        {
            "split-heads": """
            def split_heads(x, n_heads):
                B, T, D = x.shape
                return x.reshape(B, T, n_heads, D // n_heads)
            """
        },
        {"test-split-heads": 2},
        "the shape is (B, T, H, d_head)",
    ),
    Variant(
        "d_model cut off silently",
        {
            "split-heads": """
            def split_heads(x, n_heads):
                d = x.shape[-1] // n_heads
                return np.stack([x[:, :, h * d:(h + 1) * d] for h in range(n_heads)], axis=1)
            """
        },
        {"test-split-heads": 0.5},
        "right where d_model is a multiple, no error where it is not",
    ),
    Variant(
        "heads split without transposing, n_heads by another name",
        {
            "split-heads": """
            def split_heads(x, H):
                B, T, D = x.shape
                return x.reshape(B, H, T, D // H)
            """
        }
        | multi_head("""
heads = [split_heads(x @ w.T, H=n_heads) for x, w in [(q, w_q), (k, w_k), (v, w_v)]]
context, weights = attention(*heads, mask)
return merge_heads(context) @ w_out.T, weights
"""),
        {"test-split-heads": 1.5},
        "multi-head attention is tried with a right one that takes this name",
    ),
    Variant(
        "heads in float32",
        {
            "split-heads": """
            def split_heads(x, n_heads):
                B, T, D = x.shape
                return x.astype(np.float32).reshape(B, T, n_heads, D // n_heads).transpose(0, 2, 1, 3)
            """
        },
        {"test-split-heads": 0.5},
        "right to seven digits; only the dtype is wrong",
    ),
    Variant(
        "heads merged without transposing",
        {
            "merge-heads": """
            def merge_heads(x):
                B, H, T, d = x.shape
                return x.reshape(B, T, H * d)
            """
        },
        {"test-merge-heads": 1.5},
        "right shape, wrong numbers",
    ),
    Variant(
        "heads merged in the wrong order",
        {
            "merge-heads": """
            def merge_heads(x):
                B, H, T, d = x.shape
                return x.transpose(0, 2, 3, 1).reshape(B, T, H * d)
            """
        },
        {"test-merge-heads": 1.5},
        "the numbers of the heads alternate; the shape is right",
    ),
    Variant(
        "heads added up",
        {"merge-heads": "def merge_heads(x):\n    return x.sum(axis=1)"},
        {"test-merge-heads": 2},
        "the shape is (B, T, d_head)",
    ),
    Variant(
        "heads merged for batches of one",
        {
            "merge-heads": """
            def merge_heads(x):
                return np.concatenate(list(x[0]), axis=-1)[None]
            """
        },
        {"test-merge-heads": 2},
        "every test has another batch size than one",
    ),
    Variant(
        "merge in place",
        {
            "merge-heads": """
            def merge_heads(x):
                B, H, T, d = x.shape
                merged = x.transpose(0, 2, 1, 3).reshape(B, T, H * d).copy()
                x[:] = 0
                return merged
            """
        },
        {"test-merge-heads": 0.5},
        "the values are right; the argument is wiped afterwards",
    ),
    Variant(
        "matrices not transposed",
        multi_head("""
heads = [split_heads(x @ w, n_heads) for x, w in [(q, w_q), (k, w_k), (v, w_v)]]
context, weights = attention(*heads, mask)
return merge_heads(context) @ w_out, weights
"""),
        {"test-multi-head-attention": 1},
        "only the test with general matrices sees it; the others use symmetric ones",
    ),
    Variant(
        "output projection forgotten",
        multi_head("""
heads = [split_heads(x @ w.T, n_heads) for x, w in [(q, w_q), (k, w_k), (v, w_v)]]
context, weights = attention(*heads, mask)
return merge_heads(context), weights
"""),
        {"test-multi-head-attention": 1},
        "only the test with general matrices sees it; in the others w_out is the identity",
    ),
    Variant(
        "mask not passed on",
        multi_head("""
heads = [split_heads(x @ w.T, n_heads) for x, w in [(q, w_q), (k, w_k), (v, w_v)]]
context, weights = attention(*heads)
return merge_heads(context) @ w_out.T, weights
"""),
        {"test-multi-head-attention": 0.5},
        "one test has a mask",
    ),
    Variant(
        "values taken from the keys",
        multi_head("""
heads = [split_heads(x @ w.T, n_heads) for x, w in [(q, w_q), (k, w_k), (k, w_v)]]
context, weights = attention(*heads, mask)
return merge_heads(context) @ w_out.T, weights
"""),
        {"test-multi-head-attention": 1},
        "right where keys and values are the same array",
    ),
    Variant(
        "one head, whatever n_heads says",
        multi_head("""
heads = [(x @ w.T)[:, None] for x, w in [(q, w_q), (k, w_k), (v, w_v)]]
context, weights = attention(*heads, mask)
return context[:, 0] @ w_out.T, weights
"""),
        {"test-multi-head-attention": 3.5},
        "one best key where each head should have its own, and no place for a mask for each",
    ),
    Variant(
        "scale from d_model, on top of attention's",
        multi_head("""
heads = [split_heads(x @ w.T, n_heads) for x, w in [(q / n_heads ** 0.5, w_q), (k, w_k), (v, w_v)]]
context, weights = attention(*heads, mask)
return merge_heads(context) @ w_out.T, weights
"""),
        {"test-multi-head-attention": 0.5},
        "scores are divided by sqrt(d_model) in all: one test asks for the scale",
    ),
    Variant(
        "own attention in it, divided by the square root of d_model",
        multi_head("""
queries, keys, values = [split_heads(x @ w.T, n_heads) for x, w in [(q, w_q), (k, w_k), (v, w_v)]]
scores = queries @ keys.swapaxes(-1, -2) / q.shape[-1] ** 0.5
if mask is not None: scores = np.where(mask, scores, -1e9)
weights = softmax(scores)
return merge_heads(weights @ values) @ w_out.T, weights
"""),
        {"test-multi-head-attention": 0.5},
        "only the scale is wrong",
    ),
    Variant(
        "context and weights exchanged, here as in attention",
        {
            "attention": """
            def attention(q, k, v, mask=None):
                scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
                weights = softmax(scores if mask is None else np.where(mask, scores, np.finfo(float).min))
                weights = weights if mask is None else weights * mask
                return weights, weights @ v
            """
        }
        | multi_head("""
heads = [split_heads(x @ w.T, n_heads) for x, w in [(q, w_q), (k, w_k), (v, w_v)]]
weights, context = attention(*heads, mask)
return merge_heads(context) @ w_out.T, weights
"""),
        {"test-attention": 0.5},
        "one slip, used consistently",
    ),
    Variant(
        "returns the output alone",
        multi_head("""
heads = [split_heads(x @ w.T, n_heads) for x, w in [(q, w_q), (k, w_k), (v, w_v)]]
return merge_heads(attention(*heads, mask)[0]) @ w_out.T
"""),
        {"test-multi-head-attention": 4},
        "no test can take it apart",
    ),
    Variant(
        "heads averaged in the weights",
        multi_head("""
heads = [split_heads(x @ w.T, n_heads) for x, w in [(q, w_q), (k, w_k), (v, w_v)]]
context, weights = attention(*heads, mask)
return merge_heads(context) @ w_out.T, weights.mean(axis=1)
"""),
        {"test-multi-head-attention": 0.5},
        "the output is right, the weights have lost their axis of heads",
    ),
    Variant(
        "keys through w_q",
        multi_head("""
heads = [split_heads(x, n_heads) for x in (q @ w_q.T, k @ w_q.T, v @ w_v.T)]
context, weights = attention(*heads, mask)
return merge_heads(context) @ w_out.T, weights
"""),
        {"test-multi-head-attention": 1},
        "only the test with general matrices sees it; the others have one matrix for both",
    ),
    Variant(
        "w_q and w_k exchanged",
        multi_head("""
heads = [split_heads(x, n_heads) for x in (q @ w_k.T, k @ w_q.T, v @ w_v.T)]
context, weights = attention(*heads, mask)
return merge_heads(context) @ w_out.T, weights
"""),
        {"test-multi-head-attention": 1},
        "only the test with general matrices sees it; the others have one matrix for both",
    ),
    Variant(
        "w_q and w_k not transposed",
        multi_head("""
heads = [split_heads(x, n_heads) for x in (q @ w_q, k @ w_k, v @ w_v.T)]
context, weights = attention(*heads, mask)
return merge_heads(context) @ w_out.T, weights
"""),
        {"test-multi-head-attention": 1},
        "only the test with general matrices sees it; the others use symmetric ones",
    ),
    Variant(
        "masks of two axes dropped",
        multi_head("""
heads = [split_heads(x, n_heads) for x in (q @ w_q.T, k @ w_k.T, v @ w_v.T)]
mask = mask if np.ndim(mask) == 4 else None
context, weights = attention(*heads, mask)
return merge_heads(context) @ w_out.T, weights
"""),
        {"test-multi-head-attention": 0.5},
        "one test has masks",
    ),
    Variant(
        "the mask repeated for the heads",
        multi_head("""
heads = [split_heads(x, n_heads) for x in (q @ w_q.T, k @ w_k.T, v @ w_v.T)]
mask = mask if mask is None else np.repeat(mask, n_heads, axis=1)
context, weights = attention(*heads, mask)
return merge_heads(context) @ w_out.T, weights
"""),
        {"test-multi-head-attention": 0.5},
        "right for a mask without heads, of four axes",
    ),
    Variant(
        "the mask of the first head passed on",
        multi_head("""
heads = [split_heads(x, n_heads) for x in (q @ w_q.T, k @ w_k.T, v @ w_v.T)]
mask = mask[:, :1] if np.ndim(mask) == 4 else mask
context, weights = attention(*heads, mask)
return merge_heads(context) @ w_out.T, weights
"""),
        {"test-multi-head-attention": 0.5},
        "right for a mask without heads",
    ),
    Variant(
        "the mask filled up afterwards",
        multi_head("""
heads = [split_heads(x, n_heads) for x in (q @ w_q.T, k @ w_k.T, v @ w_v.T)]
context, weights = attention(*heads, mask)
if mask is not None: mask.fill(True)
return merge_heads(context) @ w_out.T, weights
"""),
        {"test-multi-head-attention": 0.5},
        "the values are right; the argument is another one afterwards",
    ),
]
