"""What does beam search miss? The most probable of all translations, by exact search, against beams of several widths.

A log-probability only falls when a token is appended, so a beginning that is already less probable than a finished
sentence need not be continued. Exact search begins with what a beam of 8 found, extends all beginnings above it
together, token by token, and raises the bound whenever it finds something better. When no beginning is left, the best
sentence found is the best there is (Stahlberg and Byrne 2019 do the same depth first). Nothing forbids the empty
sentence. The length penalty is off in all runs: what is compared is the log-probability.

The model is the translator that ships, the sentences are the 1,000 of its test set. There is no luck in it, so no seed.
A search that has looked at MOST beginnings is given up, and its sentence counted as not proven. Of each sentence a run
keeps the log-probability, whether it is proven, and the text. The lecture *Decoding* tells what came out.
"""

import time
from importlib.metadata import version
from typing import NamedTuple

import numpy as np

from course_lib.data import sentence_pairs
from course_lib.decoding.search import beam_search
from course_lib.evaluation.bleu import bleu
from course_lib.text.padding import padded
from course_lib.torch import fused_attention, load_translator
from notebooks.experiments.harness import Experiment, Record, main, table

CORPUS, LONGER, MOST = "tatoeba-es-en", 50, 100_000
TOLERANCE = 1e-4  # nats: what float32 may make of the same sentence in another batch


class Run(NamedTuple):
    """A beam of some width, or, for a width of None, exact search."""

    label: str
    width: int

    @property
    def name(self) -> str:
        """What the record calls this run."""
        return self.label

    @property
    def seconds(self) -> float:
        """Of one processor core, about."""
        return 480 if self.label == "exact" else 15 + 6 * self.width


# exact search begins with the width that it has here
RUNS = table([*(Run(f"beam-{width}", width) for width in (1, 2, 4, 8, 32)), Run("exact", 8)])


def beams(translator, sources, width: int) -> list[tuple[float, np.ndarray]]:
    """Of each source the most probable hypothesis of a beam: its log-probability and its ids, with the end token."""
    tokenizer, ids, found = translator.source_tokenizer, translator.source_tokenizer.encode(list(sources)), {}
    order = np.argsort([len(x) for x in ids], kind="stable")
    for first in range(0, len(order), 50):
        rows = order[first : first + 50]
        begin, most = np.full((len(rows), 1), tokenizer.start_id), np.array([len(ids[i]) + LONGER for i in rows])
        asked = translator.model.next_logits(padded([ids[i] for i in rows]))
        out = beam_search(asked, begin, tokenizer.end_id, most, width, alpha=0.0)
        for row, texts, scores in zip(rows, out.ids, out.scores, strict=True):
            found[row] = float(scores[0]), texts[0][texts[0] != tokenizer.pad_id]
    return [found[i] for i in range(len(ids))]


def exact(translator, source: str, log_p: float, ids: np.ndarray) -> tuple[float, np.ndarray, bool]:
    """The most probable translation, given one that is known; and whether it is proven that there is no better one."""
    tokenizer = translator.source_tokenizer
    asked = translator.model.next_logits(padded(tokenizer.encode([source])))
    bound, best, rows, totals, looked_at = log_p + TOLERANCE, ids, np.array([[tokenizer.start_id]]), np.zeros(1), 0
    while len(rows):
        looked_at += len(rows)
        if looked_at > MOST or rows.shape[1] > translator.model.config.max_len:
            return (log_p if best is ids else bound), best, False
        z = asked(rows)
        z -= z.max(axis=1, keepdims=True)
        after = totals[:, None] + z - np.log(np.exp(z).sum(axis=1, keepdims=True))  # (N, V)
        ended = after[:, tokenizer.end_id].copy()
        after[:, tokenizer.end_id] = -np.inf
        if ended.max() > bound:
            bound, best = float(ended.max()), np.append(rows[ended.argmax(), 1:], tokenizer.end_id)
        parents, tokens = np.nonzero(after > bound)
        rows, totals = np.concatenate([rows[parents], tokens[:, None]], axis=1), after[parents, tokens]
        if len(rows):
            asked.reorder(parents)
    return (log_p if best is ids else bound), best, True


def measure(run: Run, record: Record) -> dict:
    """Search for a translation of every test sentence, and keep what was found."""
    test = sentence_pairs.split(sentence_pairs.load(CORPUS)).test
    translator, begin = load_translator(attention=fused_attention), time.process_time()
    found = [(*one, False) for one in beams(translator, test.sources, run.width)]
    if run.label == "exact":
        found = [exact(translator, x, *one[:2]) for x, one in zip(test.sources, found, strict=True)]
    seconds = time.process_time() - begin
    texts = translator.target_tokenizer.decode([ids for _, ids, _ in found])
    lines = [f"{p:.4f}\t{int(proven)}\t{text}" for (p, _, proven), text in zip(found, texts, strict=True)]
    record.keep(run.name, lines)
    return {
        "log_p": round(float(np.mean([p for p, _, _ in found])), 4),
        "proven": sum(proven for _, _, proven in found),
        "empty": texts.count(""),
        "bleu": [round(x, 2) for x in bleu(texts, list(test.targets))],
        "seconds": round(seconds, 1),
        "version": version("torch"),
    }


def read(name: str) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """What a recorded run found of each test sentence: log-probabilities, whether they are proven, texts."""
    lines = (EXPERIMENT.record.folder / f"{name}.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    log_p, proven, texts = zip(*(line.split("\t") for line in lines), strict=True)
    return np.array(log_p, float), np.array(proven) == "1", list(texts)


EXPERIMENT = Experiment(__doc__, RUNS, measure, Record.of(__file__), "exact")

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
