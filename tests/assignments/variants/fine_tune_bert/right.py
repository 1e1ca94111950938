"""Right solutions in other styles. None may lose a point."""

from tests.assignments.variants import Variant
from tests.assignments.variants.fine_tune_bert.changed import REFERENCE, body, predicted

VARIANTS = [
    Variant("the reference", {}),
    Variant(
        "lists and loops",
        {
            "first-and-last": """
            def first_and_last(ids, max_len):
                ids = list(ids)
                if len(ids) > max_len:
                    while len(ids) > max_len:
                        del ids[(max_len + 1) // 2]
                return ids
            """,
            "mean-of-tokens": """
            def mean_of_tokens(hidden, mask):
                means = []
                for text, real in zip(hidden, mask):
                    total, count = np.zeros(text.shape[-1]), 0
                    for vector, counts in zip(text, real):
                        if counts:
                            total, count = total + vector, count + 1
                    means.append(total / count if count else total)
                return np.stack(means)
            """,
            "layer-rates": """
            def layer_rates(names, peak, decay):
                import re
                numbers = [re.search(r"encoder[.]layers[.]([0-9]+)[.]", name) for name in names]
                n = len({found[1] for found in numbers if found})
                rates = {}
                for name, found in zip(names, numbers):
                    if found:
                        rates[name] = peak * decay ** (n - int(found[1]))
                    elif "embeddings." in name:
                        rates[name] = peak * decay ** (n + 1)
                    else:
                        rates[name] = peak
                return rates
            """,
            "interval": """
            def interval(right_a, right_b):
                gains = [int(a) - int(b) for a, b in zip(right_a, right_b)]
                mean = sum(gains) / len(gains)
                variance = sum((gain - mean) ** 2 for gain in gains) / (len(gains) - 1)
                half = 1.96 * (variance / len(gains)) ** 0.5
                return [mean, mean - half, mean + half]
            """,
        },
    ),
    Variant(
        "indices, einsum, a rate from layer to layer",
        {
            "first-and-last": """
            def first_and_last(ids, max_len):
                length = len(ids)
                kept = min(length, max_len)
                places = np.arange(kept)
                places[(kept + 1) // 2:] += length - kept
                return ids[places]
            """,
            "mean-of-tokens": """
            def mean_of_tokens(hidden, mask):
                score = mask / np.clip(mask.sum(1, keepdims=True), 1, None)
                return np.einsum("bt,btd->bd", score, hidden)
            """,
            "layer-rates": """
            def layer_rates(names, peak, decay):
                def number(name):
                    return int(name.split("encoder.layers.")[1].split(".")[0])
                inside = [name for name in names if "encoder.layers." in name]
                rates, rate = {name: peak for name in names}, peak
                for i in sorted(set(map(number, inside)), reverse=True):
                    rate *= decay
                    rates.update({name: rate for name in inside if number(name) == i})
                rates.update({name: rate * decay for name in names if "embeddings." in name})
                return rates
            """,
        },
    ),
    Variant(
        "masked arrays",
        {
            "mean-of-tokens": """
            def mean_of_tokens(hidden, mask):
                left_out = np.broadcast_to(~mask[..., None], hidden.shape)
                return np.ma.masked_array(hidden, mask=left_out).mean(axis=1).filled(0.0)
            """
        },
    ),
    Variant(
        "float32 inside",
        {
            "mean-of-tokens": """
            def mean_of_tokens(hidden, mask):
                hidden, mask = hidden.astype(np.float32), mask.astype(np.float32)[..., None]
                return (hidden * mask).sum(1) / np.maximum(mask.sum(1), np.float32(1))
            """,
            "interval": """
            def interval(right_a, right_b):
                gains = np.subtract(right_a, right_b, dtype=np.float32)
                half = np.float32(1.96) * gains.std(ddof=1) / np.float32(len(gains)) ** 0.5
                return tuple(np.array([0, -half, half], dtype=np.float32) + gains.mean())
            """,
        },
    ),
    Variant(
        "NaN for fillers, and a mean without NaN",
        body(
            "mean-of-tokens",
            "import warnings",
            "warnings.warn('a mean of nothing may come')",
            "return np.nan_to_num(np.nanmean(np.where(mask[..., None], hidden, np.nan), axis=1))",
        ),
        why="what warns is not wrong",
    ),
    Variant(
        "halving",
        {
            "temperature": """
            def temperature(logits, labels):
                z = logits - logits.max(axis=1, keepdims=True)
                right = np.take_along_axis(z, labels[:, None], axis=1).mean()
                low, high = 1e-3, 1e2
                for _ in range(80):
                    beta = (low + high) / 2
                    p = np.exp(beta * z)
                    p /= p.sum(axis=1, keepdims=True)
                    if (p * z).sum(axis=1).mean() < right:
                        low = beta
                    else:
                        high = beta
                return 1 / beta
            """
        },
    ),
    Variant(
        "Newton",
        {
            "temperature": """
            def temperature(logits, labels):
                z = logits - logits.max(axis=1, keepdims=True)
                z = z / z.std()
                beta = 0.01
                for _ in range(100):
                    p = np.exp(beta * z) / np.exp(beta * z).sum(axis=1, keepdims=True)
                    mean = (p * z).sum(axis=1)
                    slope = (mean - z[np.arange(len(z)), labels]).mean()
                    bend = ((p * z * z).sum(axis=1) - mean**2).mean()
                    beta = np.clip(beta - slope / bend, beta / 3, beta * 3)
                return np.float64((logits - logits.max(axis=1, keepdims=True)).std() / beta)
            """
        },
    ),
    Variant(
        "SciPy's minimum, of log-sum-exp",
        {
            "temperature": """
            def temperature(logits, labels):
                from scipy.optimize import minimize_scalar
                from scipy.special import log_softmax
                def loss(x):
                    return -log_softmax(logits / np.exp(x), axis=1)[np.arange(len(labels)), labels].mean()
                return float(np.exp(minimize_scalar(loss, bounds=(-3, 4), method="bounded").x))
            """,
            "interval": """
            def interval(right_a, right_b):
                only_a, only_b, n = np.sum(right_a & ~right_b), np.sum(right_b & ~right_a), len(right_a)
                d = (only_a - only_b) / n
                half = 1.96 * np.sqrt(((only_a + only_b) / n - d**2) / (n - 1))
                return np.array([d, d - half, d + half])
            """,
        },
    ),
    Variant(
        "a grid, twice, the second time finer",
        {
            "temperature": """
            def temperature(logits, labels):
                onehot = np.eye(logits.shape[1])[labels]
                shifted = logits - logits.max(-1, keepdims=True)
                def loss(T):
                    return (np.log(np.exp(shifted / T).sum(-1)) - (onehot * shifted).sum(-1) / T).mean()
                grid = np.linspace(0.1, 25, 100)
                for _ in range(4):
                    i = int(np.argmin([loss(T) for T in grid]))
                    grid = np.linspace(grid[max(i - 1, 0)], grid[min(i + 1, 99)], 100)
                return round(float(grid[50]), 4)
            """
        },
    ),
    Variant(
        "steps downhill",
        {
            "temperature": """
            def temperature(logits, labels):
                z = logits - logits.max(1, keepdims=True)
                x, step = 0.0, 0.5
                def loss(x):
                    scaled = z * np.exp(-x)
                    return np.mean(np.log(np.exp(scaled).sum(1)) - scaled[range(len(labels)), labels])
                while step > 1e-4:
                    better = min((x - step, x, x + step), key=loss)
                    if better == x:
                        step /= 2
                    x = better
                return np.exp(x)
            """
        },
    ),
    Variant(
        "a one-dimensional array of no axis",
        body(
            "temperature",
            "z = logits - logits.max(axis=1, keepdims=True)",
            "grid = np.geomspace(0.15, 25, 400)[:, None, None]",
            "scaled = z / grid  # (400, N, K)",
            "losses = np.log(np.exp(scaled).sum(-1)) - scaled[:, np.arange(len(labels)), labels]",
            "return np.asarray(grid[losses.mean(axis=1).argmin(), 0, 0])",
        ),
        why="an array of shape () is one number",
    ),
    Variant(
        "helpers called as the tests' own names",
        {
            "first-and-last": """
            def score(ids):
                return len(ids)
            def hidden_text(ids, n):
                return ids[:n]
            def first_and_last(ids, max_len):
                if score(ids) <= max_len:
                    return ids
                return np.append(hidden_text(ids, -(-max_len // 2)), hidden_text(ids[::-1], max_len // 2)[::-1])
            """,
            "mean-of-tokens": """
            def mask(x, real):
                return x * real[:, :, None]
            def slips(real):
                return np.maximum(real.sum(-1), 1)[:, None]
            def mean_of_tokens(hidden, mask_):
                return mask(hidden, mask_).sum(-2) / slips(mask_)
            """,
            "interval": """
            def check_half(gains):
                return 1.96 * np.sqrt(np.var(gains, ddof=1) / gains.size)
            def hidden_numbers(*numbers):
                return numbers
            def interval(right_a, right_b):
                gains = np.subtract(right_a, right_b, dtype=float)
                mean, half = np.average(gains), check_half(gains)
                return hidden_numbers(mean, mean - half, mean + half)
            """,
            "predictions": REFERENCE + "\nscore = hidden_labels = positive = unpack = [PREDICTIONS]",
        },
    ),
    Variant(
        "helpers called check, expect and unpack",
        {
            "first-and-last": """
            def check(ids, max_len):
                return len(ids) <= max_len
            def expect_array(ids, places):
                return ids[places]
            def first_and_last(ids, max_len):
                if check(ids, max_len):
                    return ids
                return expect_array(ids, np.r_[: (max_len + 1) // 2, -(max_len // 2) : 0])
            """,
            "temperature": """
            def expect(p, x):
                return (p * x).sum(axis=1)
            def temperature(logits, labels):
                z = logits - logits.max(axis=1, keepdims=True)
                low, high = 0.04, 6.0
                for _ in range(40):
                    beta = (low + high) / 2
                    p = np.exp(beta * z)
                    p /= p.sum(axis=1, keepdims=True)
                    rises = (expect(p, z) - z[range(len(z)), labels]).mean() > 0
                    low, high = (low, beta) if rises else (beta, high)
                return 1 / beta
            """,
            "interval": """
            def unpack(a, b):
                return 1 * a - 1 * b
            def interval(right_a, right_b):
                gains = unpack(right_a, right_b)
                half = 1.96 * (gains.var(ddof=1) / len(gains)) ** 0.5
                return gains.mean(), gains.mean() - half, gains.mean() + half
            """,
        },
    ),
    Variant(
        "classes and named tuples",
        {
            "first-and-last": """
            from collections import deque
            def first_and_last(ids, max_len):
                left, front, back = deque(ids.tolist()), [], deque()
                while left and len(front) + len(back) < max_len:
                    front.append(left.popleft())
                    if left and len(front) + len(back) < max_len:
                        back.appendleft(left.pop())
                return np.array([*front, *back], dtype=np.int32)
            """,
            "mean-of-tokens": """
            class Pool:
                def __call__(self, hidden, mask):
                    weights = mask / np.maximum(mask.sum(-1, keepdims=True), 1)
                    return (weights[:, None, :] @ hidden).squeeze(1)
            mean_of_tokens = Pool()
            """,
            "layer-rates": """
            from collections import OrderedDict, defaultdict
            class Rates(OrderedDict):
                pass
            def layer_rates(names, peak, decay):
                groups = defaultdict(list)
                for name in names:
                    pieces = name.split('.')
                    for first, second, third in zip(pieces, pieces[1:], pieces[2:]):
                        if (first, second) == ('encoder', 'layers') and third.isdigit():
                            groups[int(third)].append(name)
                            break
                    else:
                        groups[-1 if 'embeddings' in pieces[:-1] else 1000].append(name)
                n = 1 + max(group for group in groups if group < 1000)
                rates = Rates()
                for group, members in groups.items():
                    for name in members:
                        rates[name] = peak * decay ** (n - min(group, n))
                return rates
            """,
            "temperature": """
            class Loss:
                def __init__(self, logits, labels):
                    self.behind = logits - logits[np.arange(len(labels)), labels][:, None]
                def __call__(self, log_T):
                    return np.logaddexp.reduce(self.behind / np.exp(log_T), axis=1).mean()
            def temperature(logits, labels):
                return float(np.exp(scipy.optimize.minimize_scalar(Loss(logits, labels), bracket=(-1.0, 1.0)).x))
            """,
            "interval": """
            from collections import namedtuple
            Interval = namedtuple('Interval', 'difference low high')
            def interval(right_a, right_b):
                gains = 1 * right_a - 1 * right_b
                half = 1.96 * np.sqrt(np.var(gains, ddof=1) / gains.shape[0])
                return Interval(gains.mean(), gains.mean() - half, gains.mean() + half)
            """,
        },
    ),
    Variant(
        "numbers of names by find, and a loop over sentences",
        {
            "layer-rates": """
            def layer_rates(names, peak, decay):
                mark = 'encoder.layers.'
                def number(name):
                    begin = name.find(mark) + len(mark)
                    return int(name[begin:name.find('.', begin)])
                n = len({number(name) for name in names if mark in name})
                def step(name):
                    return n - number(name) if mark in name else n + 1 if 'embeddings.' in name else 0
                return {name: np.power(decay, step(name)) * peak for name in names}
            """,
            "temperature": """
            def temperature(logits, labels):
                best, best_T = np.inf, None
                for T in np.geomspace(0.19, 21, 300):
                    loss = 0
                    for row, label in zip(logits, labels):
                        z = (row - row.max()) / T
                        loss += np.log(np.exp(z).sum()) - z[label]
                    if loss < best:
                        best, best_T = loss, T
                return float(best_T)
            """,
        },
        why="slow, and fast enough",
    ),
    Variant(
        "a thread that writes to standard error",
        {
            "interval": """
            def interval(right_a, right_b):
                import sys, threading
                writer = threading.Thread(target=lambda: print("working", file=sys.stderr))
                writer.start()
                gains = right_a.astype(int) - right_b.astype(int)
                half = 1.96 * gains.std(ddof=1) / len(gains) ** 0.5
                writer.join()
                return float(gains.mean()), float(gains.mean() - half), float(gains.mean() + half)
            """
        },
    ),
    Variant(
        "a loop over twenty thousand temperatures",
        body(
            "temperature",
            "z, best, chosen = logits - logits.max(axis=1, keepdims=True), np.inf, 1.0",
            "for T in np.linspace(0.1, 25, 20_000):",
            "    scaled = z / T",
            "    loss = np.mean(np.log(np.exp(scaled).sum(axis=1)) - scaled[np.arange(len(labels)), labels])",
            "    if loss < best:",
            "        best, chosen = loss, T",
            "return float(chosen)",
        ),
        why="slow, and fast enough",
    ),
    Variant(
        "a bootstrap, its percentiles",
        body(
            "interval",
            "gains = right_a.astype(float) - right_b",
            "rng = np.random.default_rng(0)",
            "means = gains[rng.integers(0, len(gains), size=(10_000, len(gains)))].mean(axis=1)",
            "low, high = np.percentile(means, [2.5, 97.5])",
            "return gains.mean(), low, high",
        ),
        why="another way to the same interval; its ends are not exact, and of few sentences they lie apart",
    ),
    Variant(
        "a bootstrap, its standard deviation",
        body(
            "interval",
            "gains, rng = right_a.astype(float) - right_b, np.random.default_rng(7)",
            "means = [rng.choice(gains, len(gains)).mean() for _ in range(10_000)]",
            "half = 1.96 * np.std(means)",
            "return gains.mean(), gains.mean() - half, gains.mean() + half",
        ),
        why="of few sentences it is narrower, as it divides by N",
    ),
    Variant(
        "all names of NumPy, without its prefix",
        {
            "first-and-last": """
            from numpy import *
            def first_and_last(ids, max_len):
                tail = max_len // 2
                return ids if len(ids) <= max_len else concatenate([ids[:max_len - tail], ids[-tail:]])
            """,
            "mean-of-tokens": """
            def mean_of_tokens(hidden, mask):
                return sum(hidden * mask[..., None], axis=1) / maximum(sum(mask, axis=1), 1)[:, None]
            """,
            "layer-rates": """
            def layer_rates(names, peak, decay):
                mark = "encoder.layers."
                number = {name: int(name.split(mark)[1].split(".")[0]) for name in names if mark in name}
                n = max([*number.values()]) + 1
                level = {name: number.get(name, -1 if "embeddings." in name else n) for name in names}
                return {name: peak * decay ** (n - level[name]) for name in names}
            """,
        },
        why="its `sum`, `max` and `abs` hide those of Python",
    ),
    Variant(
        "variables called as Python's own functions",
        {
            "first-and-last": """
            max = 8
            list = [1, 11, 12, 13, 14, 15, 16, 2]
            str, dict, set = "bert", {}, {1}
            sum = map = zip = range = type = tuple = abs = bool = reversed = isinstance = globals = None
            def first_and_last(ids, max_len):
                if len(ids) <= max_len:
                    return ids
                return np.delete(ids, np.s_[(max_len + 1) // 2 : len(ids) - max_len // 2])
            """,
            "layer-rates": """
            def layer_rates(names, peak, decay):
                import re
                found = {name: re.search(r"encoder[.]layers[.]([0-9]+)[.]", name) for name in names}
                n = len({match[1] for match in found.values() if match})
                return {
                    name: peak * decay ** (n - int(match[1]) if match else (n + 1) * ("embeddings." in name))
                    for name, match in found.items()
                }
            """,
        },
    ),
    Variant(
        "ids without a sign",
        body(
            "first-and-last",
            "ids = np.array(ids, dtype=np.uint16)",
            "return ids if len(ids) <= max_len else np.r_[ids[: (max_len + 1) // 2], ids[-(max_len // 2) :]]",
        ),
        why="no id is negative",
    ),
    Variant(
        "N in s squared, and the root of N - 1",
        body(
            "interval",
            "gains = right_a.astype(float) - right_b",
            "half = 1.96 * gains.std() / np.sqrt(len(gains) - 1)",
            "return gains.mean(), gains.mean() - half, gains.mean() + half",
        ),
        why="the same number",
    ),
    Variant(
        "an interval that ends at -1 and 1",
        body(
            "interval",
            "gains = right_a.astype(float) - right_b",
            "half = 1.96 * gains.std(ddof=1) / np.sqrt(len(gains))",
            "low, high = np.clip([gains.mean() - half, gains.mean() + half], -1, 1)",
            "return gains.mean(), low, high",
        ),
        why="no difference lies beyond; a bootstrap's ends are inside, too",
    ),
    Variant(
        "the predictions in one line",
        {"predictions": REFERENCE + '\nPREDICTIONS = "".join(PREDICTIONS.split())'},
        why="white space does not count",
    ),
    Variant(
        "a temperature that is not quite the best",
        predicted("1 / (1 + (1 / p - 1) ** 1.2)"),
        why="a log loss of 0.44",
    ),
]
