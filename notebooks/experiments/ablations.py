"""Which parts of the Transformer's recipe matter, and what does a Transformer gain over a recurrent translator?

The first experiment trains the paper's recipe on a small model and changes one thing at a time: no warm-up, no label
smoothing, no dropout, the norm before each sub-layer. Each run has 150 seconds of one processor core and two seeds. One
more run, with one seed, has no warm-up and a third of the rate: was the rate too high, or is it the warm-up that lacks?

The second trains a Transformer as `rnn_attention.py` trains recurrent translators with as many weights: 300 seconds,
three seeds, no dropout, no label smoothing, and the peak of the learning rate and the size of the batches chosen in six
trials of 100 seconds by the loss on the validation pairs.

Data, vocabularies, batches and clock are those of `rnn_attention.py`. Beside the figures a run leaves its greedy
translations of the test sentences. The lecture *Training a translator* tells what came out.
"""

import time
from importlib.metadata import version
from typing import NamedTuple

import torch

from course_lib.batches.pairs import PairBatches
from course_lib.models.transformer import TransformerConfig
from course_lib.torch import Transformer, fused_attention
from course_lib.torch.training.translation import train
from course_lib.training.schedules import warmup_then_inverse_root
from course_lib.training.teacher_forcing import teacher_forcing
from notebooks.experiments import rnn_attention as rnns
from notebooks.experiments.harness import Experiment, Record, main, table

SIZES = {"d_model": 96, "n_layers": 2, "n_heads": 4, "d_ff": 352, "max_len": 128}
PEAKS = (1.5e-3, 3e-3, 6e-3)
SECONDS, MAX_TOKENS = 150, 1200  # of the recipe and its changes
WARMUP = 800  # of the recipe: with d_model 96 the paper's schedule then peaks at 0.0036, after a quarter of the updates


class Run(NamedTuple):
    """One training: of the recipe or a change of it, or without a schedule of its own, as the RNNs are trained.

    A run with a `peak` and a number of `tokens` a batch is a trial of them: shorter, and it translates nothing.
    """

    label: str
    seed: int = 0
    schedule: str = "paper"  # or "no warm-up", "no warm-up, a third", "as the RNNs"
    smoothing: float = 0.1
    dropout: float = 0.1
    pre_norm: bool = False
    peak: float | None = None
    tokens: int | None = None

    @property
    def is_trial(self) -> bool:
        """Whether it serves to choose."""
        return self.peak is not None

    @property
    def name(self) -> str:
        """What the record calls this run."""
        trial = f"trial-{self.peak}-{self.tokens}-" if self.is_trial else ""
        return f"{trial}{self.label}-{self.seed}"

    @property
    def seconds(self) -> float:
        """Of one processor core."""
        if self.label != "transformer":
            return SECONDS
        return rnns.TRIAL_SECONDS if self.is_trial else rnns.SECONDS


RECIPE = Run("recipe")
CHANGES = [
    RECIPE,
    RECIPE._replace(label="no-warm-up", schedule="no warm-up"),
    RECIPE._replace(label="no-smoothing", smoothing=0.0),
    RECIPE._replace(label="no-dropout", dropout=0.0),
    RECIPE._replace(label="pre-norm", pre_norm=True),
]
SLOWER = RECIPE._replace(label="no-warm-up-a-third", schedule="no warm-up, a third")
TRANSFORMER = Run("transformer", schedule="as the RNNs", smoothing=0.0, dropout=0.0)
TRIALS = [TRANSFORMER._replace(peak=peak, tokens=tokens) for peak in PEAKS for tokens in rnns.TOKENS]
RUNS = table(
    [
        *TRIALS,
        *(TRANSFORMER._replace(seed=seed) for seed in (0, 1, 2)),
        *(run._replace(seed=seed) for seed in (0, 1) for run in CHANGES),
        SLOWER,
    ]
)


def measure(run: Run, record: Record) -> dict:
    """Train, translate, and return what was measured."""
    data = rnns.prepared()
    sizes = {**SIZES, "dropout": run.dropout, "pre_norm": run.pre_norm}
    rate, peak, tokens = plan(run, record)
    torch.manual_seed(run.seed)
    model = Transformer(TransformerConfig(rnns.VOCABULARY, rnns.VOCABULARY, **sizes), fused_attention)
    batches = PairBatches(data.train.sources, data.train.targets, tokens, seed=run.seed)
    held_out = PairBatches(data.validation.sources, data.validation.targets, 5000, seed=None)
    history = train(
        model,
        batches.epoch,
        held_out,
        rate=rate,
        smoothing=run.smoothing,
        max_norm=rnns.MAX_NORM,
        seconds=run.seconds,
        validate_every=250,
        seed=run.seed,
        clock=time.process_time,
    )
    if not run.is_trial:
        record.keep(run.name, rnns.translations(model, data))
    whole = history.loss[: len(history.loss) // 50 * 50].reshape(-1, 50)
    return {
        "peak": peak,
        "tokens": tokens,
        "parameters": sum(p.numel() for p in model.parameters()),
        **rnns.course_of(history, len(batches)),
        "loss_of_50_updates": [round(float(loss), 4) for loss in whole.mean(axis=1)],
        "confidence": round(confidence(model, held_out), 4),
        "version": version("torch"),
    }


def plan(run: Run, record: Record):
    """The rate as a function of the step, its peak, and the tokens of a batch."""
    if run.schedule == "as the RNNs":
        peak, tokens = (run.peak, run.tokens) if run.is_trial else rnns.chosen(TRIALS, record)
        return lambda step: rnns.rate(step, peak), peak, tokens
    skipped = WARMUP - 1 if run.schedule.startswith("no warm-up") else 0
    share = 1 / 3 if run.schedule.endswith("a third") else 1.0
    # without a warm-up the peak's rate from the first update to the one where the warm-up would have reached it
    return (
        lambda step: share * warmup_then_inverse_root(max(step, skipped), SIZES["d_model"], WARMUP),
        share * warmup_then_inverse_root(WARMUP - 1, SIZES["d_model"], WARMUP),
        MAX_TOKENS,
    )


@torch.inference_mode()
def confidence(model, batches) -> float:
    """The mean probability of the token that the model holds for the most probable; the accuracy, if it is honest."""
    total = n_tokens = 0
    for batch in batches:
        source, inputs, labels = map(torch.as_tensor, teacher_forcing(batch))
        largest = model(source, inputs).logits.softmax(-1).amax(-1)
        total += float(largest[labels != 0].double().sum())
        n_tokens += int((labels != 0).sum())
    return total / n_tokens


EXPERIMENT = Experiment(__doc__, RUNS, measure, Record.of(__file__), "recipe")

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
