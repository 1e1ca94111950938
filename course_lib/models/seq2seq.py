"""What the recurrent sequence-to-sequence model returns: the same named fields in every framework."""

from typing import Any, NamedTuple


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
