"""Train the translator that comes with the library, and write it with its figures where `load_translator` finds it.

    python notebooks/results/07-training-a-translator.py
    python notebooks/results/07-training-a-translator.py --corpus ted-pt-en --to my-translator

A training that was stopped goes on where it was when the command is given again. It takes about an hour of one
processor core, and that is what its seconds count. The second form trains from Portuguese on the corpus of the
TensorFlow tutorial that this course grew out of, which has to be downloaded; `load_translator("my-translator")` loads
the result.
"""

import argparse
import json
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch

from course_lib.batches.pairs import PairBatches, encode_pairs
from course_lib.data import sentence_pairs
from course_lib.data.sentence_pairs import words
from course_lib.decoding.translator import SHIPPED, Translator, save_translator
from course_lib.evaluation.bleu import bleu, by_length, chrf
from course_lib.models.transformer import TransformerConfig
from course_lib.text.bpe import BytePairEncoding
from course_lib.torch import Transformer, fused_attention, get_state, load_translator
from course_lib.torch.training.next_token import train
from course_lib.training.schedules import warmup_then_inverse_root

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

VOCABULARY, MAX_TOKENS = 4000, 1200
MAX_LEN, LONGEST = 64, 512  # tokens of a side of a training pair; of a text that the translator reads or writes
WARMUP, SMOOTHING, MAX_NORM = 1000, 0.1, 1.0  # the paper warms up for 4000 steps, and trains longer
PRE_NORM = True  # not as the paper: it learns faster in the passes that there are
EPOCHS = 10


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


def readme(summary: dict, folder: Path, corpus: str) -> str:
    """The page that lies beside the weights."""
    scores = {
        name: "{} [{}, {}]".format(*value) for name, value in summary.items() if name.endswith(("_bleu", "_chrf"))
    }
    script = "python notebooks/results/07-training-a-translator.py"
    shipped = folder.parent == SHIPPED
    command = script if shipped else f"{script} --corpus {corpus} --to {folder.name}"
    minutes = summary["validation"][-1][1] / 60
    facts = {"corpus": corpus, "name": folder.name, "command": command, "minutes": minutes}
    return README.format(**summary | scores | facts)


def make(
    folder: Path,
    split: sentence_pairs.Split,
    corpus: str,
    preset: str = "tutorial",
    vocabulary: int = VOCABULARY,
    max_tokens: int = MAX_TOKENS,
    epochs: float = EPOCHS,
    validate_every: int = 1000,
    progress: bool = True,
) -> dict:
    """Train, or go on training, and write the translator with its figures, which are returned, into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = BytePairEncoding.train([*split.train.sources, *split.train.targets], vocabulary, lower=False)
    train_set, validation = (
        encode_pairs(part.sources, part.targets, tokenizer, tokenizer, MAX_LEN)
        for part in (split.train, split.validation)
    )
    size = tokenizer.vocab_size
    torch.manual_seed(0)
    config = TransformerConfig.preset(preset, size, size, share_embeddings=True, pre_norm=PRE_NORM, max_len=LONGEST)
    model = Transformer(config, fused_attention)
    batches = PairBatches(train_set.sources, train_set.targets, max_tokens, seed=0)
    history = train(
        model,
        batches.epoch,
        PairBatches(validation.sources, validation.targets, 2 * max_tokens, seed=None),
        rate=lambda step: warmup_then_inverse_root(step, model.config.d_model, WARMUP),
        smoothing=SMOOTHING,
        max_norm=MAX_NORM,
        steps=round(epochs * len(batches)),
        validate_every=validate_every,
        checkpoint=folder / "training",
        save_every=120,
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
    (folder / "figures.json").write_text(json.dumps(summary, indent=1) + "\n")
    (folder / "README.md").write_text(readme(summary, folder, corpus), encoding="utf-8")
    return summary


def main(arguments: list[str] | None = None) -> None:
    """Train the translator that the arguments ask for."""
    parser = argparse.ArgumentParser(description="Train the course's translator.")
    parser.add_argument("--corpus", default="tatoeba-es-en", choices=sentence_pairs.CORPORA)
    parser.add_argument("--to", type=Path, help="the folder to write; default: where the library looks for it")
    parser.add_argument("--epochs", type=float, default=EPOCHS, help="passes over the training pairs")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)  # a second one gains little with arrays of this size
    split = sentence_pairs.split(sentence_pairs.load(options.corpus))
    languages = options.corpus.partition("-")[2]  # "es-en"
    summary = make(options.to or SHIPPED / f"translator-{languages}", split, options.corpus, epochs=options.epochs)
    print(json.dumps({name: value for name, value in summary.items() if name != "validation"}, indent=1))


if __name__ == "__main__":
    main()
