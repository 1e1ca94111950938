"""Wrong solutions of parts 1 to 3."""

from tests.assignments.variants import Variant
from tests.assignments.variants.fine_tune_bert.changed import body

SHORT = ("if len(ids) <= max_len:", "    return ids")
ENDS = "return np.concatenate([ids[:head], ids[len(ids) - (max_len - head) :]])"

TEXTS = [
    Variant(
        "the beginning alone",
        body("first-and-last", "return ids[:max_len]"),
        {"test-first-and-last": 2.5},
        "no text that is cut is right, nor its last token; short texts are",
    ),
    Variant(
        "the beginning, and [SEP]",
        body("first-and-last", *SHORT, "return np.append(ids[: max_len - 1], ids[-1])"),
        {"test-first-and-last": 2},
        "short texts, and the special tokens of those that are cut, are right",
    ),
    Variant(
        "the end alone",
        body("first-and-last", "return ids[-max_len:]"),
        {"test-first-and-last": 2.5},
        "no text that is cut is right, nor its first token",
    ),
    Variant(
        "the special tokens not counted",
        body(
            "first-and-last",
            "inner = ids[1:-1]",
            "if len(inner) > max_len:",
            "    head = (max_len + 1) // 2",
            "    inner = np.concatenate([inner[:head], inner[len(inner) - (max_len - head) :]])",
            "return np.concatenate([ids[:1], inner, ids[-1:]])",
        ),
        {"test-first-and-last": 2},
        "two ids too many, in all that is cut",
    ),
    Variant(
        "of an odd number, the end gets one more",
        body("first-and-last", *SHORT, "head = max_len // 2", ENDS),
        {"test-first-and-last": 0.5},
        "right where the number is even",
    ),
    Variant(
        "of an odd number, one is lost",
        body("first-and-last", *SHORT, "half = max_len // 2", "return np.concatenate([ids[:half], ids[-half:]])"),
        {"test-first-and-last": 0.5},
        "right where the number is even",
    ),
    Variant(
        "a short text twice",
        body("first-and-last", "tail = max_len // 2", "return np.concatenate([ids[: max_len - tail], ids[-tail:]])"),
        {"test-first-and-last": 0.5},
        "of a text that is shorter than max_len, both ends overlap",
    ),
    Variant(
        "short texts filled up",
        body(
            "first-and-last",
            "if len(ids) <= max_len:",
            "    return np.pad(ids, (0, max_len - len(ids)))",
            "head = (max_len + 1) // 2",
            ENDS,
        ),
        {"test-first-and-last": 0.5},
        "what is short should stay as it is",
    ),
    Variant(
        "the middle",
        body(
            "first-and-last",
            *SHORT,
            "begin = (len(ids) - max_len) // 2",
            "return ids[begin : begin + max_len]",
        ),
        {"test-first-and-last": 2.5},
        "neither end",
    ),
    Variant(
        "written into the argument",
        body(
            "first-and-last",
            *SHORT,
            "head, tail = (max_len + 1) // 2, max_len // 2",
            "ids[head:max_len] = ids[-tail:].copy()",
            "return ids[:max_len]",
        ),
        {"test-first-and-last": 0.5},
        "the argument is changed",
    ),
    Variant(
        "a text that ends with the first [SEP]",
        body("first-and-last", "ids = ids[: list(ids).index(ids[-1]) + 1]", *SHORT, "head = (max_len + 1) // 2", ENDS),
        {"test-first-and-last": 0.5},
        "right where [SEP] stands at the end alone",
    ),
    Variant(
        "no id twice",
        body(
            "first-and-last",
            *SHORT,
            "head = (max_len + 1) // 2",
            "kept = [*ids[:head], *ids[len(ids) - (max_len - head) :]]",
            "return np.array(list(dict.fromkeys(kept)))",
        ),
        {"test-first-and-last": 0.5},
        "right where no id stands at both ends",
    ),
]

OFF = [
    Variant(
        "one id too many is let through",
        body("first-and-last", "if len(ids) <= max_len + 1:", "    return ids", "head = (max_len + 1) // 2", ENDS),
        {"test-first-and-last": 1},
        "a text of max_len + 1 ids is not cut",
    ),
    Variant(
        "the special tokens are 1 and 2",
        body(
            "first-and-last",
            *SHORT,
            "found = np.concatenate([ids[: (max_len + 1) // 2], ids[-(max_len // 2) :]])",
            "return np.array([1, *found[1:-1], 2])",
        ),
        {"test-first-and-last": 1},
        "right with those of the text",
    ),
    Variant(
        "the inner ids from their end, none of them",
        body(
            "first-and-last",
            *SHORT,
            "inner, tail = ids[1:-1], max_len // 2 - 1",
            "return np.concatenate([ids[:1], inner[: (max_len + 1) // 2 - 1], inner[-tail:], ids[-1:]])",
        ),
        {"test-first-and-last": 0.5},
        "[-0:] is everything: max_len 2 and 3",
    ),
    Variant(
        "ids as floats",
        body(
            "first-and-last",
            "kept = np.zeros(min(len(ids), max_len))",
            "tail = len(kept) // 2",
            "kept[: len(kept) - tail], kept[len(kept) - tail :] = ids[: len(kept) - tail], ids[len(ids) - tail :]",
            "return kept",
        ),
        {"test-first-and-last": 1},
        "right as integers",
    ),
]

MEANS = [
    Variant(
        "two texts alone",
        body(
            "mean-of-tokens",
            "means = np.zeros((2, hidden.shape[2]))",
            "for b in range(2):",
            "    if mask[b].any():",
            "        means[b] = hidden[b, mask[b]].mean(axis=0)",
            "return means",
        ),
        {"test-mean-of-tokens": 1.5},
        "right for a batch of two",
    ),
    Variant(
        "two numbers for each token alone",
        body(
            "mean-of-tokens",
            "real = np.stack([mask, mask], axis=-1)",
            "return (hidden * real).sum(axis=1) / np.maximum(real.sum(axis=1), 1)",
        ),
        {"test-mean-of-tokens": 1.5},
        "right for vectors of two numbers",
    ),
    Variant(
        "axes of one squeezed away",
        body(
            "mean-of-tokens",
            "total = mask[:, None].astype(float) @ hidden",
            "return np.squeeze(total / np.maximum(mask.sum(axis=1), 1)[:, None, None])",
        ),
        {"test-mean-of-tokens": 0.5},
        "one number for each token",
    ),
    Variant(
        "a text of one token gives zeros",
        body(
            "mean-of-tokens",
            "count = mask.sum(axis=1, keepdims=True)",
            "return np.where(count > 1, (hidden * mask[..., None]).sum(axis=1) / np.maximum(count, 1), 0.0)",
        ),
        {"test-mean-of-tokens": 0.5},
        "right for longer texts",
    ),
    Variant(
        "tokens known by their vectors",
        body(
            "mean-of-tokens",
            "real = hidden * mask[..., None]",
            "return real.sum(axis=1) / np.maximum((real != 0).any(axis=-1).sum(axis=1), 1)[:, None]",
        ),
        {"test-mean-of-tokens": 0.5},
        "a real token whose vector is zero",
    ),
    Variant(
        "mask not used",
        body("mean-of-tokens", "return hidden.mean(axis=1)"),
        {"test-mean-of-tokens": 2},
        "fillers count, and a text of nothing but fillers has a mean",
    ),
    Variant(
        "fillers left out of the sum alone",
        body("mean-of-tokens", "return (hidden * mask[..., None]).mean(axis=1)"),
        {"test-mean-of-tokens": 1.5},
        "right without fillers, and of no token",
    ),
    Variant(
        "the sum",
        body("mean-of-tokens", "return (hidden * mask[..., None]).sum(axis=1)"),
        {"test-mean-of-tokens": 1.5},
        "right when divided by the number of real tokens",
    ),
    Variant(
        "mask inverted",
        body(
            "mean-of-tokens",
            "real = ~mask[..., None]",
            "return (hidden * real).sum(axis=1) / np.maximum(real.sum(axis=1), 1)",
        ),
        {"test-mean-of-tokens": 1},
        "right with the mask the other way round",
    ),
    Variant(
        "0 / 0 for an empty text",
        body(
            "mean-of-tokens",
            "real = mask[..., None]",
            "return (hidden * real).sum(axis=1) / real.sum(axis=1)",
        ),
        {"test-mean-of-tokens": 0.5},
        "NaN",
    ),
    Variant(
        "a little added to the number divided by",
        body(
            "mean-of-tokens",
            "real = mask[..., None]",
            "return (hidden * real).sum(axis=1) / (real.sum(axis=1) + 0.01)",
        ),
        {"test-mean-of-tokens": 2},
        "no mean is right, with fillers or without",
    ),
    Variant(
        "fillers overwritten",
        body(
            "mean-of-tokens",
            "hidden[~mask] = 0",
            "return hidden.sum(axis=1) / np.maximum(mask.sum(axis=1), 1)[:, None]",
        ),
        {"test-mean-of-tokens": 0.5},
        "the argument is changed",
    ),
    Variant(
        "the first token",
        body("mean-of-tokens", "return hidden[:, 0] * mask.any(axis=1)[:, None]"),
        {"test-mean-of-tokens": 2},
        "the pooling that BERT was pretrained with; not a mean",
    ),
    Variant(
        "the largest numbers",
        body(
            "mean-of-tokens",
            "found = np.where(mask[..., None], hidden, -np.inf).max(axis=1)",
            "return np.where(mask.any(axis=1)[:, None], found, 0.0)",
        ),
        {"test-mean-of-tokens": 2},
        "not a mean",
    ),
    Variant(
        "fillers taken to stand at the end",
        body(
            "mean-of-tokens",
            "means = [text[: real.sum()].mean(axis=0) if real.any() else 0 * text[0]",
            "         for text, real in zip(hidden, mask)]",
            "return np.array(means)",
        ),
        {"test-mean-of-tokens": 1.5},
        "they may stand anywhere",
    ),
    Variant(
        "one mean for the whole batch",
        body(
            "mean-of-tokens",
            "means = [np.average(text, axis=0, weights=real) if real.any() else 0 * text[0]",
            "         for text, real in zip(hidden, mask)]",
            "return np.tile(np.mean(means, axis=0), (len(hidden), 1))",
        ),
        {"test-mean-of-tokens": 2.5},
        "no text has its own, and an empty one gets the others'",
    ),
    Variant(
        "zeros for all where one is empty",
        body(
            "mean-of-tokens",
            "count = mask.sum(axis=1, keepdims=True)",
            "if (count == 0).any():",
            "    return np.zeros((len(hidden), hidden.shape[-1]))",
            "return (hidden * mask[..., None]).sum(axis=1) / count",
        ),
        {"test-mean-of-tokens": 0.5},
        "the other texts of such a batch",
    ),
    Variant(
        "ones for nothing but fillers",
        body(
            "mean-of-tokens",
            "if not mask.any():",
            "    return np.ones_like(hidden[:, 0])",
            "return (hidden * mask[..., None]).sum(axis=1) / np.maximum(mask.sum(axis=1), 1)[:, None]",
        ),
        {"test-mean-of-tokens": 0.5},
        "a batch without any token",
    ),
]

INSIDE = "inside = [name for name in names if 'encoder.layers.' in name]"
NUMBER = f"{INSIDE}; number = {{name: int(name.split('encoder.layers.')[1].split('.')[0]) for name in inside}}"
COUNT = "n = max(number.values()) + 1"
LEVEL = "level = {name: number.get(name, -1 if 'embeddings.' in name else n) for name in names}"


def named(
    name: str,
    inside="'encoder.layers.' in name",
    number="int(name.split('layers.')[1].split('.')[0])",
    n="max(number.values()) + 1",
    low="'embeddings.' in name",
    first="pass",
    loses=0.5,
    why="",
) -> Variant:
    """Rates that are right but for how the names are read."""
    lines = (
        first,
        f"inside = [name for name in names if {inside}]",
        f"number = {{name: {number} for name in inside}}",
        f"n = {n}",
        f"level = {{name: number[name] if name in inside else -1 if {low} else n for name in names}}",
        "return {name: peak * decay ** (n - level[name]) for name in names}",
    )
    return Variant(name, body("layer-rates", *lines), {"test-layer-rates": loses}, why)


RATES = [
    Variant(
        "the uppermost layer at the peak rate",
        body(
            "layer-rates",
            NUMBER,
            COUNT,
            LEVEL,
            "return {name: peak * decay ** max(n - 1 - level[name], 0) for name in names}",
        ),
        {"test-layer-rates": 1},
        "the layers; the embeddings are one step below the lowest of them",
    ),
    Variant(
        "the layers the wrong way round",
        body(
            "layer-rates",
            NUMBER,
            COUNT,
            "steps = {name: n + 1 if 'embeddings.' in name else number.get(name, -1) + 1 for name in names}",
            "return {name: peak * decay ** steps[name] for name in names}",
        ),
        {"test-layer-rates": 1},
        "right with the layers turned round",
    ),
    Variant(
        "divided, not multiplied",
        body("layer-rates", NUMBER, COUNT, LEVEL, "return {name: peak / decay ** (n - level[name]) for name in names}"),
        {"test-layer-rates": 1},
        "right with the inverse of the decay",
    ),
    Variant(
        "a step takes away, and does not multiply",
        body(
            "layer-rates",
            NUMBER,
            COUNT,
            LEVEL,
            "return {name: peak * (1 - (1 - decay) * (n - level[name])) for name in names}",
        ),
        {"test-layer-rates": 1.5},
        "the layers, and the step to the embeddings; the order of the layers is right",
    ),
    Variant(
        "the embeddings like the lowest layer",
        body(
            "layer-rates",
            NUMBER,
            COUNT,
            "steps = {name: n if 'embeddings.' in name else n - number.get(name, n) for name in names}",
            "return {name: peak * decay ** steps[name] for name in names}",
        ),
        {"test-layer-rates": 0.5},
        "the embeddings",
    ),
    Variant(
        "the embeddings like the head",
        body(
            "layer-rates",
            NUMBER,
            COUNT,
            "return {name: peak * decay ** (n - number.get(name, n)) for name in names}",
        ),
        {"test-layer-rates": 0.5},
        "the embeddings",
    ),
    Variant(
        "the head one step down",
        body(
            "layer-rates",
            NUMBER,
            COUNT,
            LEVEL,
            "return {name: peak * decay ** max(n - level[name], 1) for name in names}",
        ),
        {"test-layer-rates": 0.5},
        "the head",
    ),
    Variant(
        "the head forgotten",
        body(
            "layer-rates",
            NUMBER,
            COUNT,
            LEVEL,
            "return {name: peak * decay ** (n - level[name]) for name in names if level[name] < n}",
        ),
        {"test-layer-rates": 0.5},
        "the head has no rate",
    ),
    Variant(
        "one digit of the number",
        body(
            "layer-rates",
            INSIDE,
            "number = {name: int(name.split('encoder.layers.')[1][0]) for name in inside}",
            COUNT,
            LEVEL,
            "return {name: peak * decay ** (n - level[name]) for name in names}",
        ),
        {"test-layer-rates": 0.5},
        "more than ten layers",
    ),
    Variant(
        "always six layers",
        body(
            "layer-rates", NUMBER, "n = 6", LEVEL, "return {name: peak * decay ** (n - level[name]) for name in names}"
        ),
        {"test-layer-rates": 1},
        "models of other sizes; the steps between the layers are right",
    ),
    Variant(
        "the layers counted in the order of the names",
        body(
            "layer-rates",
            INSIDE,
            "parts = list(dict.fromkeys(name.split('encoder.layers.')[1].split('.')[0] for name in inside))",
            "n = len(parts)",
            "level = {}",
            "for name in names:",
            "    if 'encoder.layers.' in name:",
            "        level[name] = parts.index(name.split('encoder.layers.')[1].split('.')[0])",
            "    else:",
            "        level[name] = -1 if 'embeddings.' in name else n",
            "return {name: peak * decay ** (n - level[name]) for name in names}",
        ),
        {"test-layer-rates": 0.5},
        "right if the names come from below",
    ),
    Variant(
        "the peak forgotten",
        body("layer-rates", NUMBER, COUNT, LEVEL, "return {name: decay ** (n - level[name]) for name in names}"),
        {"test-layer-rates": 1},
        "right when multiplied by the peak",
    ),
    named("`layers.` anywhere in the name", inside="'layers.' in name", why="a head with layers of its own"),
    named("`.embeddings.` with a dot in front", low="'.embeddings.' in name", why="with nothing in front of the names"),
    named("embeddings known by `bert.`", low="name.startswith('bert.embeddings.')", why="something else in front"),
    named("embeddings known by `embed`", low="'embed' in name", why="a head with `embed` in its name"),
    named("the fourth piece of the name", number="int(name.split('.')[3])", why="something else, or nothing, in front"),
    named(
        "the first number in the name",
        inside="any(map(str.isdigit, name.split('.')))",
        number="next(int(piece) for piece in name.split('.') if piece.isdigit())",
        loses=1,
        why="a head with a number in its name, and a number in front",
    ),
    named(
        "the first number in a layer's name",
        number="int(next(piece for piece in name.split('.') if piece.isdigit()))",
        why="a number in front",
    ),
    Variant(
        "the levels that are there counted",
        body(
            "layer-rates",
            NUMBER,
            COUNT,
            LEVEL,
            "steps = sorted(set(level.values()), reverse=True)",
            "return {name: peak * decay ** steps.index(level[name]) for name in names}",
        ),
        {"test-layer-rates": 0.5},
        "layers without a head",
    ),
    named(
        "the levels counted, less that of the embeddings",
        n="len({number.get(name, -1) for name in names if name in number or 'embeddings.' in name}) - 1",
        why="layers without embeddings",
    ),
    named("the weights counted, not the layers", n="len(inside)", loses=1, why="the layers; the steps are right"),
    named("the names sorted in place", first="names.sort()", why="the argument is changed"),
    named(
        "the names taken off their list",
        first="names, taken = [], names\n    while taken:\n        names.append(taken.pop())",
        why="the argument is changed",
    ),
]

VARIANTS = TEXTS + OFF + MEANS + RATES
