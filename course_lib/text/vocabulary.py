"""The vocabulary of a WordPiece tokenizer: learned from texts, and made into a tokenizer of the `tokenizers` library.

The library's own trainer numbers the characters in the order of a hash table, which differs from process to process,
and settles ties between pairs by these numbers: two runs on the same texts give different vocabularies. Here the
characters are counted and sorted first and given to the trainer, so the texts alone decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tokenizers import Tokenizer as FastTokenizer
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from course_lib.checks import check_count
from course_lib.text.base import tokenized

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def assembled(words: Sequence[str], normalizer: normalizers.Normalizer) -> FastTokenizer:
    """A tokenizer that reads texts as BERT does, by a vocabulary whose words stand in the order of their ids."""
    fast = FastTokenizer(models.WordPiece({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    fast.normalizer = normalizer
    fast.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    fast.decoder = decoders.WordPiece()
    ends = [(token, words.index(token)) for token in ("[SEP]", "[CLS]")]
    fast.post_processor = processors.BertProcessing(*ends)
    fast.add_special_tokens(list(SPECIAL_TOKENS))
    return fast


def learned(
    texts: Sequence[str], normalizer: normalizers.Normalizer, vocab_size: int, n_characters: int, min_count: int
) -> list[str]:
    """The words of a vocabulary, the special tokens first, then characters, then what was joined, most frequent first.

    Parameters are those of `WordPiece.train`.

    Raises
    ------
    ValueError : no text, or a vocabulary that does not hold the special tokens and the characters.
    """
    for name, value in (("vocab_size", vocab_size), ("n_characters", n_characters), ("min_count", min_count)):
        check_count(name, value)
    counts: Counter[str] = Counter()
    for text in tokenized(lambda batch: [normalizer.normalize_str(one) for one in batch], texts, texts=texts):
        counts.update(text)
    frequent = sorted((c for c in counts if not c.isspace()), key=lambda c: (-counts[c], c))[:n_characters]
    if not frequent:
        raise ValueError("a vocabulary cannot be learned from no text")

    def trained(size: int, given: Sequence[str]) -> dict[str, int]:
        fast = FastTokenizer(models.WordPiece(unk_token="[UNK]"))
        fast.normalizer, fast.pre_tokenizer = normalizer, pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(
            vocab_size=size,
            min_frequency=min_count,
            special_tokens=[*SPECIAL_TOKENS, *given],
            initial_alphabet=frequent,
            limit_alphabet=len(frequent),
            show_progress=False,
        )
        fast.train_from_iterator(texts, trainer)
        return fast.get_vocab()

    # Once without a single join, which says which characters occur inside of words; then with all of them given.
    characters = sorted(set(trained(1, ())) - set(SPECIAL_TOKENS))
    if len(SPECIAL_TOKENS) + len(characters) > vocab_size:
        raise ValueError(
            f"vocab_size must be {len(SPECIAL_TOKENS) + len(characters)} or more for these texts, which have that many "
            f"special tokens and characters, at the beginning of words and inside of them; got {vocab_size}. Fewer "
            "n_characters leave rare ones out"
        )
    vocabulary = trained(vocab_size, characters)
    return sorted(vocabulary, key=vocabulary.get)
