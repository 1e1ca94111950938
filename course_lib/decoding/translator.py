"""Text in, text out: a trained translator with its tokenizers, and the folder that holds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from course_lib.checkpoints.folders import find_translator
from course_lib.checkpoints.weights import match, write_checkpoint
from course_lib.checks import check_count
from course_lib.decoding.search import beam_search
from course_lib.errors import CheckpointError
from course_lib.files import replacing
from course_lib.models.transformer import TransformerConfig, write_config
from course_lib.pretrained import SHIPPED as SHIPPED
from course_lib.text.bpe import BytePairEncoding
from course_lib.text.padding import padded

# the tokenizers' files: of a vocabulary for both languages, or of one for each
SHARED, SEPARATE = ("tokenizer.json",), ("source_tokenizer.json", "target_tokenizer.json")
LONGER = 50  # tokens that a translation may have more than its source (Vaswani et al. 2017, section 6.1)


class Translator:
    """A callable that translates: `translate("este es un problema que tenemos que resolver.")`.

    `load_translator` of `course_lib.torch`, `.tensorflow` or `.numpy` makes one of a folder; a model of your own needs
    no folder.

    Parameters
    ----------
    model : a `Transformer` or a `Seq2Seq` of any framework, or any other model with `next_logits`; its `pad_id` and,
        where it has one, its `max_len` are read from its `config`, or from the model itself when it has none
    source_tokenizer, target_tokenizer : of the two languages; may be the same one

    Raises
    ------
    ValueError : the model's pad_id is not the tokenizer's.
    """

    def __init__(self, model: Any, source_tokenizer: BytePairEncoding, target_tokenizer: BytePairEncoding):
        self.model, self.source_tokenizer, self.target_tokenizer = model, source_tokenizer, target_tokenizer
        _check_pad_id(self._setting("pad_id"), source_tokenizer)

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
        if not isinstance(texts, Iterable) or isinstance(texts, Mapping):
            raise TypeError(f"a text to translate must be a str, got {type(texts).__name__}")
        check_count("batch_size", batch_size)
        texts = list(texts)
        ids = self.source_tokenizer.encode(texts)
        longest = self._setting("max_len")
        for text, row in zip(texts, ids, strict=True):
            if longest is not None and len(row) > longest:
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
        source = padded(ids, self.source_tokenizer.pad_id)
        start = np.full((len(ids), 1), self.target_tokenizer.start_id)
        # of each sentence, so that its company in the batch changes nothing; the start token takes a place
        most, longest = np.array([len(row) + LONGER for row in ids]), self._setting("max_len")
        if longest is not None:
            most = np.minimum(most, longest - 1)
        # To say nothing costs one token, so to a search it is tempting where the model is unsure: min_len forbids it.
        found = beam_search(
            self.model.next_logits(source), start, self.target_tokenizer.end_id, most, width, alpha, min_len=1
        )
        return found.ids[:, 0]

    def _setting(self, name: str) -> int | None:
        return getattr(getattr(self.model, "config", self.model), name, None)


def open_translator(model: type, name_or_folder: str | Path, attention=None) -> Translator:
    """The translator of a folder; `load_translator` of each framework is this for its own `Transformer`.

    Parameters
    ----------
    model : the class of the model, whose `from_pretrained` opens the folder
    name_or_folder : the name of one that ships, such as "translator-es-en", or a folder that `save_translator` wrote; a
        folder of that name comes first
    attention : the attention function; the framework's plain `attention` when None

    Raises
    ------
    UnknownNameError : neither a name nor a folder.
    FileNotFoundError : a folder that lacks a file.
    CheckpointError : a damaged file, settings that are not a Transformer's, weights that do not fit the model, a
        vocabulary that is not the model's.
    """
    folder = find_translator(name_or_folder)
    opened = model.from_pretrained(folder, attention=attention)
    return Translator(opened, *_read_tokenizers(folder, opened.config))


def _read_tokenizers(folder: Path, config: TransformerConfig) -> tuple[BytePairEncoding, BytePairEncoding]:
    """Those of the source and of the target, of the vocabularies that the model has."""
    paths = [folder / name for name in SHARED if (folder / name).is_file()] or [folder / name for name in SEPARATE]
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(f"{folder} holds no {path.name}, nor a {SHARED[0]} for both languages")
    try:
        tokenizers = [BytePairEncoding.load(path) for path in paths]
    except ValueError as error:
        raise CheckpointError(f"{folder} does not hold a translator's tokenizers: {error}") from error
    source, target = tokenizers[0], tokenizers[-1]
    _check_vocabularies(config, source, target, folder)
    return source, target


def save_translator(folder: str | Path, translator: Translator, weights: dict[str, np.ndarray]) -> Path:
    """Write a folder that `load_translator` reads, in whichever framework.

    Parameters
    ----------
    folder : made when it does not exist
    weights : `get_state(translator.model)`, of the precision to keep: arrays of float16 take half the space

    Returns
    -------
    The folder.

    Raises
    ------
    TypeError : a translator whose model is no `Transformer`.
    CheckpointError : weights that do not fit the model, or vocabularies of other sizes than the model's.
    OSError : the files could not be written; those that were there before are as they were.
    """
    model, source, target = translator.model, translator.source_tokenizer, translator.target_tokenizer
    config = getattr(model, "config", None)
    if not isinstance(config, TransformerConfig):
        raise TypeError(
            f"a translator's folder holds a Transformer, not a {type(model).__name__}: keep another model by its "
            "`save_pretrained`, and its tokenizers by their `save`"
        )
    _check_vocabularies(config, source, target, "the translator")
    if hasattr(model, "_get_state"):  # every Transformer of the library
        match({name: value.shape for name, value in model._get_state().items()}, weights)
    names, others = (SHARED, SEPARATE) if source is target else (SEPARATE, SHARED)
    with replacing(folder, gone=others) as scratch:  # `others` may be there from what was saved before
        write_checkpoint(scratch, write_config(config), weights)
        for name, tokenizer in zip(names, (source, target), strict=False):
            tokenizer.save(scratch / name)
    return Path(folder)


def _check_vocabularies(config: TransformerConfig, source, target, where: str | Path) -> None:
    for side, tokenizer, size in (("source", source, config.source_vocab), ("target", target, config.target_vocab)):
        if tokenizer.vocab_size != size:
            raise CheckpointError(
                f"{where} holds a {side} vocabulary of {tokenizer.vocab_size} tokens for a model with {size}"
            )
    try:
        _check_pad_id(config.pad_id, source)
    except ValueError as error:
        raise CheckpointError(f"{where} does not fit together: {error}") from None


def _check_pad_id(pad_id: int | None, tokenizer: BytePairEncoding) -> None:
    if pad_id not in (None, tokenizer.pad_id):
        raise ValueError(
            f"the model's padding is the token {pad_id}, but the tokenizer's is {tokenizer.pad_id}, so the model would "
            f"overlook a real token; build it with pad_id={tokenizer.pad_id}"
        )
