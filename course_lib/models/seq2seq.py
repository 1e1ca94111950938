"""The recurrent encoder-decoder: its sizes, what it returns, and what a folder of it holds."""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from course_lib.checkpoints.folders import find_translator as find
from course_lib.checkpoints.pretrained import Family
from course_lib.checks import check_choice, check_halves
from course_lib.errors import CheckpointError
from course_lib.models.fields import check_dropouts, check_pad_id, check_sizes, make_plain

CELLS = ("rnn", "gru", "lstm")
SCORES = (None, "dot", "general", "additive")
ORDERS = ("bahdanau", "luong")


@dataclass(frozen=True)
class Seq2SeqConfig:
    """The sizes and the kind of a recurrent translator.

    Raises
    ------
    ValueError : a size below one, an odd d_hidden, an unknown cell, score or order, a dropout outside [0, 1), a pad_id
        outside the vocabulary of the source.
    """

    source_vocab: int
    target_vocab: int
    d_model: int  # features of the embeddings
    d_hidden: int  # features of the decoder's state and of an annotation, of which each direction gives half
    cell: str = "gru"  # or "rnn", "lstm"
    score: str | None = None  # of attention, "dot", "general" or "additive"; None for no attention
    dropout: float = 0.0  # of the embeddings and of the layer before the logits
    pad_id: int = 0  # the source token that is padding
    order: str = "bahdanau"  # the context is computed before the step; "luong", after it

    def __post_init__(self):
        make_plain(self)
        check_sizes(self, "source_vocab", "target_vocab", "d_model")
        check_halves(self.d_hidden)
        check_choice("cell", self.cell, CELLS)
        check_choice("score", self.score, SCORES)
        check_choice("order", self.order, ORDERS)
        check_dropouts(self, "dropout")
        check_pad_id(self.pad_id, "source_vocab", self.source_vocab)


class Seq2SeqMemory(NamedTuple):
    """Of `Seq2Seq.encode`: all that the decoder needs of the source."""

    annotations: Any  # (B, S, d_hidden), the encoder's outputs [forward, backward]
    keys: Any  # what the score makes of them once for all queries, (B, S, d_hidden); None without attention
    mask: Any  # boolean (B, 1, S), True = a real token
    summary: Any  # (B, d_hidden), the encoder's last states [forward, backward]
    state: tuple  # the decoder's first state, arrays (B, d_hidden)


class Seq2SeqState(NamedTuple):
    """What a `Seq2Seq` keeps of the tokens it has read; `step` replaces it."""

    memory: Seq2SeqMemory
    hidden: tuple  # the decoder's state, arrays (B, d_hidden)


class Seq2SeqOutput(NamedTuple):
    """Of `Seq2Seq`."""

    logits: Any  # (B, T, V)
    weights: Any  # (B, T, S), the alignment; None without attention


def read_config(settings: dict, architecture: str = "Seq2Seq") -> Seq2SeqConfig:
    """The configuration that a config.json describes; CheckpointError for one that is not a Seq2Seq's."""
    try:
        return Seq2SeqConfig(**settings)
    except (TypeError, ValueError) as error:
        advice = "; Transformer.from_pretrained opens a model with heads" if "n_heads" in settings else ""
        raise CheckpointError(f"this config.json does not describe a recurrent translator: {error}{advice}") from error


def write_config(config: Seq2SeqConfig, architecture: str = "Seq2Seq") -> dict:
    """The contents of a config.json: the fields of the configuration."""
    return asdict(config)


SEQ2SEQ = Family("Seq2Seq", read_config, write_config, find)
