"""Wrong solutions of parts 1 and 2."""

from tests.assignments.variants import Variant

SOFTMAX_VALUES = "the values of every array are wrong; the shape, the dtype and the arguments are right"
MASK_IN_SOFTMAX = """
def attention(q, k, v, mask=None):
    weights = softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]), GIVEN)
    return weights @ v, weights
"""

VARIANTS = [
    Variant(
        "softmax over the first axis",
        {"softmax": "def softmax(x):\n    e = np.exp(x - x.max(axis=0))\n    return e / e.sum(axis=0)"},
        {"test-softmax": 3},
        SOFTMAX_VALUES + "; the later parts are tried with a right softmax and lose nothing",
    ),
    Variant(
        "softmax over the whole array",
        {"softmax": "def softmax(x):\n    e = np.exp(x - x.max())\n    return e / e.sum()"},
        {"test-softmax": 3},
        SOFTMAX_VALUES,
    ),
    Variant(
        "softmax without a sum",
        {"softmax": "def softmax(x):\n    return np.exp(x - x.max(axis=-1, keepdims=True))"},
        {"test-softmax": 3},
        SOFTMAX_VALUES,
    ),
    Variant(
        "softmax: maximum not subtracted",
        {"softmax": "def softmax(x):\n    e = np.exp(x)\n    return e / e.sum(axis=-1, keepdims=True)"},
        {"test-softmax": 1},
        "moderate scores come out right; only large ones overflow",
    ),
    Variant(
        "softmax: maximum over the wrong axis",
        {
            "softmax": """
            def softmax(x):
                e = np.exp(x - x.max(axis=0))
                return e / e.sum(axis=-1, keepdims=True)
            """
        },
        {"test-softmax": 3},
        "a constant that differs within a row does not cancel, so every value is wrong",
    ),
    Variant(
        "softmax: keepdims forgotten",
        {"softmax": "def softmax(x):\n    e = np.exp(x - x.max())\n    return e / e.sum(axis=-1)"},
        {"test-softmax": 4},
        "shapes (3, 5) and (3,) do not broadcast: every call raises an error",
    ),
    Variant(
        "softmax for matrices only",
        {
            "softmax": """
            def softmax(x):
                e = np.exp(x - x.max(axis=1, keepdims=True))
                return e / e.sum(axis=1, keepdims=True)
            """
        },
        {"test-softmax": 1},
        "axis 1 is the last axis of a matrix alone; one row, three axes and four axes fail",
    ),
    Variant(
        "softmax changes its argument",
        {
            "softmax": """
            def softmax(x):
                x -= x.max(axis=-1, keepdims=True)
                np.exp(x, out=x)
                x /= x.sum(axis=-1, keepdims=True)
                return x
            """
        },
        {"test-softmax": 0.5},
        "each test gets its own copy, so only the test of this rule sees it",
    ),
    Variant(
        "softmax in float32",
        {
            "softmax": """
            def softmax(x):
                e = np.exp(x - x.max(axis=-1, keepdims=True))
                return (e / e.sum(axis=-1, keepdims=True)).astype(np.float32)
            """
        },
        {"test-softmax": 0.5},
        "right to seven digits; only the dtype is wrong",
    ),
    Variant(
        "one maximum for the whole array",
        {"softmax": "def softmax(x):\n    e = np.exp(x - np.max(x))\n    return e / e.sum(axis=-1, keepdims=True)"},
        {"test-softmax": 1},
        "a row far below the largest number of another row is 0 / 0",
    ),
    Variant(
        "softmax rounded",
        {
            "softmax": """
            def softmax(x):
                e = np.exp(x - x.max(axis=-1, keepdims=True))
                return np.round(e / e.sum(axis=-1, keepdims=True), 3)
            """
        },
        {"test-softmax": 1},
        "three digits; the values are compared to four once, and loosely elsewhere",
    ),
    Variant(
        "softmax with a number added to the sum",
        {
            "softmax": """
            def softmax(x):
                e = np.exp(x - x.max(axis=-1, keepdims=True))
                return e / (e.sum(axis=-1, keepdims=True) + 1e-2)
            """
        },
        {"test-softmax": 1},
        "nearly right; the sum is at least 1 and needs no help",
    ),
    Variant(
        "log-softmax",
        {
            "softmax": """
            def softmax(x):
                y = x - x.max(axis=-1, keepdims=True)
                return y - np.log(np.exp(y).sum(axis=-1, keepdims=True))
            """
        },
        {"test-softmax": 3},
        SOFTMAX_VALUES,
    ),
    Variant(
        "the mean subtracted, the mask in softmax",
        {
            "softmax": """
            def softmax(x, mask=None):
                if mask is not None:
                    x = np.where(mask, x, np.finfo(float).min)
                e = np.exp(x - x.mean(axis=-1, keepdims=True))
                w = e / e.sum(axis=-1, keepdims=True)
                return w if mask is None else w * mask
            """,
            "attention": MASK_IN_SOFTMAX.replace("GIVEN", "mask=mask"),
        },
        {"test-softmax": 1},
        "large scores alone; attention is tried with a right softmax that takes a mask, too",
    ),
    Variant(
        "softmax over the first axis, the mask in it",
        {
            "softmax": """
            def softmax(x, mask=None):
                x = x if mask is None else np.where(mask, x, np.finfo(float).min)
                e = np.exp(x - x.max(axis=0, keepdims=True))
                w = e / e.sum(axis=0, keepdims=True)
                return w if mask is None else w * mask
            """,
            "attention": MASK_IN_SOFTMAX.replace("GIVEN", "mask"),
        },
        {"test-softmax": 3},
        SOFTMAX_VALUES + "; attention is tried with a right softmax that takes a mask, too",
    ),
    Variant(
        "softmax: the first score subtracted",
        {
            "softmax": """
            def softmax(x):
                e = np.exp(x - x[..., :1])
                return e / e.sum(axis=-1, keepdims=True)
            """
        },
        {"test-softmax": 1},
        "only scores far above the first overflow",
    ),
    Variant(
        "softmax: the largest absolute value subtracted",
        {
            "softmax": """
            def softmax(x):
                e = np.exp(x - np.abs(x).max(axis=-1, keepdims=True))
                return e / e.sum(axis=-1, keepdims=True)
            """
        },
        {"test-softmax": 1},
        "0 / 0 where the largest score is far below zero",
    ),
    Variant(
        "softmax in longdouble in the place of a maximum",
        {
            "softmax": """
            def softmax(x):
                e = np.exp(np.longdouble(x))
                return (e / e.sum(axis=-1, keepdims=True)).astype(float)
            """
        },
        {"test-softmax": 1},
        "it overflows later, at 11357",
    ),
    Variant(
        "softmax for up to three axes",
        {
            "softmax": """
            def softmax(x):
                e = np.exp(x - x.max(axis=-1, keepdims=True))
                if x.ndim == 1:
                    return e / e.sum()
                if x.ndim == 2:
                    return e / e.sum(axis=1)[:, None]
                if x.ndim == 3:
                    return e / e.sum(axis=2)[:, :, None]
            """
        },
        {"test-softmax": 1},
        "there may be any number; attention with four is tried with a right softmax",
    ),
    Variant(
        "padding mask inverted",
        {"padding-mask": "def padding_mask(ids, pad_id=0):\n    return (ids == pad_id)[:, None, None, :]"},
        {"test-padding-mask": 1.5},
        "both patterns are wrong; shape and dtype are right",
    ),
    Variant(
        "padding mask of shape (B, S)",
        {"padding-mask": "def padding_mask(ids, pad_id=0):\n    return ids != pad_id"},
        {"test-padding-mask": 0.5},
        "the pattern is right, the two axes are missing",
    ),
    Variant(
        "padding mask masks queries, (B, 1, S, 1)",
        {"padding-mask": "def padding_mask(ids, pad_id=0):\n    return (ids != pad_id)[:, None, :, None]"},
        {"test-padding-mask": 0.5},
        "the pattern is right, the axes are in the wrong order",
    ),
    Variant(
        "padding id ignored",
        {"padding-mask": "def padding_mask(ids, pad_id=0):\n    return (ids != 0)[:, None, None, :]"},
        {"test-padding-mask": 0.5},
        "right for the padding id 0",
    ),
    Variant(
        "padding mask by lengths",
        {
            "padding-mask": """
            def padding_mask(ids, pad_id=0):
                lengths = (ids != pad_id).sum(axis=1)
                return (np.arange(ids.shape[1]) < lengths[:, None])[:, None, None, :]
            """
        },
        {"test-padding-mask": 0.5},
        "right where the padding is at the end",
    ),
    Variant(
        "padding mask additive, 0 and -inf",
        {
            "padding-mask": """
            def padding_mask(ids, pad_id=0):
                return np.where(ids != pad_id, 0.0, -np.inf)[:, None, None, :]
            """
        },
        {"test-padding-mask": 2},
        "another convention altogether: no value is True or False",
    ),
    Variant(
        "padding mask of 0 and 1",
        {"padding-mask": "def padding_mask(ids, pad_id=0):\n    return (ids != pad_id).astype(int)[:, None, None]"},
        {"test-padding-mask": 0.5},
        "the pattern is right, the dtype is not bool",
    ),
    Variant(
        "padding mask changes its argument",
        {"padding-mask": "def padding_mask(ids, pad_id=0):\n    ids -= pad_id\n    return (ids != 0)[:, None, None]"},
        {"test-padding-mask": 0.5},
        "the pattern is right; the ids are others afterwards",
    ),
    Variant(
        "padding mask never empty",
        {
            "padding-mask": """
            def padding_mask(ids, pad_id=0):
                real = ids != pad_id
                real[~real.any(axis=1), 0] = True
                return real[:, None, None]
            """
        },
        {"test-padding-mask": 0.5},
        "padding is wherever the id is pad_id, in a sentence of padding only, too",
    ),
    Variant(
        "causal mask off by one",
        {"causal-mask": "def causal_mask(T):\n    return np.tril(np.ones((1, 1, T, T), bool), -1)"},
        {"test-causal-mask": 1.5},
        "no query sees itself; shape and dtype are right",
    ),
    Variant(
        "causal mask one too many",
        {"causal-mask": "def causal_mask(T):\n    return np.tril(np.ones((1, 1, T, T), bool), 1)"},
        {"test-causal-mask": 1.5},
        "each query sees the next token; shape and dtype are right",
    ),
    Variant(
        "causal mask transposed",
        {"causal-mask": "def causal_mask(T):\n    return np.triu(np.ones((1, 1, T, T), bool))"},
        {"test-causal-mask": 1.5},
        "the future is seen and the past is not; shape and dtype are right",
    ),
    Variant(
        "causal mask inverted",
        {"causal-mask": "def causal_mask(T):\n    return ~np.tril(np.ones((1, 1, T, T), bool))"},
        {"test-causal-mask": 1.5},
        "True means ignore here; shape and dtype are right",
    ),
    Variant(
        "causal mask of shape (T, T)",
        {"causal-mask": "def causal_mask(T):\n    return np.tril(np.ones((T, T), bool))"},
        {"test-causal-mask": 0.5},
        "the pattern is right, two axes are missing",
    ),
    Variant(
        "causal mask in float64",
        {"causal-mask": "def causal_mask(T):\n    return np.tril(np.ones((1, 1, T, T)))"},
        {"test-causal-mask": 0.5},
        "the pattern is right, the dtype is not bool",
    ),
    Variant(
        "causal mask from a buffer of 16",
        {
            "causal-mask": """
            BUFFER = np.tril(np.ones((1, 1, 16, 16), bool))
            def causal_mask(T):
                return BUFFER[:, :, :T, :T]
            """
        },
        {"test-causal-mask": 0.5},
        "right up to that length",
    ),
    Variant(
        "causal mask of positions in int8",
        {
            "causal-mask": """
            def causal_mask(T):
                t = np.arange(T).astype(np.int8)
                return (t <= t[:, None])[None, None]
            """
        },
        {"test-causal-mask": 0.5},
        "position 128 becomes -128",
    ),
    Variant(
        "causal mask squeezed",
        {
            "causal-mask": """
            def causal_mask(T):
                return np.tril(np.ones((1, 1, T, T), bool)).squeeze()[None, None]
            """
        },
        {"test-causal-mask": 0.5},
        "one position loses its own axes as well: shape (1, 1)",
    ),
]
