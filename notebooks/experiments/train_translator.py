"""What do the tutorial's sizes reach in an hour of one processor core?

This trains the translator that comes with the library, and writes weights, tokenizer and figures where
`load_translator` finds them. It is one training with one seed, ten passes over the pairs of Tatoeba. The weights with
the lowest loss on the validation pairs are kept, in half precision, and those are measured: BLEU and chrF with 95%
intervals on two held-out sets, by beam search and greedily. A training that was stopped goes on where it was when the
command is given again.

    python notebooks/experiments/train_translator.py
    python notebooks/experiments/train_translator.py --corpus ted-pt-en --to my-translator

The second form trains from Portuguese on the corpus of the TensorFlow tutorial that this course grew out of, which has
to be downloaded; `load_translator("my-translator")` loads the result. The lecture *Training a translator* tells what
came out.
"""

import argparse
import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from course_lib.batches.pairs import PairBatches, encode_pairs
from course_lib.data import sentence_pairs
from course_lib.data.sentence_pairs import words
from course_lib.decoding.translator import Translator, save_translator
from course_lib.evaluation.bleu import bleu, by_length, chrf
from course_lib.models.transformer import TransformerConfig
from course_lib.pretrained import SHIPPED
from course_lib.text.bpe import BytePairEncoding
from course_lib.torch import Transformer, fused_attention, get_state, load_translator
from course_lib.torch.training.translation import train
from course_lib.training.schedules import warmup_then_inverse_root
from notebooks.experiments.harness import one_core, write_text

COMMAND = "python notebooks/experiments/train_translator.py"

README = """# A translator, trained on {corpus}

`load_translator("{name}")` of course_lib.torch, .tensorflow or .numpy reads this folder. The command

    {command}

makes it again from nothing: {parameters:,} weights, {updates:,} updates of Adam over {epochs:g} passes of the training
pairs, {minutes:.0f} minutes of one processor core, with PyTorch {torch}. The weights are kept in half precision, and so
they were measured:

| held-out pairs | BLEU, beam of 4 | BLEU, greedy | chrF, beam of 4 |
| --- | --- | --- | --- |
| equal parts of four lengths | {test_beam_bleu} | {test_greedy_bleu} | {test_beam_chrf} |
| lengths as in the corpus | {natural_test_beam_bleu} | {natural_test_greedy_bleu} | {natural_test_beam_chrf} |

In brackets 95% intervals over the choice of sentences. No sentence of either language stands both in the training pairs
and in these. `figures.json` has more. The corpus and its licence are on the course's page of data and licences.
"""


class Recipe(NamedTuple):
    """The settings of a training; its sizes are those of a preset of `TransformerConfig`."""

    corpus: str = "tatoeba-es-en"
    preset: str = "tutorial"
    pre_norm: bool = True  # not as the paper: it learns faster in the passes that there are
    vocabulary: int = 4000  # of both languages together
    max_len: int = 64  # tokens of a side of a training pair
    longest: int = 512  # tokens of a text that the translator reads or writes
    max_tokens: int = 1200  # of a batch
    epochs: float = 10
    warmup: int = 1000  # the paper warms up for 4000 steps, and trains longer
    smoothing: float = 0.1
    max_norm: float = 1.0
    seed: int = 0

    @property
    def name(self) -> str:
        """What the library calls the translator, if it ships."""
        return f"translator-{self.corpus.partition('-')[2]}"


RECIPES = {corpus: Recipe(corpus) for corpus in sentence_pairs.CORPORA}
DEFAULT = Recipe().corpus


def make(
    folder: Path, split: sentence_pairs.Split, recipe: Recipe, validate_every: int = 1000, progress: bool = True
) -> dict:
    """Train, or go on training, and write the translator with its figures, which are returned, into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = BytePairEncoding.train([*split.train.sources, *split.train.targets], recipe.vocabulary, lower=False)
    train_set, validation = (
        encode_pairs(part.sources, part.targets, tokenizer, tokenizer, recipe.max_len)
        for part in (split.train, split.validation)
    )
    options = {"share_embeddings": True, "pre_norm": recipe.pre_norm, "max_len": recipe.longest}
    torch.manual_seed(recipe.seed)
    config = TransformerConfig.preset(recipe.preset, tokenizer.vocab_size, tokenizer.vocab_size, **options)
    model = Transformer(config, fused_attention)
    batches = PairBatches(train_set.sources, train_set.targets, recipe.max_tokens, seed=recipe.seed)
    history = train(
        model,
        batches.epoch,
        PairBatches(validation.sources, validation.targets, 2 * recipe.max_tokens, seed=None),
        rate=lambda step: warmup_then_inverse_root(step, model.config.d_model, recipe.warmup),
        smoothing=recipe.smoothing,
        max_norm=recipe.max_norm,
        steps=round(recipe.epochs * len(batches)),
        validate_every=validate_every,
        checkpoint=folder / "training",
        save_every=120,
        seed=recipe.seed,
        progress=progress,
        clock=time.process_time,
    )
    half = {name: value.astype(np.float16) for name, value in get_state(model).items()}
    save_translator(folder, Translator(model, tokenizer, tokenizer), half)
    summary = {
        "parameters": sum(value.size for value in half.values()),
        "updates": len(history.loss),
        "epochs": round(len(history.loss) / len(batches), 2),
        "target_tokens": int(history.tokens.sum()),
        "best": list(history.best),
        "validation": [list(look) for look in history.validation],
        **figures(load_translator(folder, fused_attention), split),  # of the weights that are read, rounded to float16
        "torch": version("torch"),
    }
    write_text(folder / "figures.json", json.dumps(summary, indent=1) + "\n")
    write_text(folder / "README.md", readme(summary, folder, recipe))
    return summary


def figures(translator: Translator, split: sentence_pairs.Split) -> dict:
    """BLEU and chrF of the test sets with 95% intervals, by beam search and greedily."""
    found = {}
    for name, pairs in (("test", split.test), ("natural_test", split.natural_test)):
        for way, width in (("beam", 4), ("greedy", 1)):
            texts = translator(list(pairs.sources), width=width)
            found[f"{name}_{way}_bleu"] = [round(x, 2) for x in bleu(texts, pairs.targets)]
            found[f"{name}_{way}_chrf"] = [round(x, 2) for x in chrf(texts, pairs.targets)]
            if (name, way) == ("test", "beam"):
                bands = by_length(bleu, words(pairs.sources), texts, pairs.targets)
                found["test_by_words"] = {f"{a}-{b}": [round(x, 2) for x in e] for (a, b), e in bands.items()}
    return found


def readme(summary: dict, folder: Path, recipe: Recipe) -> str:
    """The page that lies beside the weights."""
    scores = {
        name: "{} [{}, {}]".format(*value) for name, value in summary.items() if name.endswith(("_bleu", "_chrf"))
    }
    command = COMMAND if folder.parent == SHIPPED else f"{COMMAND} --corpus {recipe.corpus} --to {folder.name}"
    minutes = summary["validation"][-1][1] / 60
    facts = {"corpus": recipe.corpus, "name": folder.name, "command": command, "minutes": minutes}
    return README.format(**summary | scores | facts)


def main(arguments: list[str] | None = None) -> int:
    """Train the translator that the arguments ask for; returns 0, or 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog=COMMAND, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", default=DEFAULT, choices=RECIPES, help="what to learn from (default: %(default)s)")
    parser.add_argument("--to", type=Path, help="the folder to write (default: where the library looks for it)")
    parser.add_argument("--epochs", type=float, default=Recipe().epochs, help="passes over them (default: %(default)s)")
    options = parser.parse_args(arguments)
    recipe = RECIPES[options.corpus]._replace(epochs=options.epochs)
    try:
        split = sentence_pairs.split(sentence_pairs.load(recipe.corpus))
        with one_core():  # a second one gains little with arrays of this size
            summary = make(options.to or SHIPPED / recipe.name, split, recipe)
    except KeyboardInterrupt:
        print("\nInterrupted: the same command goes on where the training was.", file=sys.stderr)
        return 130
    print(json.dumps({name: value for name, value in summary.items() if name != "validation"}, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
