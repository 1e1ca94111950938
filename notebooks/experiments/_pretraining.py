"""What the experiments with a small BERT from nothing share: texts, sizes, the start, and how it is trained."""

import time
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch

from course_lib.batches.masked import MaskedBatches, Masking
from course_lib.batches.next_sentence import PretrainingBatches, encode_documents
from course_lib.batches.windows import windows
from course_lib.data import pretraining_texts, reviews, wikitext
from course_lib.evaluation.blank_baselines import NeighbourModel
from course_lib.models.bert import BertConfig
from course_lib.models.bert_start import bert_start
from course_lib.text.count_vectors import count_vectors
from course_lib.text.sentences import sentences
from course_lib.text.wordpiece import WordPiece
from course_lib.torch import get_state
from course_lib.torch.training import loop
from course_lib.training.schedules import warmup_then_linear_decay

VOCABULARY, LENGTH, BATCH, SHARE = 8000, 32, 64, 0.2
SIZES = {"d_model": 128, "n_layers": 4, "n_heads": 4, "d_ff": 512, "max_len": 128}
WARMUP, EVERY = 0.05, 250  # the warm-up as a share of the updates; updates between two points of a curve
PAIR_LENGTH, PAIR_BATCH = 123, 32  # two pieces of 60 tokens
N_HELD_OUT, N_TUNING = 1000, 500  # documents
N_TRAIN, N_TESTED = 2000, 6500  # sentences of Rotten Tomatoes: to fine-tune on, and to choose and to test on


@dataclass(frozen=True)
class Texts:
    """A corpus, ready to be learned: documents are lists of their sentences' ids, without special tokens."""

    tokenizer: WordPiece
    train: list
    tuning: list  # for the curve, and the weights of the counts
    held_out: list

    def masking(self, share: float = SHARE, whole_words: bool = False) -> Masking:
        """Every blank reads [MASK], so that none of a small budget is spent on tokens that show their answer."""
        return Masking.of(self.tokenizer, share, masked=1.0, random=0.0, whole_words=whole_words)

    def mixed(self) -> Masking:
        """As many tokens asked for, in BERT's way: eight tenths read [MASK], a tenth another token, a tenth itself."""
        return Masking.of(self.tokenizer, SHARE, masked=0.8, random=0.1)

    def windows(self, documents: list) -> list:
        """Documents cut to sequences [CLS] ... [SEP]."""
        ids = joined(documents)
        return windows(ids, self.tokenizer.cls_id, self.tokenizer.sep_id, LENGTH, least=LENGTH // 4).sequences

    def pairs(self, documents: list, seed: int = 0) -> PretrainingBatches:
        """Documents cut to pairs of pieces."""
        ends = self.tokenizer.cls_id, self.tokenizer.sep_id
        return PretrainingBatches(documents, self.masking(), *ends, PAIR_LENGTH, PAIR_BATCH, seed)


def joined(documents: list) -> list:
    """The ids of each document in one array."""
    return [np.concatenate(parts) for parts in documents if parts]


def tomatoes() -> reviews.Split:
    """The sentences of Rotten Tomatoes that a fine-tuned model learns from, and those that it never saw as text."""
    return reviews.split(reviews.load("rotten-tomatoes"), train=N_TRAIN, held_out=N_TESTED)


def texts_of(corpus: str) -> tuple:
    """Training, tuning and held-out texts.

    `reviews` are those of IMDb and Rotten Tomatoes that no fine-tuned model is tested on. `free` are the articles of
    WikiText-2, whose licence lets a model that read them be passed on: its training, validation and test part.
    """
    if corpus == "free":
        return tuple(["\n".join(article.paragraphs) for article in wikitext.load(part)] for part in wikitext.PARTS)
    if corpus != "reviews":
        raise ValueError(f"there is no corpus {corpus!r}; there are reviews and free")
    texts = pretraining_texts.load(tomatoes().held_out.texts).texts
    texts = texts[np.random.default_rng(0).permutation(len(texts))]
    return np.split(texts, [-N_TUNING - N_HELD_OUT, -N_HELD_OUT])


@cache
def prepared(corpus: str) -> Texts:
    """The texts as ids, by a vocabulary learned from those of the training."""
    texts = texts_of(corpus)
    tokenizer = WordPiece.train(list(texts[0]), VOCABULARY)
    return Texts(tokenizer, *(encode_documents([sentences(text) for text in part], tokenizer) for part in texts))


@cache
def counted(corpus: str) -> NeighbourModel:
    """What stood between the same neighbours; and the share of each token."""
    texts = prepared(corpus)
    return NeighbourModel(joined(texts.train), texts.masking(0.15)).tune(measured_on(texts, texts.tuning))


@cache
def vectors(corpus: str) -> np.ndarray:
    """The count vectors of a corpus, for the features that are not the positions': float32 (V, 96)."""
    texts, width = prepared(corpus), SIZES["d_model"] - SIZES["d_model"] // SIZES["n_heads"]
    size, unknown = texts.tokenizer.vocab_size, [texts.tokenizer.unk_id]
    return count_vectors(joined(texts.train), size, width, ignored=unknown)


def measured_on(texts: Texts, documents: list, whole_words: bool = False) -> list:
    """Batches of documents with 15% blanks, the same whoever is measured."""
    batches = MaskedBatches(texts.windows(documents), texts.masking(0.15, whole_words), BATCH, fresh=False)
    return list(batches)[:32]


def config_of(texts: Texts, **changes) -> BertConfig:
    """The sizes of the model. Most texts are seen once or twice: there is nothing that dropout could prevent."""
    settings = SIZES | {"dropout": 0.0, "attention_dropout": 0.0, "pre_norm": True} | changes
    return BertConfig(texts.tokenizer.vocab_size, **settings)


def start(corpus: str, seed: int) -> dict:
    """The weights before training, those of the next-sentence head included."""
    config = config_of(prepared(corpus))
    return bert_start(config, counted(corpus).shares, vectors(corpus), next_sentence=True, seed=seed)


def optimizer(model, decay: float = 0.01):
    """AdamW that forgets half as slowly as is usual, and lets the tables of tokens and positions decay not at all."""
    weights = dict(model.named_parameters())
    matrices = [name for name, weight in weights.items() if weight.ndim > 1 and "embeddings" not in name]
    others = [weight for name, weight in weights.items() if name not in matrices]
    groups = [
        {"params": [weights[name] for name in matrices], "weight_decay": decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.98), eps=1e-6, fused=True)


def part_of(state: dict, model) -> dict:
    """Those weights of a start that a model has."""
    return {name: state[name] for name in get_state(model)}


def trained(model, batches, objective, validation, run, peak: float, folder=None, every=None, warmup=None, looked=None):
    """Train a model in place by the recipe's schedule; a training that was stopped goes on from its folder.

    `looked` is called with the step before each update.
    """
    warmup = int(WARMUP * run.updates) if warmup is None else warmup

    def rate(step: int) -> float:
        if looked is not None:
            looked(step)
        return peak * warmup_then_linear_decay(step, run.updates, warmup)

    return loop.train(
        model,
        batches,
        objective,
        validation,
        rate=rate,
        optimizer=optimizer(model),
        max_norm=1.0,
        steps=run.updates,
        validate_every=EVERY if every is None else every,
        checkpoint=folder,
        save_every=120,
        seed=run.seed,
        progress=False,
        clock=time.process_time,
    )


def curve(history) -> list:
    """Updates, minutes, loss and share right, along the way."""
    return [[look.step, round(look.seconds / 60, 2), *rounded(look.nll, look.accuracy)] for look in history.validation]


def rounded(*numbers: float) -> list[float]:
    """To four digits."""
    return [round(float(number), 4) for number in numbers]
