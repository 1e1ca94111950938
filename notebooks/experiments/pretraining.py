"""Why does a small BERT stay for so long at the loss of who knows no context, and what ends it?

A masked language model begins with what each token's share in the text tells: the unigram entropy. There many
trainings of a small BERT from nothing stay, for thousands of updates. Here the model and the reviews of
*pretrain_bert.py* get 300 updates, a minute of one core, from several starts:

- `plain`: BERT's own, normal numbers of deviation 0.02 and biases of 0;
- `wide`: matrices of deviation 1 / sqrt(inputs), as wide as keeps the size of what goes through them;
- `places`: the four heads of the first layer look at the token before, the one behind, and those two away;
- `shares`: the output's bias is the logarithm of each token's share;
- `vectors`: the tokens' vectors are those of counts.

The last four together are `bert_start`; `all but places` is `bert_start` without places. In `wide, undirected`
positions are sinusoids and tokens nearly silent beside them, but no head is turned to a distance. The block normalises
before its sub-layers; `post-norm` is in the paper's order, after them. The architecture is BERT's throughout: a start
is numbers and nothing else.

The peak rate is 2e-3, after a warm-up of 100 updates; starts that stay where they are with it get a higher
one as well. There is one seed. Beside the loss of the last arm stands, for each layer, the largest weight that a head
has at distance 1.
"""

from importlib.metadata import version
from typing import NamedTuple

import numpy as np
import torch

from course_lib.batches.masked import MaskedBatches
from course_lib.masks import padding_mask
from course_lib.models.bert_start import OFFSETS, TABLE_STD, bert_start
from course_lib.torch import BertForMaskedLM, fused_attention, set_state
from course_lib.torch.training import loop, objectives
from notebooks.experiments import _pretraining as recipe
from notebooks.experiments.harness import Experiment, Record, main, table

CORPUS, UPDATES, WARMUP, EVERY = "reviews", 300, 100, 50
PEAK, HIGHER = 2e-3, 4e-3
ARMS = {
    "plain": (),
    "plain, post-norm": (),
    "wide": ("wide",),
    "places": ("places",),
    "wide, places": ("wide", "places"),
    "wide, places, shares": ("wide", "places", "shares"),
    "all": ("wide", "places", "shares", "vectors"),
    "all, post-norm": ("wide", "places", "shares", "vectors"),
    "all but places": ("wide", "shares", "vectors"),
    "wide, undirected": ("wide", "places"),
}


class Run(NamedTuple):
    """One training of an arm."""

    arm: str
    seed: int
    peak: float
    updates: int = UPDATES

    @property
    def name(self) -> str:
        """What the record calls this run."""
        return f"{self.arm}, {self.peak:g}"

    @property
    def seconds(self) -> float:
        """About, of one processor core."""
        return 0.18 * self.updates


RUNS = table(
    [
        *(Run(arm, 0, PEAK) for arm in ARMS),
        *(Run(arm, 0, HIGHER) for arm in ("plain", "wide", "places")),
    ]
)


def measure(run: Run, record: Record) -> dict:
    """Train from a start, and return the figures."""
    torch.set_flush_denormal(True)  # numbers under 1e-38 take ten times as long, and softmax makes many of them
    try:
        return trained(run)
    finally:
        torch.set_flush_denormal(False)


def started(run: Run, texts) -> BertForMaskedLM:
    """The untrained model of an arm."""
    torch.manual_seed(run.seed)
    config = recipe.config_of(texts, pre_norm="post-norm" not in run.arm)
    model = BertForMaskedLM(config, attention=fused_attention)
    parts = ARMS[run.arm]
    if not parts:
        return model
    shares = recipe.counted(CORPUS).shares if "shares" in parts else None
    vectors = recipe.vectors(CORPUS) if "vectors" in parts else None
    offsets = OFFSETS if "places" in parts else ()
    state = bert_start(config, shares, vectors, offsets, seed=run.seed)
    if run.arm == "wide, undirected":
        random = bert_start(config, shares, vectors, (), seed=run.seed)
        state |= {name: random[name] for name in state if finds_places(name)}
    set_state(model, state if "wide" in parts else narrow(state, config.init_std))
    return model


def finds_places(name: str) -> bool:
    """Whether a weight is one by which the first layer's heads choose where to look."""
    return any(f"layers.0.attention.{part}" in name for part in ("q_", "k_"))


def narrow(state: dict, std: float) -> dict:
    """A start whose matrices have BERT's own deviation, but for those by which the first layer finds places."""
    found = dict(state)
    for name, value in state.items():
        if value.ndim == 2 and not finds_places(name):
            size = TABLE_STD if "embeddings" in name else value.shape[1] ** -0.5
            found[name] = (value * std / size).astype(np.float32)
    return found


def near(model: BertForMaskedLM, batch) -> list[float]:
    """For each layer the largest mean weight that one of its heads has at the token before, or at the one behind."""
    seen = BertForMaskedLM(model.config)  # the fused attention forms no weights
    seen.load_state_dict(model.state_dict())
    with torch.no_grad():
        ids = torch.from_numpy(batch.ids)
        layers = seen.bert(ids, padding_mask(ids, model.config.pad_id), return_layers=True).weights
    beside = [[w.diagonal(offset, -2, -1).mean((0, 2)).max() for offset in (-1, 1)] for w in layers]
    return recipe.rounded(*(max(both) for both in beside))


def trained(run: Run) -> dict:
    """The figures of one training."""
    texts, counts = recipe.prepared(CORPUS), recipe.counted(CORPUS)
    model = started(run, texts)
    batches = MaskedBatches(texts.windows(texts.train), texts.masking(), recipe.BATCH, run.seed)
    tuning, held_out = (recipe.measured_on(texts, part) for part in (texts.tuning, texts.held_out))
    heads = {}

    def looked(step: int) -> None:
        if step % EVERY == 0:
            heads[step] = near(model, tuning[0])

    history = recipe.trained(
        model,
        batches,
        objectives.masked_lm(),
        tuning,
        run,
        run.peak,
        every=EVERY,
        warmup=min(WARMUP, run.updates // 2),
        looked=looked,
    )
    found = loop.evaluate(model, held_out, objectives.masked_lm())
    return {
        "curve": recipe.curve(history),
        "heads": [[step, *found] for step, found in (heads | {run.updates: near(model, tuning[0])}).items()],
        "loss": round(found.nll, 4),
        "right": round(found.accuracy, 4),
        "unigram": round(float(counts.unigram_losses(held_out).mean()), 4),
        "neighbours": round(float(counts.losses(held_out).mean()), 4),
        "blanks": found.n_tokens,
        "seconds": round(float(history.seconds[-1]), 1),
        "torch": version("torch"),
    }


EXPERIMENT = Experiment(__doc__, RUNS, measure, Record.of(__file__), "places")

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
