"""Everything in the library that saves a file for its user, small and large, and a program that leaves them no room.

`python -m tests.support.writers FOLDER MODE...` prints, as JSON, how each fared: "limit" allows no file of more
than some bytes, "disk" takes FOLDER for a disk of its own and fills it.
"""

import json
import os
import resource
import sys
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer as FastTokenizer
from tokenizers import models, normalizers

from course_lib.checkpoints.weights import write_checkpoint
from course_lib.decoding.translator import Translator, save_translator
from course_lib.models.bert import BertConfig
from course_lib.models.transformer import TransformerConfig
from course_lib.numpy import BertModel, Transformer, get_state
from course_lib.text.bpe import BytePairEncoding
from course_lib.text.wordpiece import SPECIAL_TOKENS, WordPiece

SMALL, LARGE = 1, 60  # times the size


def learned(size):
    return BytePairEncoding.train(
        [f"{a}{b}{c}" for a in "abcdefgh" for b in "ijklmnop" for c in "qrstuvwx"], 30 + 5 * size
    )


def bert(folder, size):
    config = BertConfig(vocab_size=10 * size, d_model=12, n_layers=1, n_heads=2, d_ff=8)
    return BertModel(config).save_pretrained(folder)


def translator(folder, size):
    tokenizer = learned(SMALL)
    n = tokenizer.vocab_size
    model = Transformer(TransformerConfig(n, n, d_model=8 * size, n_layers=1, n_heads=2, d_ff=8, max_len=20))
    return save_translator(folder, Translator(model, tokenizer, tokenizer), get_state(model))


def wordpieces(folder, size):
    words = [*SPECIAL_TOKENS, *(f"word{i}" for i in range(10 * size))]
    fast = FastTokenizer(models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    fast.normalizer = normalizers.BertNormalizer()
    return WordPiece(fast).save_pretrained(folder)


WRITERS = {
    "write_checkpoint": lambda folder, size: write_checkpoint(folder, {"a": size}, {"a": np.zeros(100 * size)}),
    "a long config.json": lambda folder, size: write_checkpoint(folder, {"a": "a" * 400 * size}, {"a": np.zeros(1)}),
    "save_pretrained": bert,
    "save_translator": translator,
    "BytePairEncoding.save": lambda folder, size: learned(size).save(folder / "tokenizer.json"),
    "WordPiece.save_pretrained": wordpieces,
}


def contents(folder):
    """Every file, hidden ones included."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def attempt(writer, folder, mode):
    folder.mkdir()
    writer(folder, SMALL)
    before, filler, limits = contents(folder), folder.parent / "filler", resource.getrlimit(resource.RLIMIT_FSIZE)
    if mode == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (max(map(len, before.values())), limits[1]))
    else:
        free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
        filler.write_bytes(bytes(free - 2 * 4096))
    error = None
    try:
        writer(folder, LARGE)
    except Exception as caught:
        error = caught
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    filler.unlink(missing_ok=True)
    return {
        "error": repr(error),
        "errno": getattr(error, "errno", None),
        "filename": getattr(error, "filename", None),
        "unchanged": contents(folder) == before and len(list(folder.iterdir())) == len(before),
    }


if __name__ == "__main__":
    place, *modes = sys.argv[1:]
    print(json.dumps({
        f"{mode} {name}": attempt(writer, Path(place) / f"{mode} {name}", mode)
        for mode in modes for name, writer in WRITERS.items()
    }))  # fmt: skip
