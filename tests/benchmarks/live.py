"""What the book's live figures cost, and what packing their weights changes: python tests/benchmarks/live.py, by hand.

    --weights   texts and blanks with weights of 8 to 16 bits, against those of float16 (three minutes)
    --browser   seconds to the first answer and to the next ones, in Chromium, from the file system (one minute)

What was measured stands in `book/pack_weights.py` and in the README beside this file.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
from course_lib.data.sentence_pairs import load, split
from course_lib.evaluation.bleu import bleu
from tests.support.live_page import draw_live, pack_weights, write_page

BITS = (16, 12, 11, 10, 8)


def held_out(n: int):
    """n pairs of the balanced test set, of all lengths."""
    test = split(load(progress=False)).test
    return test.take(np.linspace(0, len(test.sources) - 1, n).round().astype(int))


def weights(n: int) -> None:
    """For each number of bits: the size of a file, equal translations and their BLEU, equal best tokens in blanks."""
    from course_lib.numpy import BertForMaskedLM, softmax
    from course_lib.numpy.state import get_state, set_state
    from course_lib.text.wordpiece import WordPiece
    from course_lib.torch import load_translator
    from course_lib.torch.state import get_state as get_torch
    from course_lib.torch.state import set_state as set_torch

    pairs = held_out(n)
    references = [[text] for text in pairs.targets]
    translate, bert = load_translator(), BertForMaskedLM.from_pretrained("bert-en")
    wordpiece = WordPiece.from_pretrained("bert-en")
    torch_weights = {name: np.asarray(value) for name, value in get_torch(translate.model).items()}
    bert_weights, rng = get_state(bert), np.random.default_rng(0)
    blanks = [row for row in wordpiece.encode(list(pairs.targets), pad=False).ids if 3 < len(row) <= 32][:200]
    places = [int(rng.integers(1, len(row) - 1)) for row in blanks]

    def fill():
        found = []
        for row, place in zip(blanks, places, strict=True):
            asked = row.copy()[None]
            asked[0, place] = wordpiece.mask_id
            found.append(softmax(bert(asked, at=asked == wordpiece.mask_id).logits[0]))
        return np.array(found)

    for bits in BITS:
        set_torch(translate.model, {k: pack_weights.kept(w, bits).astype(np.float32) for k, w in torch_weights.items()})
        set_state(bert, {name: pack_weights.kept(weight, bits) for name, weight in bert_weights.items()})
        texts, p = translate(list(pairs.sources)), fill()
        if bits == BITS[0]:
            first_texts, first_p = texts, p
        sizes = [len(pack_weights.script(name, bits).encode()) / 1e6 for name in pack_weights.CHECKPOINTS]
        equal = np.mean([a == b for a, b in zip(texts, first_texts, strict=True)])
        best = np.mean(p.argmax(1) == first_p.argmax(1))
        score = bleu(texts, references).value
        print(
            f"{bits:2d} bits  files of {sizes[0]:.2f} and {sizes[1]:.2f} MB  equal translations {equal:.3f} of {n}  "
            f"BLEU {score:.2f}  equal best tokens {best:.3f} of {len(blanks)}  "
            f"largest change of a probability {np.abs(p - first_p).max():.4f}",
            flush=True,
        )


SHORT = ("Hace frío.", "Nunca he visto el mar.", "Hace demasiado frío para nadar.")
ASK = """async (asked) => {
  const began = performance.now();
  await live.ask("translator-es-en", "translate", asked);
  return performance.now() - began;
}"""


def browser() -> None:
    """Seconds from the first touch to the first answer, and milliseconds of the short sentences after it.

    By the clock and by the processor: on a busy machine the two differ.
    """
    from tests.support.site_checker import open_browser

    with tempfile.TemporaryDirectory() as folder, open_browser() as running:
        url, session = write_page(Path(folder)).as_uri(), running.new_browser_cdp_session()

        def processor() -> float:
            found = session.send("SystemInfo.getProcessInfo")["processInfo"]
            return sum(process["cpuTime"] for process in found if process["type"] == "renderer")

        firsts, later = [], {1: [], 4: []}
        for _ in range(5):
            page = running.new_page()
            page.goto(url)
            firsts.append(page.evaluate(ASK, {"text": draw_live.TEXTS["translator"], "width": 4}) / 1e3)
            for width, times in later.items():
                for text in SHORT * 2:
                    before = processor()
                    by_clock = page.evaluate(ASK, {"text": text, "width": width})
                    times.append((by_clock, 1e3 * (processor() - before)))
            page.close()
        print(f"first answer: median {np.median(firsts):.2f} s of {len(firsts)}, {max(firsts):.2f} s at most")
        for width, times in later.items():
            for how, spent in zip(("clock", "processor"), np.transpose(times), strict=True):
                print(f"width {width}, by the {how}: median {np.median(spent):.0f} ms, {spent.max():.0f} at most")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", action="store_true", help="what packing the weights changes")
    parser.add_argument("--browser", action="store_true", help="how long a reader waits")
    parser.add_argument("--sentences", type=int, default=1000, help="held-out sentences to translate (1000)")
    chosen = parser.parse_args()
    if chosen.weights or not chosen.browser:
        weights(chosen.sentences)
    if chosen.browser or not chosen.weights:
        browser()
