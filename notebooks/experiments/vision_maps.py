"""Where do the Vision Transformers of scenes look, and does it matter to what they answer?

Asked are the three patient ViTs of `vision.py`, whose weights it keeps, on 500 test scenes. Each map has a number for
each patch. Attention: the last layer's, the mean of its heads; the one head of both layers that looks at the red object
most, chosen on 500 validation scenes; and rollout (Abnar and Zuidema 2020). Rivals that also ask the model: the
gradient of the answer by the pixels, times the pixels; and hiding, by how much the answer falls when a patch is painted
with the mean of the scene. Rivals that do not: an even map; "habit", the chosen head's map of another scene; the same
attention of a ViT before its training; and "red", the fourth power of how many red pixels a patch has, the best of
three powers on the validation scenes.

Measured is the share of a map that lies on the pixels of the red object, and what is left of the right answers when the
eight patches of 64 that a map ranks highest are hidden. The lecture *Vision* tells what came out.
"""

import time
from importlib.metadata import version
from typing import NamedTuple

import numpy as np
import torch

from course_lib.checkpoints.weights import read_checkpoint
from course_lib.data import scenes
from course_lib.evaluation.attention_maps import class_map, rollout, score_maps
from course_lib.models.vit import ViTConfig
from course_lib.torch import ViT, attention, set_state
from notebooks.experiments import vision
from notebooks.experiments._patch_positions import answers
from notebooks.experiments.harness import Experiment, Record, Waiting, main, table

ASKED, HIDDEN = 500, 8
ATTENTION = ("last layer", "chosen head", "rollout")
MAPS = (*ATTENTION, "gradient", "hiding", "habit", "red", "even", "untrained, last layer", "untrained, chosen head")


class Run(NamedTuple):
    """One trained model that is asked."""

    seed: int

    @property
    def name(self) -> str:
        """What the record calls this run."""
        return f"maps {self.seed}"

    @property
    def seconds(self) -> float:
        """Of one processor core, about."""
        return 12.0


RUNS = table(Run(seed) for seed in vision.SEEDS)


def trained(seed: int) -> ViT:
    """A patient ViT of scenes, which gives its weights; Waiting if it was not trained."""
    folder = vision.EXPERIMENT.record.folder / f"scenes-{seed}"
    if not (folder / "config.json").exists():
        raise Waiting("run first vision.py patient scenes")
    settings, weights = read_checkpoint(folder)
    model = ViT(ViTConfig.from_hugging_face(settings), attention=attention)
    set_state(model, {name: value.astype(np.float32) for name, value in weights.items()})
    return model.eval()


def untrained(seed: int) -> ViT:
    """As the model of a seed was before its training."""
    torch.manual_seed(seed)
    before = vision.model_of("vit", "scenes")
    model = ViT(before.config, attention=attention)
    model.load_state_dict(before.state_dict())
    return model.eval()


def weights_of(model, images) -> list[np.ndarray]:
    """The attention weights of each layer, (B, H, 1 + N, 1 + N)."""
    with torch.no_grad():
        return [layer.numpy() for layer in model(torch.from_numpy(images), return_layers=True).weights]


def head_maps(weights, grid) -> np.ndarray:
    """What the class token has of each patch, by each head of each layer: (layers H, B, rows, columns)."""
    return np.stack([class_map(layer[:, [head]], grid) for layer in weights for head in range(layer.shape[1])])


def gradient_map(model, images) -> np.ndarray:
    """|pixel x slope of the answer's logit|, summed over each patch: (B, rows, columns)."""
    x = torch.from_numpy(images).requires_grad_()
    logits = model(x).logits
    (slope,) = torch.autograd.grad(logits.max(-1).values.sum(), x)
    return by_patch((x * slope).detach().abs().sum(1).numpy(), model.config.patch_size)


def red_map(images) -> np.ndarray:
    """The fourth power of how many pixels of a patch are red, (B, rows, columns); asks no model, is told the colour."""
    mean, deviation = vision.CENTRE["scenes"]
    red, green, blue = np.moveaxis(images * deviation + mean, 1, 0)
    return by_patch(red - np.maximum(green, blue) > 0.4, vision.PATCH["scenes"]) ** 4.0 + 1e-9


def by_patch(pixels, patch: int) -> np.ndarray:
    """Sums over square patches: (B, height, width) -> (B, rows, columns)."""
    b, height, width = pixels.shape
    return pixels.reshape(b, height // patch, patch, width // patch, patch).sum((2, 4))


def hidden(images, patches, patch: int) -> np.ndarray:
    """Images with some patches, boolean (B, rows, columns), painted with the mean of each image's colours."""
    there = patches.repeat(patch, 1).repeat(patch, 2)[:, None]
    return np.where(there, images.mean((2, 3), keepdims=True), images).astype(images.dtype)


def hiding_map(model, images, step: int = 25) -> np.ndarray:
    """By how much the answer's log-probability falls, or 0, when a patch is hidden: (B, rows, columns)."""
    rows, columns = model.config.grid
    each, found = np.eye(rows * columns, dtype=bool).reshape(-1, rows, columns), []
    with torch.no_grad():
        for some in np.split(images, range(step, len(images), step)):
            before = model(torch.from_numpy(some)).logits.log_softmax(-1)
            top = before.argmax(-1)
            log_p = [
                model(torch.from_numpy(hidden(some, np.broadcast_to(one, (len(some), *one.shape)), 4))).logits
                for one in each
            ]
            now = torch.stack([one.log_softmax(-1) for one in log_p], 1)  # (B, N, classes)
            rows_ = torch.arange(len(some))
            found.append((before[rows_, top][:, None] - now[rows_, :, top]).clamp(min=0).numpy())
    return np.concatenate(found).reshape(-1, rows, columns) + 1e-9


def most(maps, n: int = HIDDEN) -> np.ndarray:
    """Where the n highest numbers of each map stand: boolean (B, rows, columns)."""
    flat = maps.reshape(len(maps), -1) + 1e-12 * np.random.default_rng(0).random(maps[0].size)  # breaks draws
    return (flat.argsort(-1).argsort(-1) >= flat.shape[1] - n).reshape(maps.shape)


def chosen_head(model) -> int:
    """The head of all layers whose map lies most on the red objects of the validation scenes."""
    some = vision.drawn(vision.VALIDATION, 1000)
    maps = head_maps(weights_of(model, vision.labelled(some).images[:ASKED]), model.config.grid)
    masks = scenes.mask_of(some, vision.COLOUR)[:ASKED]
    return int(np.argmax([score_maps(one, masks).mass.mean() for one in maps]))


def all_maps(seed: int, images) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """The maps of the images by name, and the heads that were chosen for two of them."""
    model, before = trained(seed), untrained(seed)
    grid, heads = model.config.grid, {"trained": chosen_head(model), "untrained": chosen_head(before)}
    weights, early = weights_of(model, images), weights_of(before, images)
    best = head_maps(weights, grid)[heads["trained"]]
    found = {
        "last layer": class_map(weights[-1], grid),
        "chosen head": best,
        "rollout": class_map(rollout(weights), grid),
        "gradient": gradient_map(model, images),
        "hiding": hiding_map(model, images),
        "habit": np.roll(best, 1, axis=0),
        "red": red_map(images),
        "even": np.ones_like(best),
        "untrained, last layer": class_map(early[-1], grid),
        "untrained, chosen head": head_maps(early, grid)[heads["untrained"]],
    }
    return found, heads


def measure(run: Run, record: Record) -> dict:
    """Score every map by the object's pixels and by what hiding its patches does."""
    begin, model = time.process_time(), trained(run.seed)
    some = vision.drawn(vision.TESTED, 2000)
    images, labels = (field[:ASKED] for field in vision.labelled(some))
    masks = scenes.mask_of(some, vision.COLOUR)[:ASKED]
    maps, heads = all_maps(run.seed, images)
    scores = {name: score_maps(one, masks) for name, one in maps.items()}
    left = {name: answers(model, hidden(images, most(one), 4)) == labels for name, one in maps.items()}
    rows = [f"{name}: {' '.join(str(round(1000 * x)) for x in score.mass)}" for name, score in scores.items()]
    rows += [f"{name}, right when hidden: {''.join('01'[int(x)] for x in right)}" for name, right in left.items()]
    record.keep(run.name, rows)
    return {
        "mass": {name: round(float(score.mass.mean()), 4) for name, score in scores.items()},
        "hit": {name: round(float(score.hit.mean()), 4) for name, score in scores.items()},
        "right_when_hidden": {name: round(float(right.mean()), 4) for name, right in left.items()},
        "heads": heads,
        "seconds": round(time.process_time() - begin, 1),
        "version": version("torch"),
    }


def read(seed: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Of each test scene, the share of each map on the object, and whether the answer is right with it hidden."""
    lines = (EXPERIMENT.record.folder / f"maps {seed}.txt").read_text(encoding="utf-8").splitlines()
    parts = dict(line.split(": ") for line in lines)
    mass = {name: np.array(parts[name].split(), dtype=int) / 1000 for name in MAPS}
    return mass, {name: np.array(list(parts[f"{name}, right when hidden"]), dtype=int) for name in MAPS}


EXPERIMENT = Experiment(__doc__, RUNS, measure, Record.of(__file__), "maps 1")

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
