"""Byte-level byte-pair encoding, that of GPT-2: any text becomes tokens, and comes back byte by byte.

`BytePairEncoding` of `course_lib.text.bpe` is made of characters, and has none for those it never saw. Here the
smallest tokens are the 256 bytes, so nothing is unknown and nothing is lost: no lower case, no joined spaces.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer as FastTokenizer
from tokenizers import decoders, models, pre_tokenizers, trainers

from course_lib.checks import check_count
from course_lib.files import replacing
from course_lib.strings import as_texts
from course_lib.text.base import encoded, per_sequence, tokenized

END = "<|endoftext|>"
"""The one special token; it stands between two texts."""

BYTES = 256
FILES = ("vocab.json", "merges.txt")


def _letters() -> dict[str, int]:
    """GPT-2's letter for each byte: those that can be seen stand for themselves, the others begin at 256."""
    seen = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(BYTES) if byte not in seen]
    return {chr(byte): byte for byte in seen} | {chr(BYTES + n): byte for n, byte in enumerate(others)}


LETTERS = _letters()
"""{letter: the byte that it stands for}, in the files of GPT-2."""


class ByteLevelBPE:
    """Byte-pair encoding of the bytes of UTF-8 (Radford et al. 2019, section 2.2).

    A text is first split into words, each with the space before it, numbers, punctuation and white space, by GPT-2's
    pattern; pairs are joined within these pieces alone. `decode(encode(text))` is the text. A text that contains
    "<|endoftext|>" contains these thirteen characters, not the special token.

    Make one by `ByteLevelBPE.train(texts, vocab_size)` or `ByteLevelBPE.load(folder)`, of its own or of GPT-2's or
    RoBERTa's files. Attributes: `vocab_size`; `end_id`, the id of the special token, None where the folder has none.

    Parameters
    ----------
    vocab : {token: id}, each byte written as one of GPT-2's 256 letters
    merges : pairs of tokens, those that are joined first in front
    """

    def __init__(self, vocab: dict[str, int], merges: Sequence[tuple[str, str]]):
        missing, strange = LETTERS.keys() - vocab.keys(), set().union(*vocab) - LETTERS.keys()
        if missing:
            raise ValueError(f"the vocabulary lacks {len(missing)} of the {BYTES} bytes, such as {min(missing)!r}")
        if strange:
            raise ValueError(f"the vocabulary has letters that stand for no byte, such as {min(strange)!r}")
        if sorted(vocab.values()) != list(range(len(vocab))):
            raise ValueError(f"the ids of {len(vocab)} tokens must be 0 to {len(vocab) - 1}, each once")
        self._vocab, self._merges = dict(vocab), [tuple(pair) for pair in merges]
        try:
            self._fast = FastTokenizer(models.BPE(vocab=self._vocab, merges=self._merges))
        except Exception as error:  # the library raises a bare Exception where a merge has no token
            raise ValueError(f"the merges do not belong to this vocabulary: {error}") from None
        self._fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        self._fast.decoder = decoders.ByteLevel()
        self.vocab_size, self.end_id = len(vocab), vocab.get(END)

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int = 8192) -> ByteLevelBPE:
        """Learn which pairs to join, from the training text and from nothing else; the same texts give the same tokens.

        Parameters
        ----------
        texts : what to learn from, in parts of any size; no pair reaches from one into the next
        vocab_size : tokens at most, the special one and the bytes included: 257 or more

        Raises
        ------
        TypeError : one str instead of many, or something that is not a str.
        ValueError : no text, a text with half of a character (a lone surrogate), or a vocabulary that is too small.
        """
        if isinstance(texts, str):
            raise TypeError("texts must be many texts, not one str")
        texts = as_texts(texts)
        if not any(texts):
            raise ValueError("a vocabulary cannot be learned from no text")
        check_count("vocab_size", vocab_size, BYTES + 1)
        fast = FastTokenizer(models.BPE())
        fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size, special_tokens=[END], initial_alphabet=list(LETTERS), show_progress=False
        )
        tokenized(lambda batch: fast.train_from_iterator(batch, trainer), texts, texts=texts)
        model = json.loads(fast.to_str())["model"]
        return cls(model["vocab"], model["merges"])

    def encode(self, texts: str | Sequence[str]) -> list[np.ndarray]:
        """The ids of B texts: a list of B int64 arrays (length,). An empty text has none.

        `padded` of `course_lib.text.padding` makes an array (B, T) of them; to be read in one go, texts are joined with
        `end_id` between them.

        Raises
        ------
        TypeError : something that is not a str.
        ValueError : a text with half of a character (a lone surrogate).
        """
        return encoded(self._fast, texts)

    def decode(self, ids) -> str | list[str]:
        """Ids (T,) back to a text, ids (B, T) or a list of B arrays to B texts.

        Everything from the first special token on is left out. Bytes that are no character, such as the first half of
        one that a model has not written to its end, become "\N{REPLACEMENT CHARACTER}".

        Raises
        ------
        ValueError : ids that are no integers or outside the vocabulary.
        """
        return per_sequence(ids, self.vocab_size, self._decode)

    def tokens(self, ids) -> list[bytes] | list[list[bytes]]:
        """The bytes of each token of ids (T,) as a list, of ids (B, T) or a list of B arrays as B lists.

        Raises
        ------
        ValueError : as for `decode`.
        """
        return per_sequence(ids, self.vocab_size, lambda row: [self._bytes(number) for number in row])

    def save(self, folder: str | Path) -> Path:
        """Write vocab.json and merges.txt, as GPT-2's are, into a folder; return its path.

        Raises
        ------
        OSError : the files could not be written; those that were there before are as they were.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(folder) as scratch:
            vocab, merges = (scratch / name for name in FILES)
            vocab.write_text(json.dumps(self._vocab, ensure_ascii=False), encoding="utf-8")
            lines = ["#version: 0.2", *(" ".join(pair) for pair in self._merges)]
            merges.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return folder

    @classmethod
    def load(cls, folder: str | Path) -> ByteLevelBPE:
        """Read a folder with vocab.json and merges.txt: what `save` wrote, GPT-2's or RoBERTa's.

        Raises
        ------
        FileNotFoundError : one of the two is not there.
        ValueError : files of something else.
        """
        paths = [Path(folder) / name for name in FILES]
        for path in paths:
            if not path.is_file():
                raise FileNotFoundError(f"there is no file {path}; train a tokenizer and save it there")
        try:
            vocab = json.loads(paths[0].read_text(encoding="utf-8"))
            lines = paths[1].read_text(encoding="utf-8").split("\n")
        except ValueError as error:  # no JSON, or no UTF-8
            raise ValueError(f"{folder} holds no byte-level BPE: {error}") from None
        if not isinstance(vocab, dict) or not all(type(number) is int for number in vocab.values()):
            raise ValueError(f"{paths[0]} should map tokens to ids")
        pairs = [tuple(line.split(" ")) for line in lines if line and not line.startswith("#version")]
        wrong = next((pair for pair in pairs if len(pair) != 2), None)
        if wrong:
            raise ValueError(
                f"{paths[1]} should have two tokens in each line; one has {len(wrong)}: {' '.join(wrong)!r}"
            )
        return cls(vocab, pairs)

    def _decode(self, row: list[int]) -> str:
        if self.end_id in row:
            row = row[: row.index(self.end_id)]
        return b"".join(map(self._bytes, row)).decode("utf-8", "replace")

    def _bytes(self, number: int) -> bytes:
        return bytes(LETTERS[letter] for letter in self._fast.id_to_token(number))
