"""Sub-word tokens learned from the training text: byte-pair encoding, by the `tokenizers` library.

The `WordPiece` of `course_lib.text.wordpiece` reads the vocabulary that a pretrained BERT came with; the
`BytePairEncoding` of this module learns one, for a model that is trained from nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as FastTokenizer

from course_lib.checks import check_count
from course_lib.files import replacing
from course_lib.strings import as_texts
from course_lib.text.base import encoded, per_sequence, tokenized

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[START]", "[END]")
"""Their ids are 0, 1, 2 and 3."""


class BytePairEncoding:
    """Byte-pair encoding (Sennrich et al. 2016, section 3.2) with the special tokens of a translator.

    A token that begins a word begins with "▁", which stands for the space before it, so decoding is joining (Kudo
    and Richardson 2018, section 3.2). Words, numbers and punctuation never share a token. A character that the training
    text lacked becomes [UNK]. Text is brought to Unicode's NFKC and its white space to single spaces. A text that
    contains "[END]" contains these five characters, not the special token.

    Make one by `BytePairEncoding.train(texts)` or `BytePairEncoding.load(path)`. Attributes: `pad_id` 0, `unk_id` 1,
    `start_id` 2, `end_id` 3, `vocab_size`, `lower`.
    """

    def __init__(self, fast: FastTokenizer):
        if tuple(fast.id_to_token(number) for number in range(4)) != SPECIAL_TOKENS:
            raise ValueError(f"the ids 0 to 3 must be {', '.join(SPECIAL_TOKENS)}: train a tokenizer by this class")
        fast.no_truncation()
        fast.no_padding()
        fast.encode_special_tokens = True  # what a reader types is text
        self._fast = fast
        self.pad_id, self.unk_id, self.start_id, self.end_id = range(4)
        self.vocab_size: int = fast.get_vocab_size()
        self.lower: bool = fast.normalizer.normalize_str("A") == "a"

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int = 4000, lower: bool = True) -> BytePairEncoding:
        """Learn a vocabulary from the training text, and from nothing else; the same texts give the same tokens.

        Parameters
        ----------
        texts : the sentences of one language, or of both for a shared vocabulary
        vocab_size : tokens at most, the four special ones and every single character included
        lower : lower-case all text; the tokenizer then never returns a capital

        Raises
        ------
        TypeError : one str instead of many, or something that is not a str.
        ValueError : no text, a text with half of a character (a lone surrogate), or a vocabulary that does not hold the
            special tokens and the characters.
        """
        if isinstance(texts, str):
            raise TypeError("texts must be many sentences, not one str")
        texts = as_texts(texts)
        if not any(text.strip() for text in texts):
            raise ValueError("a vocabulary cannot be learned from no text")
        check_count("vocab_size", vocab_size)
        fast = FastTokenizer(models.BPE(unk_token="[UNK]", fuse_unk=True))
        steps = [normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()]
        fast.normalizer = normalizers.Sequence([*steps, normalizers.Lowercase()] if lower else steps)
        pieces = Regex(r"▁?\w+|▁?[^\w▁]+|▁")  # words with the space before them, then what stands between words
        fast.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Metaspace(split=False), pre_tokenizers.Split(pieces, "isolated")]
        )
        fast.decoder = decoders.Metaspace()
        trainer = trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=list(SPECIAL_TOKENS), show_progress=False)
        tokenized(lambda batch: fast.train_from_iterator(batch, trainer), texts, texts=texts)
        if fast.get_vocab_size() > vocab_size:
            raise ValueError(
                f"vocab_size must be {fast.get_vocab_size()} or more for these texts, which have that many characters "
                f"and special tokens; got {vocab_size}"
            )
        ends = [(token, SPECIAL_TOKENS.index(token)) for token in ("[START]", "[END]")]
        fast.post_processor = processors.TemplateProcessing(single="[START] $A [END]", special_tokens=ends)
        return cls(fast)

    def encode(self, texts: str | Sequence[str]) -> list[np.ndarray]:
        """The ids of B texts, [START] ... [END]: a list of B int64 arrays (length,). An empty text is [START] [END].

        `padded` of `course_lib.text.padding` makes an array (B, T) of them.

        Raises
        ------
        TypeError : something that is not a str.
        ValueError : a text with half of a character (a lone surrogate).
        """
        return encoded(self._fast, texts)

    def decode(self, ids) -> str | list[str]:
        """Ids (T,) back to a text, ids (B, T) or a list of B arrays to B texts, without special tokens.

        Everything after the first [END] is left out, as a decoder may go on after it. [UNK] is shown.

        Raises
        ------
        ValueError : ids that are no integers or outside the vocabulary.
        """
        return per_sequence(ids, self.vocab_size, self._decode)

    def tokens(self, ids) -> list[str] | list[list[str]]:
        """The tokens of ids (T,) as a list of strings, of ids (B, T) or a list of B arrays as B lists.

        Raises
        ------
        ValueError : as for `decode`.
        """
        return per_sequence(ids, self.vocab_size, lambda row: [self._fast.id_to_token(number) for number in row])

    def save(self, path: str | Path) -> Path:
        """Write the tokenizer as one JSON file, in the format of the `tokenizers` library; return its path.

        Raises
        ------
        OSError : the file could not be written; the one that was there before is as it was.
        """
        path = Path(path)
        with replacing(path.parent) as scratch:
            self._fast.save(str(scratch / path.name))
        return path

    @classmethod
    def load(cls, path: str | Path) -> BytePairEncoding:
        """Read what `save` wrote.

        Raises
        ------
        FileNotFoundError : no such file.
        ValueError : not a tokenizer's file, or one with other special tokens.
        """
        if not Path(path).is_file():
            raise FileNotFoundError(f"there is no file {path}; train a tokenizer and save it there")
        try:
            fast = FastTokenizer.from_file(str(path))
        except Exception as error:  # the library raises a bare Exception for any fault of the file
            raise ValueError(f"{path} is not a tokenizer's file: {error}") from error
        return cls(fast)

    def _decode(self, row: list[int]) -> str:
        if self.end_id in row:
            row = row[: row.index(self.end_id)]
        kept = [self._fast.id_to_token(i) for i in row if i not in (self.pad_id, self.start_id)]
        return self._fast.decoder.decode(kept)
