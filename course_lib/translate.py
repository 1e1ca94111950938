"""Text in, text out: a trained Transformer with its tokenizers, and the folder that holds them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from course_lib.batching import padded
from course_lib.checks import check_positive
from course_lib.config import TransformerConfig
from course_lib.decoding import beam_search
from course_lib.subwords import SubwordTokenizer
from course_lib.weights import CheckpointError, read_checkpoint, write_checkpoint

# the translators that come with the library, a folder each; a README beside the weights says how they were made
SHIPPED = Path(__file__).parent / "translators"
# the tokenizers' files: of a vocabulary for both languages, or of one for each
SHARED, SEPARATE = ("tokenizer.json",), ("source_tokenizer.json", "target_tokenizer.json")
LONGER = 50  # tokens that a translation may have more than its source (Vaswani et al. 2017, section 6.1)


class TranslatorFiles(NamedTuple):
    """What a translator's folder holds."""

    config: TransformerConfig
    weights: dict[str, np.ndarray]
    source_tokenizer: SubwordTokenizer
    target_tokenizer: SubwordTokenizer  # the same one when the two languages share a vocabulary


class Translator:
    """A callable that translates: `translate("este es un problema que tenemos que resolver.")`.

    `load_translator` of `course_lib.torch`, `.tensorflow` or `.numpy` makes one of a folder; a model of your own needs
    no folder.

    Parameters
    ----------
    model : a `Transformer` of any framework
    source_tokenizer, target_tokenizer : of the two languages; may be the same one
    """

    def __init__(self, model: Any, source_tokenizer: SubwordTokenizer, target_tokenizer: SubwordTokenizer):
        self.model, self.source_tokenizer, self.target_tokenizer = model, source_tokenizer, target_tokenizer

    def __call__(
        self, texts: str | Iterable[str], width: int = 4, alpha: float = 0.6, batch_size: int = 64
    ) -> str | list[str]:
        """Translate one text, or N of them, by beam search; only a text without any token becomes an empty one.

        Parameters
        ----------
        texts : a text, or N of them; a sentence each, as the model was trained on sentences
        width, alpha : of `beam_search`; a width of 1 is greedy search
        batch_size : sentences that are translated together, those of similar length; changes the speed only

        Returns
        -------
        A text for a text, a list of N texts for N.

        Raises
        ------
        TypeError : something that is neither a text nor texts.
        ValueError : a text of more tokens than the model's max_len, or settings that `beam_search` refuses.
        """
        if isinstance(texts, str):
            return self([texts], width, alpha, batch_size)[0]
        if not isinstance(texts, Iterable):
            raise TypeError(f"a text to translate must be a str, got {type(texts).__name__}")
        check_positive("batch_size", batch_size)
        texts = list(texts)
        ids = self.source_tokenizer.encode(texts)
        longest = self.model.config.max_len
        for text, row in zip(texts, ids, strict=True):
            if len(row) > longest:
                raise ValueError(
                    f"a text of {len(row)} tokens is over the maximum of {longest}; translate its sentences one "
                    f"by one: {text[:60]!r} ..."
                )
        order = sorted((i for i, row in enumerate(ids) if len(row) > 2), key=lambda i: len(ids[i]))
        translations = [""] * len(ids)
        for first in range(0, len(order), batch_size):
            rows = order[first : first + batch_size]
            found = self._search([ids[i] for i in rows], width, alpha)
            for i, text in zip(rows, self.target_tokenizer.decode(found), strict=True):
                translations[i] = text
        return translations

    def _search(self, ids: list[np.ndarray], width: int, alpha: float) -> np.ndarray:
        """Sources, B arrays (length,), to their best translations (B, T)."""
        source = padded(ids, self.model.config.pad_id)
        start = np.full((len(ids), 1), self.target_tokenizer.start_id)
        # of each sentence, so that its company in the batch changes nothing; the start token takes a place
        most = np.minimum([len(row) + LONGER for row in ids], self.model.config.max_len - 1)
        # To say nothing costs one token, so to a search it is tempting where the model is unsure: min_len forbids it.
        found = beam_search(
            self.model.next_logits(source), start, self.target_tokenizer.end_id, most, width, alpha, min_len=1
        )
        return found.ids[:, 0]


def read_translator(name_or_folder: str | Path) -> TranslatorFiles:
    """Read a translator's config.json, model.safetensors and tokenizers.

    Parameters
    ----------
    name_or_folder : the name of one that ships, such as "tatoeba-es-en", or a folder that `save_translator` wrote

    Raises
    ------
    FileNotFoundError : neither a name nor a folder, or a folder that lacks a file.
    CheckpointError : a damaged file, settings that are not a Transformer's, a vocabulary that is not the model's.
    """
    shipped = {path.parent.name: path.parent for path in SHIPPED.glob("*/config.json")}
    folder = shipped.get(str(name_or_folder), Path(name_or_folder))
    if not folder.is_dir():
        names = ", ".join(sorted(shipped)) or "those that ship, of which there is none here"
        raise FileNotFoundError(f"there is no translator {str(name_or_folder)!r}: give a folder, or one of {names}")
    settings, weights = read_checkpoint(folder)
    try:
        config = TransformerConfig(**settings)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{folder / 'config.json'} does not describe a translator: {error}") from error
    paths = [folder / name for name in SHARED if (folder / name).is_file()] or [folder / name for name in SEPARATE]
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(f"{folder} holds no {path.name}, nor a {SHARED[0]} for both languages")
    try:
        tokenizers = [SubwordTokenizer.load(path) for path in paths]
    except ValueError as error:
        raise CheckpointError(f"{folder} does not hold a translator's tokenizers: {error}") from error
    source, target = tokenizers[0], tokenizers[-1]
    for side, tokenizer, size in (("source", source, config.source_vocab), ("target", target, config.target_vocab)):
        if tokenizer.vocab_size != size:
            raise CheckpointError(
                f"{folder} holds a {side} vocabulary of {tokenizer.vocab_size} tokens for a model with {size}"
            )
    return TranslatorFiles(config, weights, source, target)


def save_translator(folder: str | Path, translator: Translator, weights: dict[str, np.ndarray]) -> Path:
    """Write a folder that `load_translator` reads, in whichever framework.

    Parameters
    ----------
    folder : made when it does not exist
    weights : `get_state(translator.model)`, of the precision to keep: arrays of float16 take half the space

    Returns
    -------
    The folder.
    """
    folder = write_checkpoint(folder, asdict(translator.model.config), weights)
    tokenizers = (translator.source_tokenizer, translator.target_tokenizer)
    names, others = (SHARED, SEPARATE) if tokenizers[0] is tokenizers[1] else (SEPARATE, SHARED)
    for name, tokenizer in zip(names, tokenizers, strict=False):
        tokenizer.save(folder / name)
    for name in others:  # of what was saved here before
        (folder / name).unlink(missing_ok=True)
    return folder
