"""What does a Vision Transformer have to learn that a convolutional network brings along?

Data: MNIST's digits; and scenes of `course_lib.data.scenes` with three objects, of which those are kept whose red one
is a circle or a cross, and asked is which. Each seed has a training set of its own: 300, 3,000 or 30,000 digits, 8,000
scenes. 1,000 other images are there to choose by, 2,000 to report on.

Arms: a ViT of two layers and 48 features, with patches of 7 x 7 pixels of a digit and 4 x 4 of a scene; and a CNN, the
widest of three stages that has no more parameters. Both see the same images in the same order, 800 batches of 32 (900
of scenes), whatever the size of the set. AdamW; the rate rises over 50 updates and falls over the last half. Each arm
has, for each set, the rate that was best of three on the validation images, with a seed of its own; then three seeds
train with it; where the lowest was best, a lower one is tried. "patient" is a network with four times the updates. An
arm without a network is a support vector machine on the pixels of the digits, whose C and gamma the validation digits
choose.

Why is one ahead? Two changes to 3,000 digits, with trials of their own: "scrambled", all pixels change places, in one
way for all images, so that which pixels are near says nothing; "moved", each digit is shifted by up to two pixels
whenever it is read, so that the data says what the CNN knows from the start. Movement is to be learned, so both
networks also have four times the updates, with trials of their own, for digits that move ("patient moved") and for
those that stay.

The weights of the patient ViTs of scenes are kept; `vision_maps.py` measures where they look. The lecture *Vision*
tells what came out.
"""

import time
from functools import cache
from importlib.metadata import version
from typing import NamedTuple

import numpy as np
import torch
from sklearn.svm import SVC

from course_lib.batches.images import ImageBatch, ImageBatches
from course_lib.checkpoints.weights import write_checkpoint
from course_lib.data import mnist, scenes
from course_lib.models.cnn import CNNConfig
from course_lib.models.vit import ViTConfig
from course_lib.torch import CNN, ViT, fused_attention, get_state
from course_lib.torch.training import loop, objectives, optimizers
from notebooks.experiments._patch_positions import answers, position_grid, without_positions
from notebooks.experiments.harness import Experiment, Record, main, name_of, of_trials, table

COLOUR, ASKED = "red", ("circle", "cross")
DIGITS, SCENES = (300, 3000, 30_000), 8000
CENTRE = {"digits": (0.13, 0.31), "scenes": (0.5, 0.25)}  # about the mean and the deviation of all pixels
IMAGES = {"digits": {"image_size": 28, "n_channels": 1, "n_classes": 10}}
IMAGES["scenes"] = {"image_size": 32, "n_channels": 3, "n_classes": len(ASKED)}
PATCH = {"digits": 7, "scenes": 4}
SIZES = {"d_model": 48, "n_layers": 2, "n_heads": 4, "d_ff": 96, "init_std": 0.1}
VALIDATION, TESTED = 1000, 2000
BATCH, UPDATES, WARMUP, FARTHEST = 32, {"digits": 800, "scenes": 900}, 50, 2
PEAKS, LOWER, SEEDS, TRIAL_SEED = (1e-3, 3e-3, 1e-2), 3e-4, (1, 2, 3), 0
STRENGTHS, REACHES = (1.0, 10.0), (0.005, 0.02)  # of a support vector machine: C, and gamma for pixels in 0 ... 1
SECONDS = {"vit digits": 8, "cnn digits": 17, "vit scenes": 22, "cnn scenes": 22}


class Images(NamedTuple):
    """N labelled images: float32 (N, C, height, width), centred; int64 (N,)."""

    images: np.ndarray
    labels: np.ndarray


class Run(NamedTuple):
    """A training; one with a `peak` of its rate is a trial of it."""

    data: str
    arm: str  # "vit", "cnn" or "svm"
    n: int  # images to learn from
    seed: int
    peak: float | None = None
    change: str | None = None  # "scrambled" or "moved" digits, a "patient" network, or one of "patient moved" digits

    @property
    def is_trial(self) -> bool:
        """Whether it serves to choose."""
        return self.peak is not None

    @property
    def is_patient(self) -> bool:
        """Whether it has four times the updates."""
        return (self.change or "").startswith("patient")

    @property
    def moves(self) -> bool:
        """Whether its digits are shifted."""
        return (self.change or "").endswith("moved")

    @property
    def name(self) -> str:
        """What the record calls this run."""
        what = name_of((self.change, self.data, self.arm, self.n))
        return f"{what} trial {self.peak:g}" if self.is_trial else f"{what} {self.seed}"

    @property
    def updates(self) -> int:
        """The batches it learns from."""
        return UPDATES[self.data] * (4 if self.is_patient else 1)

    @property
    def seconds(self) -> float:
        """Of one processor core, about."""
        if self.arm == "svm":
            return 5.0 if self.n < DIGITS[2] else 100.0
        return SECONDS[f"{self.arm} {self.data}"] * self.updates / UPDATES[self.data]


NETWORKS = ("vit", "cnn")
CASES = [("digits", n, None) for n in DIGITS] + [("scenes", SCENES, None)]
CASES += [("digits", DIGITS[1], change) for change in ("scrambled", "moved", "patient", "patient moved")]
LOWEST_WAS_BEST = [("vit", "digits", DIGITS[1], "scrambled"), *((arm, "scenes", SCENES, None) for arm in NETWORKS)]
TRIALS = [Run(data, arm, n, TRIAL_SEED, peak, how) for data, n, how in CASES for arm in NETWORKS for peak in PEAKS]
TRIALS += [Run(data, arm, n, TRIAL_SEED, LOWER, how) for arm, data, n, how in LOWEST_WAS_BEST]
RUNS = table(
    [
        *TRIALS,
        *(Run(data, arm, n, seed, change=how) for data, n, how in CASES for arm in NETWORKS for seed in SEEDS),
        *(Run("scenes", "vit", SCENES, seed, change="patient") for seed in SEEDS),
        *(Run("digits", "vit", DIGITS[2], seed, change="patient") for seed in SEEDS),
        *(Run("digits", "svm", n, seed) for n in DIGITS for seed in SEEDS),
    ]
)


@cache
def drawn(n: int, *seed: int) -> scenes.Scenes:
    """n scenes whose red object is a circle or a cross, with their masks."""
    rng, found = np.random.default_rng(seed), []
    wanted = [scenes.KINDS.index(kind) for kind in ASKED]
    while sum(len(some.kinds) for some in found) < n:
        some = scenes.draw(1000, rng, named=(COLOUR,))
        kept = np.isin(scenes.kind_of(some, COLOUR), wanted)
        found.append(scenes.Scenes(*(field[kept] for field in some)))
    return scenes.Scenes(*(np.concatenate(field)[:n] for field in zip(*found, strict=True)))


def labelled(some: scenes.Scenes) -> Images:
    """Scenes as a model reads them, centred, and whether the red object is a cross."""
    mean, deviation = CENTRE["scenes"]
    return Images((some.images - mean) / deviation, (scenes.kind_of(some, COLOUR) == scenes.KINDS.index("cross")) + 0)


@cache
def digits(part: str) -> Images:
    """A part of MNIST as a model reads it, centred."""
    found, (mean, deviation) = mnist.load(part, progress=False), CENTRE["digits"]
    return Images((found.images.astype(np.float32) / 255 - mean) / deviation, found.labels)


def held_out(data: str, part: str) -> Images:
    """The images on which we choose ("validation") and on which we report ("test")."""
    size = VALIDATION if part == "validation" else TESTED
    if data == "scenes":
        return labelled(drawn(size, 1000 if part == "validation" else 2000))
    return Images(*(field[:size] for field in digits(part)))


def training_set(run: Run) -> Images:
    """What a run learns from; runs of one seed and size learn from the same images."""
    if run.data == "scenes":
        return labelled(drawn(run.n, run.seed))
    rows = np.random.default_rng(run.seed).permutation(len(digits("train").labels))[: run.n]
    return Images(*(field[rows] for field in digits("train")))


def scrambled(images) -> np.ndarray:
    """Images (N, C, height, width) whose pixels have changed places, in the same way in each."""
    order = np.random.default_rng(7).permutation(images.shape[2] * images.shape[3])
    return images.reshape(*images.shape[:2], -1)[..., order].reshape(images.shape)


def moved(images, rng: np.random.Generator, ground: float) -> np.ndarray:
    """Images, each shifted by up to two pixels down and across; what comes in from outside is `ground`."""
    size, n = images.shape[-1], len(images)
    wide = np.pad(images, ((0, 0), (0, 0), (FARTHEST,) * 2, (FARTHEST,) * 2), constant_values=ground)
    down, across = (rng.integers(2 * FARTHEST + 1, size=n)[:, None] + np.arange(size) for _ in range(2))
    found = wide[np.arange(n)[:, None, None], :, down[:, :, None], across[:, None]]  # (N, height, width, C)
    return np.moveaxis(found, -1, 1)


def batches(run: Run, some: Images):
    """epoch -> its batches."""
    plain = ImageBatches(*some, BATCH, run.seed)
    if not run.moves:
        return plain.epoch
    rng, ground = np.random.default_rng([run.seed, 1]), float(some.images.min())
    return lambda epoch: [ImageBatch(moved(x, rng, ground), y) for x, y in plain.epoch(epoch)]


def model_of(arm: str, data: str):
    """An untrained model; the CNN is the widest with no more parameters than the ViT."""
    config = ViTConfig(patch_size=PATCH[data], **SIZES, **IMAGES[data])
    model = ViT(config, attention=fused_attention)
    if arm == "vit":
        return model
    return CNN(CNNConfig.of_size(parameters(model), **IMAGES[data]))


def parameters(model) -> int:
    """How many numbers it learns."""
    return sum(value.numel() for value in model.parameters())


def rate(step: int, peak: float, updates: int) -> float:
    """Up over the first updates, level for half of all, and down to 0."""
    return peak * min(1.0, (step + 1) / WARMUP, 2 * (updates - step) / updates)


def train(run: Run, peak: float):
    """A trained model and the history of its training."""
    some = training_set(run)
    if run.change == "scrambled":
        some = some._replace(images=scrambled(some.images))
    torch.set_flush_denormal(True)  # numbers under 1e-38 take ten times as long
    torch.manual_seed(run.seed)
    model = model_of(run.arm, run.data)
    how = {"rate": lambda step: rate(step, peak, run.updates), "optimizer": optimizers.adamw(model), "max_norm": 1.0}
    how |= {"steps": run.updates, "seed": run.seed, "progress": False, "clock": time.process_time}
    return model, loop.train(model, batches(run, some), objectives.image_classification(), **how)


def measure(run: Run, record: Record) -> dict:
    """Train a model and say on which held-out images it is right."""
    part = "validation" if run.is_trial else "test"
    images, labels = held_out(run.data, part)
    if run.change == "scrambled":
        images = scrambled(images)
    if run.arm == "svm":
        return svm(run)
    peak = run.peak if run.is_trial else chosen(run, record)
    model, history = train(run, peak)
    right = answers(model, images) == labels
    if run.data == "scenes" and run.change == "patient":
        half = {name: value.astype(np.float16) for name, value in get_state(model).items()}
        write_checkpoint(record.folder / f"scenes-{run.seed}", model.config.to_hugging_face(), half)
    figures = {
        "peak": peak,
        "parameters": parameters(model),
        "accuracy": round(float(right.mean()), 4),
        "right": np.packbits(right).tobytes().hex(),
        "loss_of_100_updates": history.loss[: run.updates // 100 * 100].reshape(-1, 100).mean(1).round(4).tolist(),
        "seconds": round(float(history.seconds[-1]), 1),
        "version": version("torch"),
    }
    if run.arm == "vit" and not run.is_trial:
        figures["grid"] = position_grid(model.position.weight[1:].detach())
        figures["positions"] = without_positions(model, images, labels)
    return figures


def svm(run: Run) -> dict:
    """A support vector machine with a Gaussian kernel; the validation digits choose its two settings."""
    begin, found = time.process_time(), {}
    mean, deviation = CENTRE["digits"]
    sets = training_set(run), held_out("digits", "validation"), held_out("digits", "test")
    x, held, tested = ((some.images * deviation + mean).reshape(len(some.labels), -1) for some in sets)
    labels, held_labels, tested_labels = (some.labels for some in sets)
    few = slice(3000)  # so many are enough to choose the settings by
    for c in STRENGTHS:
        for gamma in REACHES:
            machine = SVC(C=c, gamma=gamma).fit(x[few], labels[few])
            found[c, gamma] = (machine.predict(held) == held_labels).mean()
    c, gamma = max(found, key=found.get)
    right = SVC(C=c, gamma=gamma).fit(x, labels).predict(tested) == tested_labels
    return {
        "c": c,
        "gamma": gamma,
        "accuracy": round(float(right.mean()), 4),
        "right": np.packbits(right).tobytes().hex(),
        "seconds": round(time.process_time() - begin, 1),
        "version": version("scikit-learn"),
    }


def chosen(run: Run, record: Record) -> float:
    """The peak of the best trial, by accuracy; a patient network without trials has that of the other."""
    alike = [trial for trial in TRIALS if (trial.data, trial.arm, trial.n) == (run.data, run.arm, run.n)]
    same = [t.name for t in alike if t.change == run.change] or [t.name for t in alike if t.change is None]
    return max(of_trials(same, record).values(), key=lambda figures: figures["accuracy"])["peak"]


EXPERIMENT = Experiment(__doc__, RUNS, measure, Record.of(__file__), "digits vit")

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
