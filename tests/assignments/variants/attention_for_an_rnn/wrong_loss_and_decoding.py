"""Wrong solutions of parts 5 and 6, in PyTorch."""

from tests.assignments.variants import Variant
from tests.assignments.variants.attention_for_an_rnn.changed import KEPT, body

PICK = "picked = torch.log_softmax(logits, dim=2).gather(2, targets[..., None])[..., 0]"
LOOP = (
    "ids, columns = start, []",
    "for _ in range(max_len):",
    "    logits, state = step(ids, state)",
    "    ids = logits.argmax(dim=1)",
    "    columns.append(ids.tolist())",
    "rows = [list(row) for row in zip(*columns)]",
)
CUT = "return [row[: row.index(end_id) + 1] if end_id in row else row for row in rows]"

LOSSES = [
    Variant(
        "fillers count",
        body("masked-loss", PICK, "return -picked.mean()"),
        {"test-masked-loss": 2},
        "in the mean, beside a short sentence, and alone",
    ),
    Variant(
        "fillers left out of the sum alone",
        body("masked-loss", PICK, "return -(picked * (targets != pad_id)).mean()"),
        {"test-masked-loss": 1.5},
        "the number divided by, which a short sentence shows as well",
    ),
    Variant(
        "the sum",
        body("masked-loss", PICK, "return -(picked * (targets != pad_id)).sum()"),
        {"test-masked-loss": 1.5},
        "right when divided by the number of real tokens",
    ),
    Variant(
        "the sign forgotten",
        body("masked-loss", "real = targets != pad_id", PICK, "return (picked * real).sum() / real.sum().clamp(min=1)"),
        {"test-masked-loss": 1.5},
        "the values",
    ),
    Variant(
        "in bits",
        body(
            "masked-loss",
            "real = targets != pad_id",
            PICK,
            "return -(picked * real).sum() / real.sum().clamp(min=1) / np.log(2)",
        ),
        {"test-masked-loss": 1.5},
        "the values",
    ),
    Variant(
        "a mean of the sentences' means",
        body(
            "masked-loss",
            "real = targets != pad_id",
            PICK,
            "return (-(picked * real).sum(1) / real.sum(1).clamp(min=1)).mean()",
        ),
        {"test-masked-loss": 0.5},
        "sentences of different lengths",
    ),
    Variant(
        "padding id 0, whatever pad_id says",
        body("masked-loss", "real = targets != 0", PICK, "return -(picked * real).sum() / real.sum().clamp(min=1)"),
        {"test-masked-loss": 1},
        "another id",
    ),
    Variant(
        "0 / 0 where there are only fillers",
        body("masked-loss", "real = targets != pad_id", PICK, "return -(picked * real).sum() / real.sum()"),
        {"test-masked-loss": 0.5},
        "NaN",
    ),
    Variant(
        "the logarithm of the softmax",
        body(
            "masked-loss",
            "real = targets != pad_id",
            "picked = torch.softmax(logits, 2).log().gather(2, targets[..., None])[..., 0]",
            "return -picked[real].sum() / real.sum().clamp(min=1)",
        ),
        {"test-masked-loss": 0.5},
        "infinite for large logits",
    ),
    Variant(
        "the logarithm of the softmax plus a little",
        body(
            "masked-loss",
            "real = targets != pad_id",
            "picked = torch.log(torch.softmax(logits, 2) + 1e-9).gather(2, targets[..., None])[..., 0]",
            "return -picked[real].sum() / real.sum().clamp(min=1)",
        ),
        {"test-masked-loss": 0.5},
        "no large logit costs more than 20.7",
    ),
    Variant(
        "of shape (1,)",
        body(
            "masked-loss",
            "real = targets != pad_id",
            PICK,
            "return (-(picked * real).sum() / real.sum().clamp(min=1))[None]",
        ),
        {"test-masked-loss": 0.5},
        "the shape of one number is ()",
    ),
    Variant(
        "a Python number",
        body(
            "masked-loss",
            "real = targets != pad_id",
            PICK,
            "return -(picked * real).sum().item() / max(int(real.sum()), 1)",
        ),
        {"test-masked-loss": 0.5},
        "no gradient",
    ),
    Variant(
        "fillers count, and nothing else",
        body(
            "masked-loss",
            "real = targets == pad_id",
            PICK,
            "return -(picked * real).sum() / real.sum().clamp(min=1)",
        ),
        {"test-masked-loss": 1},
        "right if the loss of every other id is asked for",
    ),
    Variant(
        "a loss for each sentence",
        body(
            "masked-loss",
            "real = targets != pad_id",
            PICK,
            "return -(picked * real).sum(1) / real.sum(1).clamp(min=1)",
        ),
        {"test-masked-loss": 1},
        "right when averaged with the sentences' numbers of tokens",
    ),
    Variant(
        "divided by the number of sentences",
        body("masked-loss", "real = targets != pad_id", PICK, "return -(picked * real).sum() / len(targets)"),
        {"test-masked-loss": 1.5},
        "right when divided by the number of real tokens",
    ),
    Variant(
        "the largest probability, not that of the target",
        body(
            "masked-loss",
            "real = targets != pad_id",
            "picked = torch.log_softmax(logits, dim=2).max(-1).values",
            "return -(picked * real).sum() / real.sum().clamp(min=1)",
        ),
        {"test-masked-loss": 2},
        "the values, and those of large logits",
    ),
    *(
        Variant(
            f"0 / 0 repaired afterwards, by {what}",
            body("masked-loss", "real = targets != pad_id", PICK, f"return {repaired}"),
            {"test-masked-loss": 0.5},
            "the gradient is NaN all the same",
        )
        for what, repaired in [
            ("where", "torch.where(real.any(), -(picked * real).sum() / real.sum(), 0.0)"),
            ("nan_to_num", "(-(picked * real).sum() / real.sum()).nan_to_num(0.0)"),
        ]
    ),
    *(
        Variant(
            name,
            body("masked-loss", *real, PICK, "return -(picked * real).sum() / real.sum().clamp(min=1)"),
            {"test-masked-loss": price},
            why,
        )
        for name, real, price, why in [
            ("ids below pad_id taken for fillers", ["real = targets > pad_id"], 1, "another id"),
            (
                "everything from the first filler on left out",
                ["real = (targets != pad_id).cumprod(1).bool()"],
                1,
                "fillers in front",
            ),
            (
                "fillers taken to stand at the end of the targets",
                ["real = torch.arange(targets.shape[1]) < (targets != pad_id).sum(1, keepdim=True)"],
                1,
                "fillers in front",
            ),
            (
                "the first token of each sentence left out",
                ["logits, targets = logits[:, 1:], targets[:, 1:]", "real = targets != pad_id"],
                1.5,
                "right with a filler in front of each sentence",
            ),
        ]
    ),
    Variant(
        "the loss through NumPy",
        body(
            "masked-loss",
            "log_p, targets = torch.log_softmax(logits, 2).numpy(), targets.numpy()",
            "picked, real = np.take_along_axis(log_p, targets[..., None], 2)[..., 0], targets != pad_id",
            "return torch.tensor(-picked[real].sum() / max(real.sum(), 1))",
        ),
        {"test-masked-loss": 0.5},
        "the values are right, and nothing could be learned: charged once",
    ),
    Variant(
        "the targets of fillers overwritten",
        body(
            "masked-loss",
            "real = targets != pad_id",
            "targets[~real] = 0",
            PICK,
            "return -(picked * real).sum() / real.sum().clamp(min=1)",
        ),
        {"test-masked-loss": 0.5},
        KEPT,
    ),
    Variant(
        "the logits of fillers overwritten",
        body(
            "masked-loss",
            "real = targets != pad_id",
            "logits.data[~real] = 0",
            PICK,
            "return -(picked * real).sum() / real.sum().clamp(min=1)",
        ),
        {"test-masked-loss": 0.5},
        KEPT,
    ),
]

DECODERS = [
    Variant(
        "nothing stops a sentence",
        body("greedy", *LOOP, "return rows"),
        {"test-greedy": 1},
        "what stands after the end token",
    ),
    Variant(
        "the end token left out",
        body("greedy", *LOOP, "return [row[: row.index(end_id)] if end_id in row else row for row in rows]"),
        {"test-greedy": 1},
        "the end token is part of the result",
    ),
    Variant(
        "all stop when the first does",
        body("greedy", *LOOP[:-1], "    if (ids == end_id).any():", "        break", LOOP[-1], CUT),
        {"test-greedy": 1},
        "the others go on",
    ),
    Variant(
        "the start token returned",
        body("greedy", *LOOP, "rows = [[int(a), *row][:max_len] for a, row in zip(start, rows)]", CUT),
        {"test-greedy": 1},
        "right without it",
    ),
    Variant(
        "the state not carried on",
        body("greedy", *LOOP[:2], "    logits, _ = step(ids, state)", *LOOP[3:], CUT),
        {"test-greedy": 1},
        "the state of each step",
    ),
    Variant(
        "one token too many",
        body("greedy", LOOP[0], "for _ in range(max_len + 1):", *LOOP[2:], CUT),
        {"test-greedy": 0.5},
        "where no end comes before",
    ),
    Variant(
        "the least probable token",
        body("greedy", *LOOP[:3], "    ids = logits.argmin(dim=1)", *LOOP[4:], CUT),
        {"test-greedy": 1.5},
        "right with the logits the other way round",
    ),
    Variant(
        "the largest logit along the batch",
        body("greedy", *LOOP[:3], "    ids = logits.argmax(dim=0)", *LOOP[4:], CUT),
        {"test-greedy": 1.5},
        "right with the logits transposed",
    ),
    Variant(
        "the start token returned, and not counted",
        body("greedy", *LOOP, "rows = [[int(a), *row] for a, row in zip(start, rows)]", CUT),
        {"test-greedy": 1},
        "right without it",
    ),
    Variant(
        "begins with token 0",
        body("greedy", "ids, columns = 0 * start, []", *LOOP[1:], CUT),
        {"test-greedy": 1},
        "right if the first step gets the start tokens",
    ),
    Variant(
        "every step reads the start token",
        body("greedy", *LOOP[:2], "    logits, state = step(start, state)", *LOOP[3:], CUT),
        {"test-greedy": 1},
        "right if each step gets the token written last",
    ),
    *(
        Variant(
            name,
            body("greedy", *LOOP[:3], f"    ids = {best}", *LOOP[4:], CUT),
            {"test-greedy": 1.5},
            "one test has negative logits, and token 0 to be written",
        )
        for name, best in [
            ("the largest logit without its sign", "logits.abs().argmax(dim=1)"),
            ("logits below zero cut off", "logits.clamp(min=0).argmax(dim=1)"),
            ("never token 0", "logits[:, 1:].argmax(dim=1) + 1"),
        ]
    ),
    Variant(
        "each sentence alone",
        body(
            "greedy",
            "rows = []",
            "for ids in start.split(1):",
            "    row, now = [], state",
            "    while len(row) < max_len and end_id not in row:",
            "        logits, now = step(ids, now)",
            "        ids = logits.argmax(dim=1)",
            "        row.append(int(ids))",
            "    rows.append(row)",
            "return rows",
        ),
        {"test-greedy": 1},
        "right if each step gets a token for each sentence",
    ),
    Variant(
        "only those that have not ended go on",
        body(
            "greedy",
            "ids, rows, going = start, [[] for _ in start], list(range(len(start)))",
            "for _ in range(max_len):",
            "    logits, state = step(ids, state)",
            "    ids = logits.argmax(dim=1)",
            "    for b, token in zip(going, ids.tolist()):",
            "        rows[b].append(token)",
            "    going = [b for b in going if rows[b][-1] != end_id]",
            "    ids = ids[ids != end_id]",
            "    if not going:",
            "        break",
            "return rows",
        ),
        {"test-greedy": 1},
        "right if each step gets a token for each sentence",
    ),
    Variant(
        "a sentence ends only as long as the end token is written",
        body(
            "greedy",
            "ids, rows, done = start, [[] for _ in start], [False] * len(start)",
            "for _ in range(max_len):",
            "    logits, state = step(ids, state)",
            "    ids = logits.argmax(dim=1)",
            "    for b, token in enumerate(ids.tolist()):",
            "        if not done[b]:",
            "            rows[b].append(token)",
            "        done[b] = token == end_id",
            "    if all(done):",
            "        break",
            "return rows",
        ),
        {"test-greedy": 1},
        "what stands after the end token",
    ),
    Variant(
        "the start tokens overwritten",
        body("greedy", *LOOP[:3], "    ids.copy_(logits.argmax(dim=1))", *LOOP[4:], CUT),
        {"test-greedy": 0.5},
        KEPT,
    ),
    Variant(
        "all stop when the last sentence does",
        body("greedy", *LOOP[:-1], "    if ids[-1] == end_id:", "        break", LOOP[-1], CUT),
        {"test-greedy": 1},
        "the others go on",
    ),
    *(
        Variant(
            f"{what} deleted",
            body("greedy", *LOOP, f"rows = [{row} for row in rows]", CUT),
            {"test-greedy": 0.5},
            "a token may be written again",
        )
        for what, row in [
            ("repeated tokens", "list(dict.fromkeys(row))"),
            ("tokens like the one before", "[a for i, a in enumerate(row) if i == 0 or row[i - 1] != a]"),
        ]
    ),
    Variant(
        "a start token that is end_id ends",
        body("greedy", *LOOP, "rows = [[] if a == end_id else row for a, row in zip(start, rows)]", CUT),
        {"test-greedy": 0.5},
        "one sentence begins with it",
    ),
    Variant(
        "the last token replaced by end_id",
        body("greedy", *LOOP, "rows = [[*row[:-1], end_id] for row in rows]", CUT),
        {"test-greedy": 0.5},
        "where no end comes before",
    ),
    Variant(
        "a loop without max_len",
        body(
            "greedy",
            LOOP[0],
            "while not columns or not (torch.tensor(columns) == end_id).any(0).all():",
            *LOOP[2:],
            "rows = [row[:max_len] for row in rows]",
            CUT,
        ),
        {"test-greedy": 0.5},
        "endless where no end comes",
    ),
    Variant(
        "one token too few",
        body("greedy", LOOP[0], "for _ in range(max_len - 1):", *LOOP[2:], CUT),
        {"test-greedy": 0.5},
        "where no end comes before",
    ),
    Variant(
        "the first token dropped",
        body("greedy", *LOOP, CUT.replace("return [", "return [row[1:] for row in [") + "]"),
        {"test-greedy": 1},
        "right with the first token in front",
    ),
    Variant(
        "a list for each step",
        body("greedy", *LOOP[:-1], "return columns"),
        {"test-greedy": 1},
        "right when transposed, and cut at the end token",
    ),
    Variant(
        "a tuple for each step",
        body("greedy", *LOOP[:-1], "return [tuple(column) for column in columns]"),
        {"test-greedy": 1},
        "right when transposed, and cut at the end token",
    ),
    Variant(
        "a generator",
        body("greedy", *LOOP, CUT.replace("[row[:", "(row[:").replace("in rows]", "in rows)")),
        {"test-greedy": 1},
        "right when made a list",
    ),
    Variant(
        "a tensor, filled up with the end token",
        body(
            "greedy", *LOOP,
            "rows = [row[: row.index(end_id)] if end_id in row else row for row in rows]",
            "return torch.tensor([row + [end_id] * (len(columns) - len(row)) for row in rows])",
        ),
        {"test-greedy": 2},
        "right when made lists, but for what stands after the end token",
    ),
    *(
        Variant(
            f"a step gets {what}",
            body("greedy", *LOOP[:2], f"    logits, state = step({given}, state)", *LOOP[3:], CUT),
            {"test-greedy": 1},
            "a tensor of shape (B,) and dtype int64 is asked for",
        )
        for what, given in [
            ("a list", "ids.tolist()"),
            ("ids of shape (B, 1)", "ids[:, None]"),
            ("ids of dtype int32", "ids.int()"),
        ]
    ),
]  # fmt: skip

VARIANTS = LOSSES + DECODERS
