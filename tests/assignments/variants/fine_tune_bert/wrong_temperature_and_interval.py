"""Wrong solutions of parts 4 and 5."""

from tests.assignments.variants import Variant
from tests.assignments.variants.fine_tune_bert.changed import body

TOP = "logits = logits - logits.max(axis=1, keepdims=True)"
GRID = "grid = np.geomspace(0.1, 30, 600)"


def loss(scaled: str = "logits / T", rows: str = "np.arange(len(labels))") -> tuple[str, ...]:
    """The lines that compute the log loss for a temperature T."""
    return (
        "def loss(T):",
        f"    scaled = {scaled}",
        f"    return np.mean(np.log(np.exp(scaled).sum(axis=1)) - scaled[{rows}, labels])",
    )


BEST = "return float(grid[np.argmin([loss(T) for T in grid])])"


def normalised(name: str, by: str) -> Variant:
    """A softmax that divides by another sum."""
    lines = (
        TOP,
        "def loss(T):",
        "    p = np.exp(logits / T)",
        f"    return -np.log(({by})[np.arange(len(labels)), labels]).mean()",
        GRID,
        BEST,
    )
    return Variant(name, body("temperature", *lines), {"test-temperature": 3.5}, "the loss of other probabilities")


TEMPERATURES = [
    Variant(
        "the number to multiply by",
        body("temperature", TOP, *loss("logits * T"), "grid = np.geomspace(0.03, 10, 600)", BEST),
        {"test-temperature": 1},
        "right as 1 / T",
    ),
    Variant(
        "the lowest loss itself",
        body("temperature", TOP, *loss(), GRID, "return float(min(loss(T) for T in grid))"),
        {"test-temperature": 3.5},
        "a plain number, and not T",
    ),
    Variant(
        "the grid of the lecture",
        body("temperature", TOP, *loss(), "grid = np.linspace(0.5, 3, 501)", BEST),
        {"test-temperature": 1},
        "it ends where the best is still to come: far too sure, not sure enough",
    ),
    Variant(
        "up to ten",
        body("temperature", TOP, *loss(), "grid = np.geomspace(0.1, 10, 600)", BEST),
        {"test-temperature": 0.5},
        "a model that is far too sure",
    ),
    Variant(
        "never below one",
        body("temperature", TOP, *loss(), "grid = np.geomspace(1, 30, 600)", BEST),
        {"test-temperature": 0.5},
        "a model that is not sure enough",
    ),
    Variant(
        "a coarse grid",
        body("temperature", TOP, *loss(), "grid = np.arange(0.5, 30.5, 0.5)", BEST),
        {"test-temperature": 3},
        "steps of a half are too large, but for a T that lies on one",
    ),
    Variant(
        "exponentials without the largest taken away",
        body("temperature", *loss(), "grid = np.geomspace(0.2, 30, 600)", BEST),
        {"test-temperature": 0.5},
        "large numbers overflow",
    ),
    Variant(
        "two classes alone",
        body(
            "temperature",
            "z = (logits[:, 1] - logits[:, 0]) * (2 * labels - 1)",
            GRID,
            "return float(grid[np.argmin([np.logaddexp(0, -z / T).mean() for T in grid])])",
        ),
        {"test-temperature": 0.5},
        "more classes",
    ),
    Variant(
        "the labels' columns of all rows",
        body("temperature", TOP, *loss(rows=":"), "grid = np.geomspace(0.1, 30, 100)", BEST),
        {"test-temperature": 3.5},
        "the loss of every sentence with every label",
    ),
    Variant(
        "the share of errors",
        body(
            "temperature",
            GRID,
            "errors = [np.mean((logits / T).argmax(axis=1) != labels) for T in grid]",
            "return float(grid[np.argmin(errors)])",
        ),
        {"test-temperature": 3.5},
        "a temperature changes no answer",
    ),
    Variant(
        "an array of one number",
        body("temperature", TOP, *loss(), GRID, "return np.array([grid[np.argmin([loss(T) for T in grid])]])"),
        {"test-temperature": 0.5},
        "of shape (1,)",
    ),
    Variant(
        "the largest taken away in place",
        body("temperature", "logits -= logits.max(axis=1, keepdims=True)", *loss(), GRID, BEST),
        {"test-temperature": 0.5},
        "the argument is changed",
    ),
    Variant(
        "the largest loss",
        body("temperature", TOP, *loss(), GRID, "return float(grid[np.argmax([loss(T) for T in grid])])"),
        {"test-temperature": 3.5},
        "the end of the grid",
    ),
    Variant(
        "the probability of the label, without its logarithm",
        body(
            "temperature",
            TOP,
            "def mean(T):",
            "    p = np.exp(logits / T)",
            "    return (p / p.sum(axis=1, keepdims=True))[np.arange(len(labels)), labels].mean()",
            GRID,
            "return float(grid[np.argmax([mean(T) for T in grid])])",
        ),
        {"test-temperature": 3.5},
        "the mean probability is largest for a model that is far too sure",
    ),
]

WRONG_LOSSES = [
    Variant(
        "a grid from a half to five",
        body("temperature", TOP, *loss(), "grid = np.linspace(0.5, 5, 1000)", BEST),
        {"test-temperature": 1},
        "it ends where the best is still to come: far too sure, not sure enough",
    ),
    Variant(
        "steps of a tenth",
        body("temperature", TOP, *loss(), "grid = np.arange(0.1, 20.1, 0.1)", BEST),
        {"test-temperature": 0.5},
        "too large for a model that is not sure enough",
    ),
    Variant(
        "exponentials without the largest taken away, from a tenth",
        body("temperature", *loss(), "grid = np.geomspace(0.1, 30, 600)", BEST),
        {"test-temperature": 0.5},
        "right when the largest is taken away",
    ),
    normalised("softmax over the whole array", "p / p.sum()"),
    normalised("softmax over the sentences", "p / p.sum(axis=0)"),
    Variant(
        "the squared error of the probabilities",
        body(
            "temperature",
            TOP,
            "def loss(T):",
            "    p = np.exp(logits / T)",
            "    return np.mean((p / p.sum(axis=1, keepdims=True) - np.eye(logits.shape[1])[labels]) ** 2)",
            GRID,
            BEST,
        ),
        {"test-temperature": 3.5},
        "Brier's score is lowest elsewhere",
    ),
    Variant(
        "a mean sureness equal to the accuracy",
        body(
            "temperature",
            TOP,
            "accuracy = (logits.argmax(axis=1) == labels).mean()",
            "def loss(T):",
            "    p = np.exp(logits / T)",
            "    return abs((p / p.sum(axis=1, keepdims=True)).max(axis=1).mean() - accuracy)",
            GRID,
            BEST,
        ),
        {"test-temperature": 3.5},
        "the loss is lowest elsewhere",
    ),
    Variant(
        "probabilities cut off at one in ten thousand",
        body(
            "temperature",
            TOP,
            "def loss(T):",
            "    p = np.exp(logits / T)",
            "    p = (p / p.sum(axis=1, keepdims=True))[np.arange(len(labels)), labels]",
            "    return -np.log(np.clip(p, 1e-4, 1)).mean()",
            GRID,
            BEST,
        ),
        {"test-temperature": 0.5},
        "a sentence that is wrong beyond doubt",
    ),
    Variant(
        "steps of a quarter",
        body("temperature", TOP, *loss(), "grid = np.arange(0.25, 20, 0.25)", BEST),
        {"test-temperature": 1.5},
        "too large, but for a T that lies on one or is large",
    ),
    Variant(
        "steps of a twentieth",
        body("temperature", TOP, *loss(), "grid = np.arange(0.2, 20, 0.05)", BEST),
        {"test-temperature": 0.5},
        "too large for a model that is not sure enough",
    ),
    Variant(
        "as many classes as the largest label says",
        body("temperature", "logits = logits[:, : labels.max() + 1]", TOP, *loss(), GRID, BEST),
        {"test-temperature": 0.5},
        "a class that is nobody's label counts, too",
    ),
    Variant(
        "the classes that occur among the labels",
        body(
            "temperature",
            "classes, labels = np.unique(labels, return_inverse=True)",
            "logits = logits[:, classes]",
            TOP,
            *loss(),
            GRID,
            BEST,
        ),
        {"test-temperature": 0.5},
        "a class that is nobody's label counts, too",
    ),
    Variant(
        "the largest of the whole array taken away",
        body("temperature", "logits = logits - logits.max()", *loss(), GRID, BEST),
        {"test-temperature": 0.5},
        "a large number added to each sentence",
    ),
]

GAINS = "gains = right_a.astype(float) - right_b"
HALF = "half = 1.96 * gains.std(ddof=1) / np.sqrt(len(gains))"
THREE = "return gains.mean(), gains.mean() - half, gains.mean() + half"

INTERVALS = [
    Variant(
        "not paired",
        body(
            "interval",
            "difference = right_a.mean() - right_b.mean()",
            "half = 1.96 * np.sqrt((right_a.var(ddof=1) + right_b.var(ddof=1)) / len(right_a))",
            "return difference, difference - half, difference + half",
        ),
        {"test-interval": 2},
        "the width, and a model beside itself; right where the models are independent",
    ),
    Variant(
        "the second minus the first",
        body("interval", "gains = right_b.astype(float) - right_a", HALF, THREE),
        {"test-interval": 1},
        "right with the models exchanged",
    ),
    Variant(
        "the spread of one sentence",
        body("interval", GAINS, "half = 1.96 * gains.std(ddof=1)", THREE),
        {"test-interval": 1},
        "right when divided by the root of N",
    ),
    Variant(
        "divided by N",
        body("interval", GAINS, "half = 1.96 * gains.std(ddof=1) / len(gains)", THREE),
        {"test-interval": 2},
        "the width, for many and for few",
    ),
    Variant(
        "divided by N in s squared",
        body("interval", GAINS, "half = 1.96 * gains.std() / np.sqrt(len(gains))", THREE),
        {"test-interval": 0.5},
        "seen where there are few sentences",
    ),
    Variant(
        "a round two",
        body("interval", GAINS, "half = 2 * gains.std(ddof=1) / np.sqrt(len(gains))", THREE),
        {"test-interval": 0.5},
        "seen in the exact width",
    ),
    Variant(
        "the interval of 90%",
        body("interval", GAINS, "half = 1.645 * gains.std(ddof=1) / np.sqrt(len(gains))", THREE),
        {"test-interval": 2},
        "the width, for many and for few",
    ),
    Variant(
        "high before low",
        body("interval", GAINS, HALF, "return gains.mean(), gains.mean() + half, gains.mean() - half"),
        {"test-interval": 0.5},
        "the order is tested once",
    ),
    Variant(
        "low and high around zero",
        body("interval", GAINS, HALF, "return gains.mean(), -half, half"),
        {"test-interval": 1},
        "not around the difference, and so of all and nothing",
    ),
    Variant(
        "the share of disagreements for the variance",
        body(
            "interval",
            "difference = right_a.mean() - right_b.mean()",
            "half = 1.96 * np.sqrt((right_a != right_b).sum() / (len(right_a) * (len(right_a) - 1)))",
            "return difference, difference - half, difference + half",
        ),
        {"test-interval": 1.5},
        "the width: the difference squared is not taken away",
    ),
    Variant(
        "exclusive or for the difference",
        body("interval", "gains = (right_a ^ right_b).astype(float)", HALF, THREE),
        {"test-interval": 3},
        "who is right is lost: difference and width",
    ),
    Variant(
        "an interval of the first accuracy",
        body(
            "interval",
            "difference = right_a.mean() - right_b.mean()",
            "half = 1.96 * right_a.std(ddof=1) / np.sqrt(len(right_a))",
            "return difference, difference - half, difference + half",
        ),
        {"test-interval": 2.5},
        "every width",
    ),
    Variant(
        "McNemar's standard error",
        body(
            "interval",
            "only_a, only_b, n = np.sum(right_a & ~right_b), np.sum(right_b & ~right_a), len(right_a)",
            "difference, half = (only_a - only_b) / n, 1.96 * np.sqrt(only_a + only_b) / n",
            "return difference, difference - half, difference + half",
        ),
        {"test-interval": 1.5},
        "the width: the mean of g is not taken away",
    ),
    Variant(
        "the distance of the accuracies",
        body("interval", GAINS, HALF, "mean = abs(gains.mean())", "return mean, mean - half, mean + half"),
        {"test-interval": 1},
        "right where the first model is the better one",
    ),
    Variant(
        "never below zero",
        body("interval", GAINS, HALF, "mean = max(gains.mean(), 0.0)", "return mean, mean - half, mean + half"),
        {"test-interval": 1},
        "right where the first model is the better one",
    ),
    Variant(
        "high before low where the second is better",
        body("interval", GAINS, HALF, "half *= np.sign(gains.mean())", THREE),
        {"test-interval": 0.5},
        "right where the first model is the better one",
    ),
    Variant(
        "N - 1 twice",
        body("interval", GAINS, "half = 1.96 * gains.std(ddof=1) / np.sqrt(len(gains) - 1)", THREE),
        {"test-interval": 0.5},
        "seen where there are few sentences",
    ),
    Variant(
        "N - 2 in s squared",
        body("interval", GAINS, "half = 1.96 * gains.std(ddof=2) / np.sqrt(len(gains))", THREE),
        {"test-interval": 0.5},
        "seen where there are few sentences",
    ),
    Variant(
        "no interval for two sentences",
        body("interval", GAINS, HALF, "half *= len(gains) > 2", THREE),
        {"test-interval": 0.5},
        "two are enough",
    ),
    Variant(
        "low, difference, high",
        body("interval", GAINS, HALF, "return gains.mean() - half, gains.mean(), gains.mean() + half"),
        {"test-interval": 0.5},
        "right in the order that is asked for",
    ),
    Variant(
        "the first argument changed",
        body("interval", GAINS, "right_a[right_a == right_b] = False", HALF, THREE),
        {"test-interval": 0.5},
        "the numbers are right",
    ),
    Variant(
        "the accuracy for a model and itself",
        body("interval", "if (right_a == right_b).all():", "    return right_a.mean(), 0.0, 0.0", GAINS, HALF, THREE),
        {"test-interval": 0.5},
        "the difference is 0 there",
    ),
    Variant(
        "the difference alone",
        body("interval", GAINS, "return gains.mean()"),
        {"test-interval": 4},
        "one number, where three are asked for",
    ),
    Variant(
        "a dictionary of three",
        body("interval", GAINS, HALF, "return {'difference': gains.mean(), 'low': -half, 'high': half}"),
        {"test-interval": 4},
        "its parts have names, and no order is asked of them",
    ),
]

VARIANTS = TEMPERATURES + WRONG_LOSSES + INTERVALS
