"""Wrong solutions of parts 1 to 4, in PyTorch."""

from tests.assignments.variants import Variant
from tests.assignments.variants.build_the_transformer.changed import PLACES, SOURCE, TARGET, body, masks

START = "places = torch.arange(length)[:, None]"
ANGLES = "angles = places * 10000 ** (-torch.arange(0, d_model, 2) / d_model)"
WAVES = "return torch.stack([torch.sin(angles), torch.cos(angles)], dim=2).flatten(1)"
REAL = "(ids != pad_id)[:, None]"
CAUSAL = "(places[None] <= places[:, None])"
TOTAL = "total = x + sublayer"
CENTRED = "centred = total - total.mean(-1, keepdim=True)"
VARIANCE = "variance = (centred**2).mean(-1, keepdim=True)"
NORMED = "return centred / torch.sqrt(variance + 1e-5) * gain + bias"

POSITIONS = [
    Variant(
        "sines, then cosines",
        body("positions", START, ANGLES, "return torch.cat([torch.sin(angles), torch.cos(angles)], dim=1)"),
        {"test-positions": 1},
        "right with the features in another order",
    ),
    Variant(
        "sine and cosine swapped",
        body("positions", START, ANGLES, "return torch.stack([torch.cos(angles), torch.sin(angles)], 2).flatten(1)"),
        {"test-positions": 1},
        "right with each pair turned round",
    ),
    Variant(
        "positions begin with 1",
        body("positions", "places = torch.arange(1, length + 1)[:, None]", ANGLES, WAVES),
        {"test-positions": 1},
        "right with every vector one place later",
    ),
    Variant(
        "an angle of its own for every feature",
        body(
            "positions",
            START,
            "angles = places * 10000 ** (-torch.arange(d_model) / d_model)",
            "even = torch.arange(d_model) % 2 == 0",
            "return torch.where(even, torch.sin(angles), torch.cos(angles))",
        ),
        {"test-positions": 2},
        "the waves; feature 1 is no cosine of the position",
    ),
    Variant(
        "the exponent halved",
        body("positions", START, "angles = places * 10000 ** (-torch.arange(d_model // 2) / d_model)", WAVES),
        {"test-positions": 1.5},
        "the waves; features 0 and 1 are right",
    ),
    Variant(
        "1000 in the place of 10000",
        body("positions", START, "angles = places * 1000 ** (-torch.arange(0, d_model, 2) / d_model)", WAVES),
        {"test-positions": 1.5},
        "the waves; features 0 and 1 are right",
    ),
    Variant(
        "2i doubled once more",
        body("positions", START, ANGLES.replace("(-torch", "(-2 * torch"), WAVES),
        {"test-positions": 1.5},
        "the waves; features 0 and 1 are right",
    ),
    Variant(
        "powers of 100",
        body("positions", START, "angles = places / 100.0 ** torch.arange(d_model // 2)", WAVES),
        {"test-positions": 1.5},
        "the waves, but those of four features; features 0 and 1 are right",
    ),
    Variant(
        "times the power",
        body("positions", START, "angles = places * 10000 ** (torch.arange(0, d_model, 2) / d_model)", WAVES),
        {"test-positions": 1.5},
        "the waves; features 0 and 1 are right",
    ),
    Variant(
        "sines alone",
        body("positions", START, ANGLES, "return torch.stack([torch.sin(angles)] * 2, 2).flatten(1)"),
        {"test-positions": 2},
        "the waves, features 0 and 1 among them",
    ),
    Variant(
        "positions of float64",
        body("positions", START, ANGLES.replace("places", "places.double()"), WAVES),
        {"test-positions": 0.5},
        "the sum with float32 is of float64",
    ),
    Variant(
        "positions as an array of NumPy",
        body("positions", START, ANGLES, WAVES + ".numpy()"),
        {"test-positions": 0.5},
        "tensors of the framework",
    ),
    Variant(
        "one axis more",
        body("positions", START, ANGLES, WAVES + "[None]"),
        {"test-positions": 0.5},
        "right without the axis",
    ),
]

MASKS = [
    Variant(
        "True and False swapped in the source's mask",
        masks(source="(ids == pad_id)[:, None]"),
        {"test-masks": 0.5},
        "right when turned round",
    ),
    Variant(
        "True and False swapped in the target's mask",
        masks(target=f"~({TARGET})"),
        {"test-masks": 1},
        "right when turned round",
    ),
    Variant(
        "True and False swapped in both masks",
        masks(source="(ids == pad_id)[:, None]", target=f"~({TARGET})"),
        {"test-masks": 1.5},
        "right when both are turned round; each has its price",
    ),
    Variant(
        "the middle axis missing",
        masks(source="ids != pad_id"),
        {"test-masks": 0.5},
        "right with the axis",
    ),
    Variant(
        "masks of 0 and 1",
        masks(source=f"({SOURCE}).long()", target=f"({TARGET}).float()"),
        {"test-masks": 1},
        "right as booleans; each has its price",
    ),
    Variant(
        "the source's fillers as queries",
        masks(source="(ids != pad_id)[:, :, None]"),
        {"test-masks": 1},
        "right with the axes the other way round",
    ),
    Variant(
        "a token sees those after it",
        masks(target=f"{REAL} & (places[None] >= places[:, None])"),
        {"test-masks": 1},
        "without padding; the fillers are hidden as they should be",
    ),
    Variant(
        "a token does not see itself",
        masks(target=f"{REAL} & (places[None] < places[:, None])"),
        {"test-masks": 1},
        "without padding; the fillers are hidden as they should be",
    ),
    Variant(
        "only fillers hidden",
        masks(target=f"{REAL} & (places[None] == places[None])"),
        {"test-masks": 1.5},
        "without padding; its mask has no row for each query, which has a price",
    ),
    Variant(
        "nothing later hidden",
        masks(target=f"{REAL} & (places[None] >= 0 * places[:, None])"),
        {"test-masks": 1},
        "without padding",
    ),
    Variant(
        "the target's fillers not hidden",
        masks(target=f"{CAUSAL}.expand(len(ids), -1, -1)"),
        {"test-masks": 1},
        "the fillers as keys",
    ),
    Variant("or in the place of and", masks(target=f"{REAL} | {CAUSAL}"), {"test-masks": 1}, "right when taken apart"),
    Variant(
        "or in the place of and, with source_mask",
        masks(target=f"torch.logical_or(source_mask(ids, pad_id), {CAUSAL})"),
        {"test-masks": 1},
        "right when taken apart",
    ),
    Variant(
        "or in the place of and, and a token does not see itself",
        masks(target=f"{REAL} | (places[None] < places[:, None])"),
        {"test-masks": 2},
        "right when taken apart, but for the tokens themselves: two mistakes",
    ),
    Variant(
        "the target's fillers as queries",
        masks(target=f"(ids != pad_id)[:, :, None] & {CAUSAL}"),
        {"test-masks": 1},
        "the fillers as keys",
    ),
    Variant(
        "padding is 0, whatever pad_id says",
        masks(source=SOURCE.replace("pad_id", "0"), target=TARGET.replace("pad_id", "0")),
        {"test-masks": 0.5},
        "another pad_id",
    ),
    Variant(
        "fillers taken to stand at the end",
        masks(
            source="(torch.arange(ids.shape[1]) < (ids != pad_id).sum(1, keepdim=True))[:, None]",
            target="source_mask(ids, pad_id) & (places[None] <= places[:, None])",
            places=PLACES,
        ),
        {"test-masks": 2},
        "fillers stand in front and inside, too, in both masks",
    ),
    Variant(
        "the middle axis missing, which the target's mask allows for",
        masks(source="ids != pad_id", target=f"source_mask(ids, pad_id)[:, None] & {CAUSAL}"),
        {"test-masks": 0.5},
        "right with the axis; the target's mask is right as it is",
    ),
    Variant(
        "the source's fillers as queries, which the target's mask allows for",
        masks(source="(ids != pad_id)[:, :, None]", target=f"source_mask(ids, pad_id).mT & {CAUSAL}"),
        {"test-masks": 1},
        "right with the axes the other way round; the target's mask is right as it is",
    ),
    Variant(
        "True and False swapped in the source's mask, and the target's is made of it",
        masks(source="(ids == pad_id)[:, None]", target=f"source_mask(ids, pad_id) & {CAUSAL}"),
        {"test-masks": 0.5},
        "right when turned round where it is called, too",
    ),
    Variant(
        "True and False swapped, and the target's mask is made of the source's by `or`",
        masks(source="(ids == pad_id)[:, None]", target=f"source_mask(ids, pad_id) | ~{CAUSAL}"),
        {"test-masks": 1.5},
        "right when both are turned round; each has its price",
    ),
    Variant(
        "an axis of the heads, and the target's mask is made of it",
        masks(source="(ids != pad_id)[:, None, None]", target=f"source_mask(ids, pad_id) & {CAUSAL}"),
        {"test-masks": 0.5},
        "right without the axis",
    ),
    Variant(
        "an axis of the heads in both masks",
        masks(source="(ids != pad_id)[:, None, None]", target=f"({TARGET})[:, None]"),
        {"test-masks": 1},
        "right without the axis; each has its price",
    ),
    Variant(
        "masks to be added",
        masks(source=f"({SOURCE}).float().log()", target=f"({TARGET}).float().log()"),
        {"test-masks": 1},
        "right where they are 0; each has its price",
    ),
    Variant(
        "one mask of the target for all sentences",
        masks(target="(places[None] <= places[:, None])"),
        {"test-masks": 1.5},
        "its mask has no axis of the sentences, which has a price; the fillers as keys",
    ),
    Variant(
        "the mask of the first sentence for all",
        masks(target=f"({TARGET})[[0] * len(ids)]"),
        {"test-masks": 1},
        "the fillers as keys",
    ),
    Variant(
        "the target's mask as long as the longest sentence",
        masks(
            places="places = torch.arange(int((ids != pad_id).sum(1).max()))",
            target=(f"(ids != pad_id)[:, None, : len(places)] & {CAUSAL}"),
        ),
        {"test-masks": 0.5},
        "the shape, where every sentence has fillers",
    ),
]

MASKS += [
    Variant(
        "masks as arrays of NumPy",
        masks(source=f"({SOURCE}).numpy()", target=f"({TARGET}).numpy()"),
        {"test-masks": 0.5},
        "tensors of the framework",
    ),
    Variant(
        "ids changed in place",
        masks(target=f"ids.sub_(pad_id).bool()[:, None] & {CAUSAL}"),
        {"test-masks": 0.5},
        "what the function is given",
    ),
    Variant(
        "ten positions at most",
        masks(places="places = torch.arange(10)[: ids.shape[1]]"),
        {"test-masks": 0.5},
        "the shape, of many tokens",
    ),
    Variant(
        "every token sees itself, even a filler",
        masks(target=f"{TARGET} | (places[None] == places[:, None])"),
        {"test-masks": 1},
        "the fillers as keys",
    ),
]

NORMS = [
    Variant(
        "the sublayer not added",
        body("add-and-norm", "total = x", CENTRED, VARIANCE, NORMED),
        {"test-add-and-norm": 0.5},
        "which of two parts is normalised",
    ),
    Variant(
        "1e-3 added to the variance",
        body("add-and-norm", TOTAL, CENTRED, VARIANCE, NORMED.replace("1e-5", "1e-3")),
        {"test-add-and-norm": 0.5},
        "vectors of nearly equal numbers",
    ),
    Variant(
        "x not added",
        body("add-and-norm", "total = sublayer", CENTRED, VARIANCE, NORMED),
        {"test-add-and-norm": 0.5},
        "which of two parts is normalised",
    ),
    Variant(
        "the sublayer normalised, then x added",
        body("add-and-norm", "total = sublayer", CENTRED, VARIANCE, f"{NORMED} + x"),
        {"test-add-and-norm": 1},
        "right if the sum is given as the sublayer",
    ),
    Variant(
        "x normalised, then the sublayer added",
        body("add-and-norm", "total = x", CENTRED, VARIANCE, f"{NORMED} + sublayer"),
        {"test-add-and-norm": 1},
        "right if the sum is given as x",
    ),
    Variant(
        "divided by d - 1",
        body("add-and-norm", TOTAL, CENTRED, "variance = total.var(-1, keepdim=True)", NORMED),
        {"test-add-and-norm": 1},
        "the values; all else is compared with its own",
    ),
    Variant(
        "no root",
        body("add-and-norm", TOTAL, CENTRED, VARIANCE, "return centred / (variance + 1e-5) * gain + bias"),
        {"test-add-and-norm": 1},
        "right when the result is multiplied by the root",
    ),
    Variant(
        "centred, and not divided",
        body("add-and-norm", TOTAL, CENTRED, "return centred * gain + bias"),
        {"test-add-and-norm": 1},
        "right when the result is divided by the root",
    ),
    Variant(
        "no root, and the bias before the gain",
        body("add-and-norm", TOTAL, CENTRED, VARIANCE, "return (centred / (variance + 1e-5) + bias) * gain"),
        {"test-add-and-norm": 1.5},
        "right when the result is multiplied by the root, but for gain and bias",
    ),
    Variant(
        "half of the sum",
        body("add-and-norm", "total = (x + sublayer) / 2", CENTRED, VARIANCE, NORMED),
        {"test-add-and-norm": 0.5},
        "as if four times as much were added to the variance, seen in vectors of nearly equal numbers",
    ),
    *(
        Variant(
            f"the variance {least} at least",
            body("add-and-norm", TOTAL, CENTRED, f"{VARIANCE}.clamp(min={least[:4]})", normed),
            {"test-add-and-norm": 0.5},
            "vectors of nearly equal numbers",
        )
        for least, normed in [
            ("1e-3", NORMED),
            ("1e-5", NORMED),
            ("1e-5 in place of the sum", NORMED.replace(" + 1e-5", "")),
        ]
    ),
    Variant(
        "the mean not taken away",
        body(
            "add-and-norm",
            TOTAL,
            "return total / torch.sqrt(total.var(-1, correction=0, keepdim=True) + 1e-5) * gain + bias",
        ),
        {"test-add-and-norm": 1},
        "the values",
    ),
    Variant(
        "over the tokens, not the features",
        body("add-and-norm", TOTAL, *(line.replace("-1", "1") for line in (CENTRED, VARIANCE)), NORMED),
        {"test-add-and-norm": 1},
        "the values",
    ),
    Variant(
        "one mean for the whole batch",
        body("add-and-norm", TOTAL, "centred = total - total.mean()", "variance = (centred**2).mean()", NORMED),
        {"test-add-and-norm": 1},
        "the values",
    ),
    Variant(
        "nothing added to the variance",
        body("add-and-norm", TOTAL, CENTRED, VARIANCE, NORMED.replace(" + 1e-5", "")),
        {"test-add-and-norm": 0.5},
        "vectors of equal numbers",
    ),
    Variant(
        "1e-5 beside the root",
        body(
            "add-and-norm",
            TOTAL,
            CENTRED,
            VARIANCE,
            "return centred / (torch.sqrt(variance) + 1e-5) * gain + bias",
        ),
        {"test-add-and-norm": 0.5},
        "vectors of nearly equal numbers",
    ),
    Variant(
        "no gain, no bias",
        body("add-and-norm", TOTAL, CENTRED, VARIANCE, "return centred / torch.sqrt(variance + 1e-5)"),
        {"test-add-and-norm": 0.5},
        "gain and bias",
    ),
    Variant(
        "the bias before the gain",
        body("add-and-norm", TOTAL, CENTRED, VARIANCE, "return (centred / torch.sqrt(variance + 1e-5) + bias) * gain"),
        {"test-add-and-norm": 0.5},
        "gain and bias",
    ),
    Variant(
        "the norm of float64",
        body("add-and-norm", "total = x.double() + sublayer", CENTRED, VARIANCE, NORMED),
        {"test-add-and-norm": 0.5},
        "the result is not float32",
    ),
    Variant(
        "mean and variance detached",
        body(
            "add-and-norm",
            TOTAL,
            "centred = total - total.mean(-1, keepdim=True).detach()",
            "variance = (centred**2).mean(-1, keepdim=True).detach()",
            NORMED,
        ),
        {"test-add-and-norm": 0.5},
        "the values are right; the gradients are not theirs",
    ),
]

NETWORKS = [
    Variant("no relu", body("feed-forward", "return (x @ W1.T + b1) @ W2.T + b2"), {"test-feed-forward": 1}, "values"),
    Variant(
        "a relu at the end, too",
        body("feed-forward", "return torch.relu(torch.relu(x @ W1.T + b1) @ W2.T + b2)"),
        {"test-feed-forward": 1},
        "values",
    ),
    Variant(
        "b1 forgotten",
        body("feed-forward", "return torch.relu(x @ W1.T) @ W2.T + b2"),
        {"test-feed-forward": 1},
        "values",
    ),
    Variant(
        "b2 forgotten",
        body("feed-forward", "return torch.relu(x @ W1.T + b1) @ W2.T"),
        {"test-feed-forward": 1},
        "values",
    ),
    Variant(
        "gelu",
        body("feed-forward", "return torch.nn.functional.gelu(x @ W1.T + b1) @ W2.T + b2"),
        {"test-feed-forward": 1},
        "values",
    ),
    Variant(
        "no unit above 6",
        body("feed-forward", "return torch.nn.functional.relu6(x @ W1.T + b1) @ W2.T + b2"),
        {"test-feed-forward": 1},
        "values",
    ),
    Variant(
        "x added",
        body("feed-forward", "return x + torch.relu(x @ W1.T + b1) @ W2.T + b2"),
        {"test-feed-forward": 1},
        "values",
    ),
    Variant(
        "the feed-forward network of float64",
        body("feed-forward", "return (torch.relu(x @ W1.T + b1) @ W2.T + b2).double()"),
        {"test-feed-forward": 0.5},
        "the result is not float32",
    ),
    Variant(
        "the hidden layer detached",
        body("feed-forward", "return torch.relu(x @ W1.T + b1).detach() @ W2.T + b2"),
        {"test-feed-forward": 0.5},
        "the gradients",
    ),
    Variant(
        "axes of length one squeezed away",
        body("feed-forward", "return (torch.relu(x @ W1.T + b1) @ W2.T + b2).squeeze()"),
        {"test-feed-forward": 0.5},
        "the shape",
    ),
]

VARIANTS = POSITIONS + MASKS + NORMS + NETWORKS
