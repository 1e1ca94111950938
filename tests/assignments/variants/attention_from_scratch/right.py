"""Right solutions in other styles: none may lose a point."""

from tests.assignments.variants import Variant

VARIANTS = [
    Variant("the reference", {}),
    Variant(
        "einsum",
        {
            "attention": """
            def attention(q, k, v, mask=None):
                scores = np.einsum("...td,...sd->...ts", q, k) * q.shape[-1] ** -0.5
                if mask is None:
                    mask = np.ones(scores.shape, dtype=bool)
                weights = softmax(np.where(mask, scores, -1e30)) * mask
                return np.einsum("...ts,...sd->...td", weights, v), weights
            """,
            "multi-head-attention": """
            def multi_head_attention(q, k, v, w_q, w_k, w_v, w_out, n_heads, mask=None):
                project = lambda x, w: np.einsum("btd,ed->bte", x, w)
                context, weights = attention(
                    split_heads(project(q, w_q), n_heads), split_heads(project(k, w_k), n_heads),
                    split_heads(project(v, w_v), n_heads), mask=mask)
                return project(merge_heads(context), w_out), weights
            """,
        },
    ),
    Variant(
        "loops all the way down",
        {
            "softmax": """
            import math
            def softmax(x):
                rows = x.reshape(-1, x.shape[-1])
                out = []
                for row in rows:
                    top = max(row)
                    e = [math.exp(value - top) for value in row]
                    out.append([value / sum(e) for value in e])
                return np.array(out).reshape(x.shape)
            """,
            "padding-mask": """
            def padding_mask(ids, pad_id=0):
                mask = np.zeros((len(ids), 1, 1, len(ids[0])), dtype=bool)
                for b, sequence in enumerate(ids):
                    for s, token in enumerate(sequence):
                        mask[b, 0, 0, s] = token != pad_id
                return mask
            """,
            "causal-mask": """
            def causal_mask(T):
                return np.array([[[[s <= t for s in range(T)] for t in range(T)]]])
            """,
            "attention": """
            def attention(q, k, v, mask=None):
                leading, T, S = q.shape[:-2], q.shape[-2], k.shape[-2]
                weights = np.zeros(leading + (T, S))
                context = np.zeros(leading + (T, v.shape[-1]))
                allowed = np.broadcast_to(True if mask is None else mask, weights.shape)
                for i in np.ndindex(*leading, T):
                    keys = [s for s in range(S) if allowed[i][s]]
                    if not keys:
                        continue
                    scores = [sum(a * b for a, b in zip(q[i], k[i[:-1]][s])) / q.shape[-1] ** 0.5 for s in keys]
                    for s, w in zip(keys, softmax(np.array(scores))):
                        weights[i][s] = w
                        context[i] += w * v[i[:-1]][s]
                return context, weights
            """,
        },
    ),
    Variant(
        "log-sum-exp",
        {
            "softmax": """
            def softmax(x):
                top = np.max(x, axis=-1, keepdims=True)
                return np.exp(x - top - np.log(np.sum(np.exp(x - top), axis=-1, keepdims=True)))
            """
        },
    ),
    Variant(
        "in place on copies",
        {
            "softmax": """
            def softmax(x):
                x = np.array(x, dtype=float)
                x -= x.max(axis=-1, keepdims=True)
                np.exp(x, out=x)
                x /= x.sum(axis=-1, keepdims=True)
                return x
            """,
            "attention": """
            def attention(q, k, v, mask=None):
                w = np.matmul(q, np.moveaxis(k, -1, -2))
                w /= np.sqrt(k.shape[-1])
                if mask is not None:
                    w[~np.broadcast_to(mask, w.shape)] = -1e12
                w = softmax(w)
                if mask is not None:
                    w[~np.broadcast_to(mask, w.shape)] = 0
                return np.matmul(w, v), w
            """,
        },
    ),
    Variant(
        "minus infinity, then NaN to zero, with warnings",
        {
            "attention": """
            def attention(q, k, v, mask=None):
                scores = q @ k.swapaxes(-2, -1) / np.sqrt(k.shape[-1])
                if mask is not None:
                    scores = np.where(mask, scores, -np.inf)
                weights = np.nan_to_num(softmax(scores))
                return weights @ v, weights
            """
        },
        why="-inf - (-inf) warns on standard error; the answer is right",
    ),
    Variant(
        "an additive mask inside, log(0) warning",
        {
            "attention": """
            import warnings
            def attention(q, k, v, mask=None):
                scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
                if mask is None:
                    weights = softmax(scores)
                else:
                    scores = scores + np.log(mask.astype(float))
                    warnings.warn("careful")
                    e = np.exp(scores - np.max(np.maximum(scores, -1e9), axis=-1, keepdims=True))
                    total = e.sum(-1, keepdims=True)
                    weights = np.divide(e, total, out=np.zeros_like(e), where=total > 0)
                return weights @ v, weights
            """
        },
        why="np.log(0) and warnings.warn write to standard error; the answer is right",
    ),
    Variant(
        "prints, logs and writes to standard error",
        {
            "softmax": """
            import logging, os, sys
            logging.basicConfig(stream=sys.stderr)
            logging.warning("a log record in the cell of the function")
            def softmax(x):
                print("shape", x.shape)
                print("shape", x.shape, file=sys.stderr)
                os.write(2, b"to the descriptor")
                logging.warning("softmax called")
                e = np.exp(x - x.max(axis=-1, keepdims=True))
                return e / e.sum(axis=-1, keepdims=True)
            """
        },
        why="debugging output is no fault",
    ),
    Variant(
        "NumPy set to raise, warnings set to errors",
        {
            "softmax": """
            import warnings
            np.seterr(all="raise")
            warnings.simplefilter("error")
            def softmax(x):
                e = np.exp(x - x.max(axis=-1, keepdims=True))
                return e / e.sum(axis=-1, keepdims=True)
            """
        },
        why="exp(-1000) underflows to 0, which is right",
    ),
    Variant(
        "notebook-wide display settings",
        {
            "softmax": """
            get_ipython().run_line_magic("precision", "0")
            get_ipython().ast_node_interactivity = "all"
            np.set_printoptions(precision=1, suppress=True)
            def softmax(x):
                e = np.exp(x - x.max(axis=-1, keepdims=True))
                return e / e.sum(axis=-1, keepdims=True)
            """
        },
        why="%precision 0 would print 2.5 as 2; 'all' would display more than the score",
    ),
    Variant(
        "Fortran order and views",
        {
            "softmax": """
            def softmax(x):
                e = np.exp(x - x.max(axis=-1, keepdims=True))
                return np.asfortranarray(e / e.sum(axis=-1, keepdims=True))
            """,
            "causal-mask": """
            def causal_mask(T):
                return np.triu(np.ones((T, T), bool)).T[np.newaxis, np.newaxis]
            """,
            "merge-heads": """
            def merge_heads(x):
                return np.asfortranarray(np.concatenate([x[:, h] for h in range(x.shape[1])], axis=-1))
            """,
        },
    ),
    Variant(
        "a list of heads, then stack",
        {
            "split-heads": """
            def split_heads(x, n_heads):
                if x.shape[2] % n_heads != 0:
                    raise ValueError("not divisible")
                return np.stack(np.split(x, n_heads, axis=2), axis=1)
            """,
            "merge-heads": """
            def merge_heads(x):
                return np.concatenate(np.split(x, x.shape[1], axis=1), axis=3)[:, 0]
            """,
            "multi-head-attention": """
            def multi_head_attention(q, k, v, w_q, w_k, w_v, w_out, n_heads, mask=None):
                outputs, all_weights = [], []
                d = w_q.shape[0] // n_heads
                for h in range(n_heads):
                    rows = slice(h * d, (h + 1) * d)
                    m = None if mask is None else np.broadcast_to(
                        mask, (len(q), n_heads, q.shape[1], k.shape[1]))[:, h]
                    c, w = attention(q @ w_q[rows].T, k @ w_k[rows].T, v @ w_v[rows].T, m)
                    outputs.append(c @ w_out[:, rows].T)
                    all_weights.append(w)
                return sum(outputs), np.stack(all_weights, axis=1)
            """,
        },
    ),
    Variant(
        "softmax with more parameters, its mask inside",
        {
            "softmax": """
            def softmax(x, axis=-1, mask=None):
                if mask is not None:
                    x = np.where(mask, x, -1e100)
                e = np.exp(x - x.max(axis=axis, keepdims=True))
                w = e / e.sum(axis=axis, keepdims=True)
                return w if mask is None else w * mask
            """,
            "attention": """
            def attention(q, k, v, mask=None):
                weights = softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]), axis=-1, mask=mask)
                return [weights @ v, weights]
            """,
        },
        why="a longer signature is a matter of style; so is a list in the place of a tuple",
    ),
    Variant(
        "helper functions, classes and type hints",
        {
            "softmax": """
            class Softmax:
                def __call__(self, x: np.ndarray) -> np.ndarray:
                    e = np.exp(x - np.amax(x, -1, keepdims=True))
                    return np.true_divide(e, e.sum(-1, keepdims=True))
            softmax = Softmax()
            """,
            "attention": """
            def _scores(q, k): return np.matmul(q, k.swapaxes(-1, -2)) / (q.shape[-1] ** 0.5)
            def attention(q, k, v, mask=None):
                s = _scores(q, k)
                m = np.broadcast_to(np.ones((), bool) if mask is None else mask, s.shape)
                w = np.where(m, np.exp(s - np.where(m, s, -np.inf).max(-1, keepdims=True, initial=-1e9)), 0.0)
                z = w.sum(-1, keepdims=True)
                w = w / np.where(z > 0, z, 1.0)
                return w @ v, w
            """,
        },
    ),
    Variant(
        "helpers called score, heads, mask, x, expected",
        {
            "softmax": """
            def x(scores): return np.exp(scores - scores.max(axis=-1, keepdims=True))
            def expected(scores): return x(scores).sum(axis=-1, keepdims=True)
            def softmax(scores): return x(scores) / expected(scores)
            """,
            "attention": """
            def score(a, b): return a @ np.swapaxes(b, -1, -2) / np.sqrt(a.shape[-1])
            def mask(scores, allowed): return softmax(np.where(allowed, scores, -1e300)) * allowed
            _mask = mask
            def attention(q, k, v, mask=None):
                weights = softmax(score(q, k)) if mask is None else _mask(score(q, k), mask)
                return weights @ v, weights
            """,
            "split-heads": """
            def heads(x, n_heads):
                return x.reshape(*x.shape[:2], n_heads, -1)
            def split_heads(x, n_heads):
                return np.moveaxis(heads(x, n_heads), 2, 1)
            """,
            "multi-head-attention": """
            def q(x, w): return x @ w.T
            def multi_head_attention(queries, keys, values, w_q, w_k, w_v, w_out, n_heads, mask=None):
                three = (split_heads(q(x, w), n_heads) for x, w in [(queries, w_q), (keys, w_k), (values, w_v)])
                context, weights = attention(*three, mask)
                return q(merge_heads(context), w_out), weights
            """,
        },
        why="no cell of the tests may hide a student's own names",
    ),
    Variant(
        "a thread that writes to standard error",
        {
            "softmax": """
            import sys, threading, time
            def _chatter():
                while True:
                    print("still here", file=sys.stderr)
                    time.sleep(0.005)
            threading.Thread(target=_chatter, daemon=True).start()
            def softmax(x):
                e = np.exp(x - x.max(axis=-1, keepdims=True))
                return e / e.sum(axis=-1, keepdims=True)
            """
        },
        why="debugging output is no fault, whenever it comes",
    ),
    Variant(
        "masked arrays, and float128 inside",
        {
            "softmax": """
            def softmax(x):
                e = np.exp(np.longdouble(x) - np.longdouble(x).max(axis=-1, keepdims=True))
                return (e / e.sum(axis=-1, keepdims=True)).astype(float)
            """,
            "attention": """
            def attention(q, k, v, mask=None):
                scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
                allowed = np.broadcast_to(True if mask is None else mask, scores.shape)
                scores = np.ma.array(scores, mask=~allowed)
                e = np.ma.exp(scores - scores.max(axis=-1, keepdims=True))
                weights = (e / e.sum(axis=-1, keepdims=True)).filled(0.0)
                return weights @ v, weights
            """,
        },
    ),
    Variant(
        "helpers called check, expect, test",
        {
            "softmax": """
            def check(x): return np.max(x, axis=-1, keepdims=True)
            def expect(x): return np.exp(x - check(x))
            def softmax(x): return expect(x) / expect(x).sum(axis=-1, keepdims=True)
            """,
            "attention": """
            expect_array = lambda weights: np.nan_to_num(weights, nan=0.0)
            expect_pair = expect_dtype = expect_unchanged = test = None
            def attention(q, k, v, mask=None):
                scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
                weights = expect_array(softmax(scores if mask is None else np.where(mask, scores, -np.inf)))
                return weights @ v, weights
            """,
        },
        why="the public checks bring what they need along",
    ),
    Variant(
        "other names for the arguments, called by them",
        {
            "softmax": """
            def softmax(scores, allowed=None):
                scores = scores if allowed is None else np.where(allowed, scores, np.finfo(float).min)
                e = np.exp(scores - scores.max(axis=-1, keepdims=True))
                w = e / e.sum(axis=-1, keepdims=True)
                return w if allowed is None else w * allowed
            """,
            "attention": """
            def attention(Q, K, V, mask=None):
                weights = softmax(scores=Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1]), allowed=mask)
                return weights @ V, weights
            """,
            "split-heads": """
            def split_heads(x, H):
                B, T, d = x.shape
                if d % H:
                    raise ValueError(f"{d} is no multiple of {H}")
                return x.reshape(B, T, H, d // H).swapaxes(1, 2)
            """,
            "multi-head-attention": """
            def multi_head_attention(q, k, v, w_q, w_k, w_v, w_out, n_heads, mask=None):
                Q, K, V = (split_heads(x @ w.T, H=n_heads) for x, w in ((q, w_q), (k, w_k), (v, w_v)))
                context, weights = attention(Q=Q, K=K, V=V, mask=mask)
                return merge_heads(context) @ w_out.T, weights
            """,
        },
    ),
    Variant(
        "empty rows allowed everything in a copy, then set to zero",
        {
            "attention": """
            def attention(q, k, v, mask=None):
                scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
                if mask is None:
                    weights = softmax(scores)
                else:
                    empty = ~mask.any(axis=-1, keepdims=True)
                    weights = np.where(empty, 0.0, softmax(np.where(mask | empty, scores, -np.inf)))
                return weights @ v, weights
            """
        },
    ),
]
