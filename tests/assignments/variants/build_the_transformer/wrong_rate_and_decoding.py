"""Wrong solutions of parts 7 and 8, in PyTorch."""

from tests.assignments.variants import Variant
from tests.assignments.variants.build_the_transformer.changed import body


def rate(name: str, line: str, price: float, why: str) -> Variant:
    """A wrong solution of part 7."""
    return Variant(name, body("learning-rate", f"return {line}"), {"test-learning-rate": price}, why)


RATES = [
    rate("the larger of the two", "d_model**-0.5 * max(step**-0.5, step * warmup**-1.5)", 1, "neither rise nor fall"),
    rate("without d_model", "min(step**-0.5, step * warmup**-1.5)", 1, "the top"),
    rate("times the root of d_model", "d_model**0.5 * min(step**-0.5, step * warmup**-1.5)", 1, "the top"),
    rate("no warm-up", "d_model**-0.5 * step**-0.5", 0.5, "the rise"),
    rate("it never falls", "d_model**-0.5 * step * warmup**-1.5", 0.5, "the fall"),
    rate("constant after the warm-up", "d_model**-0.5 * min(warmup**-0.5, step * warmup**-1.5)", 0.5, "the fall"),
    rate("warmup to the power -1/2", "d_model**-0.5 * min(step**-0.5, step * warmup**-0.5)", 0.5, "the rise"),
    rate("warmup to the power -1", "d_model**-0.5 * min(step**-0.5, step / warmup)", 0.5, "the rise"),
    rate("it falls as 1 / step", "d_model**-0.5 * min(warmup**0.5 / step, step * warmup**-1.5)", 0.5, "the fall"),
]

LOOP = (
    "target = torch.full((source.shape[0], 1), start_id)",
    "for _ in range(max_len):",
    "    ids = decode(source, target)[:, -1].argmax(dim=1)",
    "    target = torch.cat([target, ids[:, None]], dim=1)",
    "rows = target[:, 1:].tolist()",
)
CUT = "return [row[: row.index(end_id) + 1] if end_id in row else row for row in rows]"


def decoding(name: str, *lines: str, price: float, why: str) -> Variant:
    """A wrong solution of part 8."""
    return Variant(name, body("greedy", *lines), {"test-greedy": price}, why)


DECODERS = [
    decoding(
        "the least probable token",
        *LOOP[:2], LOOP[2].replace("argmax", "argmin"), *LOOP[3:], CUT,
        price=1, why="right with the logits the other way round",
    ),
    decoding(
        "the logits of the first place",
        *LOOP[:2], LOOP[2].replace("-1", "0"), *LOOP[3:], CUT,
        price=1, why="right with the places the other way round",
    ),
    decoding(
        "the start token returned",
        *LOOP[:4], "rows = target[:, :-1].tolist()", CUT,
        price=0.5, why="right without it",
    ),
    decoding(
        "the start token returned, and not counted",
        *LOOP[:4], "rows = target.tolist()", CUT,
        price=0.5, why="right without it",
    ),
    decoding("nothing stops a sentence", *LOOP, "return rows", price=1, why="what stands after the end token"),
    decoding(
        "the end token left out",
        *LOOP, "return [row[: row.index(end_id)] if end_id in row else row for row in rows]",
        price=1, why="the end token is part of the result",
    ),
    decoding(
        "all stop when the first does",
        *LOOP[:4], "    if (ids == end_id).any():", "        break", LOOP[4], CUT,
        price=1, why="the others go on",
    ),
    decoding(
        "all cut where the first ends",
        *LOOP, "ends = [row.index(end_id) + 1 for row in rows if end_id in row]",
        "return [row[: min(ends, default=max_len)] for row in rows]",
        price=1, why="the others go on",
    ),
    decoding(
        "one token too many",
        LOOP[0], "for _ in range(max_len + 1):", *LOOP[2:], CUT,
        price=0.5, why="where no end comes before",
    ),
    decoding(
        "one token too few",
        LOOP[0], "for _ in range(max_len - 1):", *LOOP[2:], CUT,
        price=0.5, why="where no end comes before",
    ),
    decoding(
        "decode sees the last token alone",
        "rows, ids = [[] for _ in source], torch.full((source.shape[0], 1), start_id)",
        "for _ in range(max_len):",
        "    ids = decode(source, ids)[:, -1].argmax(dim=1)[:, None]",
        "    rows = [row + [int(i)] for row, i in zip(rows, ids)]",
        CUT,
        price=0.5, why="what decode gets",
    ),
    decoding(
        "decode sees the last four tokens alone",
        *LOOP[:2], LOOP[2].replace("target)", "target[:, -4:])"), *LOOP[3:], CUT,
        price=0.5, why="what decode gets",
    ),
    decoding(
        "sentences that have ended leave the batch, and their sources stay",
        "rows, going = [[] for _ in source], range(len(source))", *LOOP[:2],
        LOOP[2].replace("source", "source[: len(target)]"), LOOP[3],
        "    for b, token in zip(going, ids.tolist()):", "        rows[b].append(token)",
        "    going, target = [b for b in going if rows[b][-1] != end_id], target[ids != end_id]", "return rows",
        price=0.5, why="what decode gets",
    ),
    decoding(
        "the source of the first sentence for all, from the second step on",
        *LOOP[:2], LOOP[2].replace("source,", "source if len(target[0]) == 1 else source[:1].expand_as(source),"),
        *LOOP[3:], CUT,
        price=0.5, why="what decode gets",
    ),
    decoding(
        "0 taken for padding that follows the end",
        LOOP[0], "going = torch.ones(len(source), dtype=bool)", *LOOP[1:3],
        "    ids, going = ids * going, going & (ids != end_id)", *LOOP[3:],
        "return [[token for token in row if token != 0] for row in rows]",
        price=0.5, why="sentences of max_len tokens, of which 0 is one",
    ),
    decoding(
        "a sentence cut where 0 stands",
        *LOOP, f"rows = {CUT[7:]}", "return [row[: row.index(0)] if 0 in row else row for row in rows]",
        price=0.5, why="sentences of max_len tokens, of which 0 is one",
    ),
    decoding(
        "0 is never written",
        *LOOP[:2], LOOP[2].replace("-1]", "-1, 1:]") + " + 1", *LOOP[3:], CUT,
        price=0.5, why="sentences of max_len tokens, of which 0 is one",
    ),
    decoding(
        "the end token in the last place",
        *LOOP, f"rows = {CUT[7:]}", "return [row if row[-1] == end_id else row[:-1] + [end_id] for row in rows]",
        price=0.5, why="where no end comes before",
    ),
    decoding(
        "begins with token 0",
        LOOP[0].replace("start_id", "0"), *LOOP[1:], CUT,
        price=0.5, why="right with the start token in the first place",
    ),
    decoding(
        "cut only where all have ended",
        *LOOP, "if all(end_id in row for row in rows):", f"    {CUT}", "return rows",
        price=1, why="one sentence ends, and another does not",
    ),
    decoding(
        "only logits above 0 count",
        *LOOP[:2], "    logits = decode(source, target)[:, -1]", "    ids = logits.clamp(min=0).argmax(dim=1)",
        *LOOP[3:], CUT,
        price=1, why="right with the logits above 0",
    ),
    decoding(
        "the sentences in the order in which they end",
        LOOP[0], "ended = []", *LOOP[1:4], "    ended += target[ids == end_id, 1:].tolist()",
        "    source, target = source[ids != end_id], target[ids != end_id]", "return ended + target[:, 1:].tolist()",
        price=1, why="which sentence ends where",
    ),
    decoding(
        "all stop when the first of the batch does",
        *LOOP[:4], "    if ids[0] == end_id:", "        break", LOOP[4], CUT,
        price=1, why="the others go on",
    ),
    decoding(
        "the end token is 2, whatever end_id says",
        *LOOP, CUT.replace("end_id", "2"),
        price=1, why="another end token",
    ),
    decoding(
        "the target so far of int32",
        LOOP[0].replace("start_id)", "start_id, dtype=torch.int32)"), *LOOP[1:3],
        "    target = torch.cat([target, ids[:, None].int()], dim=1)", LOOP[4], CUT,
        price=0.5, why="what decode gets",
    ),
    decoding(
        "every token once",
        *LOOP, CUT.replace("return [", "return [list(dict.fromkeys(r)) for r in [") + "]",
        price=0.5, why="sentences of max_len tokens, in which some come again",
    ),
    decoding(
        "a batch of one sentence gets a token less",
        LOOP[0], "for _ in range(max_len - (len(source) == 1)):", *LOOP[2:], CUT,
        price=0.5, why="where no end comes before",
    ),
]  # fmt: skip

VARIANTS = RATES + DECODERS
