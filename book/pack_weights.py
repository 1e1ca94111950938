"""Pack the checkpoints that the book's live figures load: python book/pack_weights.py [FOLDER] writes FOLDER/NAME.js.

The book's build runs it, into `_static/live/weights`. A file is a script, so that a page which was opened from the file
system can load it: it hands a header and one run of bytes, as base64, to `live.weights` of `book/_static/live/live.js`.

Every matrix is kept as integers of `BITS` bits, each row with a step of its own that they are multiples of; vectors and
the steps in half precision. What that changes, for 1,000 held-out sentences and a beam of 4, and for 200 blanks
(`python tests/benchmarks/live.py`):

    bits of a weight         16      12      11      10       8
    translator, MB         6.40    4.87    4.48    4.09    3.31
    small BERT, MB         5.03    3.84    3.53    3.22    2.61
    translations equal    1.000   0.998   0.996   0.983   0.958
    BLEU                  45.79   45.78   45.78   45.68   45.75
    best tokens equal     1.000   1.000   0.990   0.990   0.975

So the quality would allow 8 bits. But a page shall say what the lectures print, and with 12 it does, save two sentences
of a thousand.
"""

import base64
import hashlib
import json
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from course_lib.files import replacing
from course_lib.numpy import BertForMaskedLM, load_translator
from course_lib.numpy.state import get_state
from course_lib.pretrained import SHIPPED

BITS = 12  # of an integer; see above
FORMAT = 1  # counts on when what is written changes, so that files of an older format are written anew
FOLDER = Path(__file__).parents[1] / "_build" / "html" / "_static" / "live" / "weights"


class Opened(NamedTuple):
    """A checkpoint as it is packed."""

    kind: str  # which model of the book's JavaScript reads it
    config: dict  # its sizes, by the names of `BlockConfig`
    tokenizer: dict
    weights: dict[str, np.ndarray]  # by the names of `course_lib.numpy`


def translator() -> Opened:
    """The Spanish-English translator, with the tokenizer of both languages."""
    opened = load_translator("translator-es-en")
    config, model = opened.model.config, _tokenizer("translator-es-en")["model"]
    names = ("n_layers", "n_heads", "activation", "pre_norm", "norm_eps", "max_len", "pad_id")
    names += ("positions", "share_embeddings", "tie_output")
    tokenizer = {
        "tokens": _in_order(model["vocab"]),
        "merges": [" ".join(pair) for pair in model["merges"]],
        "lower": opened.source_tokenizer.lower,
    }
    return Opened("translator", {name: getattr(config, name) for name in names}, tokenizer, get_state(opened.model))


def bert() -> Opened:
    """The small English BERT with its head for blanks."""
    model, tokenizer = BertForMaskedLM.from_pretrained("bert-en"), _tokenizer("bert-en")
    names = ("n_layers", "n_heads", "activation", "pre_norm", "norm_eps", "max_len")
    config = {name: getattr(model.config, name) for name in names}
    words = {"tokens": _in_order(tokenizer["model"]["vocab"]), "lower": tokenizer["normalizer"]["lowercase"]}
    return Opened("bert", config, words, get_state(model))


CHECKPOINTS = {"translator-es-en": translator, "bert-en": bert}
LICENCES = {"translator-es-en": "BSD 3-Clause", "bert-en": "CC BY-SA 3.0"}


def rounded(weight: np.ndarray, bits: int = BITS) -> tuple[np.ndarray, np.ndarray | None]:
    """What is kept of a weight: of a vector, and with 16 bits, half-precision numbers and None.

    Of a matrix (n, d), the integers (n, d), at most 2^(bits - 1) - 1 in size, and the step of each row (n, 1).
    """
    if weight.ndim < 2 or bits == 16:
        return weight.astype("<f2"), None
    most = 2 ** (bits - 1) - 1
    steps = (np.abs(weight).max(axis=1, keepdims=True) / most).astype("<f2")
    # A step that half precision rounds down would not reach the largest weight, and one may be too small for it.
    divisors = np.where(steps > 0, steps, 1).astype(np.float64)
    return np.clip(np.rint(weight / divisors), -most, most).astype(np.int64), steps


def kept(weight: np.ndarray, bits: int = BITS) -> np.ndarray:
    """The weight as a reader of the file has it, float64."""
    values, steps = rounded(weight, bits)
    return values.astype(np.float64) if steps is None else values * steps.astype(np.float64)


def as_bytes(values: np.ndarray, steps: np.ndarray | None, bits: int = BITS) -> bytes:
    """Half-precision numbers, the low byte first; or steps, then integers from zero on, packed without gaps."""
    if steps is None:
        return values.tobytes()
    numbers = (values.ravel() + 2 ** (bits - 1) - 1).astype(np.uint16)
    shifts = np.arange(bits - 1, -1, -1, dtype=np.uint16)
    return steps.tobytes() + np.packbits((numbers[:, None] >> shifts & 1).astype(np.uint8)).tobytes()


def script(name: str, bits: int = BITS) -> str:
    """The file of a checkpoint."""
    opened = CHECKPOINTS[name]()
    tensors, parts, at = [], [], 0
    for weight_name, weight in opened.weights.items():
        values, steps = rounded(weight, bits)
        part = as_bytes(values, steps, bits)
        kind = 16 if steps is None else bits
        tensors.append({"name": weight_name, "shape": list(weight.shape), "bits": kind, "at": at})
        parts.append(part)
        at += len(part)
    header = {"kind": opened.kind, "config": opened.config, "tokenizer": opened.tokenizer, "tensors": tensors}
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":"))
    return f'live.weights("{name}", {text}, "{base64.b64encode(b"".join(parts)).decode()}");\n'


def write(folder: Path) -> list[Path]:
    """Write every checkpoint's file into a folder, unless it stands there; return their paths."""
    written = []
    for name in CHECKPOINTS:
        path, first = folder / f"{name}.js", f"// {_stamp(name)}\n"
        if not path.is_file() or not _begins_with(path, first):
            with replacing(folder) as scratch:  # half a file would begin as a whole one does
                (scratch / path.name).write_text(first + script(name), encoding="utf-8")
        written.append(path)
    return written


def _stamp(name: str) -> str:
    """Says from what a file was made: equal for equal checkpoints and an equal way to pack them."""
    files = sorted(path for path in (SHIPPED / name).iterdir() if path.suffix in (".json", ".safetensors"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
    made = f"{name}, format {FORMAT}, {BITS} bits, of files with the SHA-256 {digest}"
    return f"{made}; {LICENCES[name]}, see the page on data and licences"


def _begins_with(path: Path, first: str) -> bool:
    with path.open(encoding="utf-8") as file:
        return file.readline() == first


def _tokenizer(name: str) -> dict:
    return json.loads((SHIPPED / name / "tokenizer.json").read_text(encoding="utf-8"))


def _in_order(vocabulary: dict[str, int]) -> list[str]:
    assert sorted(vocabulary.values()) == list(range(len(vocabulary)))
    return sorted(vocabulary, key=vocabulary.get)


if __name__ == "__main__":
    for file in write(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER):
        print(f"{file}: {file.stat().st_size / 1e6:.2f} MB")
