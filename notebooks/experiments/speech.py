"""What does an encoder-decoder learn that hears syllables, and where does its attention listen?

Data: sentences of one to five syllables by the recipe of `course_lib.data.syllables`, with white noise or a hum 5 to 30
dB below the speech; 8,000 to learn from, the same for all seeds, 400 to choose by, 400 to report on. 40 bands of mel.

Arms, each a Whisper of two and two layers and 96 features, 800 batches of 128: "all" has learned four tasks, drawn
anew for each sentence and update: to write the syllables, or to write them backwards in words of another language,
with times or without. "pink too" is "all" with pink noise in its training. "ctc" is an encoder of five layers, of about
as many parameters, that says at each position a syllable or nothing, trained by connectionist temporal classification
(Graves et al. 2006).

AdamW; the rate rises over 100 updates and falls over the last half. "all" and "ctc" have the rate that was best of four
after 400 updates, by the error on the validation sentences, with a seed of its own; "pink too" has the rate of "all".
Then three seeds train with it. An error is the number of syllables to be changed, put in or taken out, of 100 that were
said.

Rivals without a network: templates of cepstra, warped in time, whose number and penalty the validation sentences
choose; for times, equal parts and the softest positions of a sentence whose number of syllables is told. Measured on
all: levels and kinds of noise, speakers outside of those learned from, longer sentences, times; of the cross-attention
the share that lies inside the syllable that is being written, for each head, before training and after.

The weights of "all 1" are kept beside the record. Sounds are made once and kept in the cache.
"""

import time
from functools import cache
from importlib.metadata import version
from typing import NamedTuple

import numpy as np

from course_lib.data import syllables
from course_lib.decoding.search import greedy
from course_lib.models.whisper import WhisperConfig
from notebooks.experiments import _spoken as spoken
from notebooks.experiments import _templates as templates
from notebooks.experiments.harness import Experiment, Record, Waiting, main, of_trials, table

TUNED = ("all", "ctc")
ARMS = {  # arm -> the tasks it learns
    "all": tuple(spoken.PROMPTS),
    "ctc": (),
    "pink too": tuple(spoken.PROMPTS),
}
PEAKS, SEEDS, TRIAL_SEED = (1e-3, 2e-3, 4e-3, 8e-3), (1, 2, 3), 0
BATCH, UPDATES, TRIAL_UPDATES, WARMUP = 128, 800, 400, 100
CTC_LAYERS, MAPPED, KEPT = 5, 200, 20  # layers; sentences of which attention is measured; texts that are kept
COUNTS, PENALTIES, THRESHOLDS = (15, 40), (0.0, 2.5, 5.0, 10.0), (0.3, 0.4, 0.5)  # of the rivals
SIZES = {"d_model": 96, "n_layers": 2, "n_decoder_layers": 2, "n_heads": 4, "n_decoder_heads": 4}
SIZES |= {"d_ff": 256, "d_decoder_ff": 256, "init_std": 0.1, "dropout": 0.1}


class Run(NamedTuple):
    """A training, or the "rivals"; one with a `peak` of its rate is a trial of it."""

    arm: str
    seed: int
    peak: float | None = None

    @property
    def is_trial(self) -> bool:
        """Whether it serves to choose."""
        return self.peak is not None

    @property
    def name(self) -> str:
        """What the record calls this run."""
        return f"{self.arm} trial {self.peak:g}" if self.is_trial else f"{self.arm} {self.seed}"

    @property
    def updates(self) -> int:
        """The batches it learns from."""
        return TRIAL_UPDATES if self.is_trial else UPDATES

    @property
    def seconds(self) -> float:
        """Of one processor core, about."""
        return 600.0 if self.arm == "rivals" else 1.3 * self.updates + 60.0


TRIALS = [Run(arm, TRIAL_SEED, peak) for arm in TUNED for peak in PEAKS]
RUNS = table([*TRIALS, *(Run(arm, seed) for arm in ARMS for seed in SEEDS)])
RUNS |= table([Run("rivals", TRIAL_SEED)])


def config() -> WhisperConfig:
    """The sizes of all models."""
    ids = {"pad_id": spoken.PAD, "start_id": spoken.START, "end_id": spoken.END}
    return WhisperConfig(
        spoken.VOCABULARY, spoken.N_MELS, max_source_len=spoken.MOMENTS, max_len=spoken.LONGEST, **SIZES, **ids
    )


def model_of(arm: str):
    """An untrained model."""
    from dataclasses import replace

    from torch import nn

    from course_lib.torch import Whisper, fused_attention

    if arm != "ctc":
        return Whisper(config(), attention=fused_attention)
    model = Whisper(replace(config(), n_layers=CTC_LAYERS), attention=fused_attention)
    model.decoder = model.position = None  # its encoder alone is of use
    model.token = nn.Linear(model.config.d_model, spoken.N_SYLLABLES + 1)  # the last one: nothing
    return model


def rate(step: int, peak: float, updates: int) -> float:
    """Up over the first updates, level for half of all, and down to 0."""
    return peak * min(1.0, (step + 1) / WARMUP, 2 * (updates - step) / updates)


def device() -> str:
    """Where the models are."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def training_set(arm: str) -> spoken.Sounds:
    """What an arm learns from."""
    return spoken.sounds("train, pink too" if arm == "pink too" else "train")


def ctc_losses(model, features, labels):
    """The mean loss of a batch, by syllable: labels (B, K), -1 beyond the end."""
    import torch
    from torch.nn import functional as F

    log_p = model.token(model.encode(features).hidden).log_softmax(-1)  # (B, S, 21)
    lengths = (labels >= 0).sum(1)
    frames = torch.full_like(lengths, log_p.shape[1])
    return F.ctc_loss(log_p.transpose(0, 1), labels.clamp(min=0), frames, lengths, blank=spoken.N_SYLLABLES)


def train(run: Run, peak: float):
    """A trained model, and its losses."""
    import torch
    from torch.nn import functional as F

    torch.set_flush_denormal(True)  # numbers under 1e-38 take a processor ten times as long
    torch.manual_seed(run.seed)
    some, where = training_set(run.arm), device()
    model = model_of(run.arm).to(where).train()
    features = torch.tensor(some.features, device=where)  # of 16 bits
    if tasks := ARMS[run.arm]:
        rows = [spoken.targets(task, some) for task in tasks]
        longest = max(row.shape[1] for row in rows)
        rows = [np.pad(row, ((0, 0), (0, longest - row.shape[1]))) for row in rows]
    else:
        k = max(map(len, some.symbols))
        rows = [np.array([np.pad(one, (0, k - len(one)), constant_values=-1) for one in some.symbols])]
    rows = torch.tensor(np.stack(rows), device=where)  # (tasks, N, T)
    optimizer, losses = torch.optim.AdamW(model.parameters(), weight_decay=0.01), []
    rng = np.random.default_rng(run.seed)
    order = np.concatenate([rng.permutation(len(features)) for _ in range(-(-run.updates * BATCH // len(features)))])
    for step in range(run.updates):
        batch = order[step * BATCH : (step + 1) * BATCH]
        target = rows[rng.integers(len(rows), size=BATCH), batch]
        for group in optimizer.param_groups:
            group["lr"] = rate(step, peak, run.updates)
        sound = features[torch.tensor(batch, device=where)].float()
        if tasks:
            logits = model(sound, target[:, :-1]).logits
            loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=spoken.PAD)
        else:
            loss = ctc_losses(model, sound, target)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    return model.eval(), torch.stack(losses).cpu().numpy()


def written(model, features, prompt, size: int = 400) -> list[np.ndarray]:
    """What a model writes of sounds (N, bands, F) after a prompt, ids without it."""
    import torch

    from course_lib.torch.decoding import NextLogits

    found, where = [], next(model.parameters()).device
    for i in range(0, len(features), size):
        some = torch.tensor(features[i : i + size], device=where).float()
        start = np.tile(np.array(prompt), (len(some), 1))
        found += list(greedy(NextLogits(model, some), start, spoken.END, spoken.LONGEST - len(prompt)))
    return found


def heard(model, arm: str, features) -> list[list[int]]:
    """The syllables that a model hears."""
    if arm == "ctc":
        return [one.symbols for one in collapsed(model, features)]
    return [spoken.said(ids) for ids in written(model, features, spoken.PROMPTS["words"])]


def collapsed(model, features) -> list[templates.Heard]:
    """What a model of connectionist temporal classification says: the likeliest at each position, repeats once."""
    import torch

    found, where = [], next(model.parameters()).device
    for i in range(0, len(features), 400):
        with torch.no_grad():
            some = torch.tensor(features[i : i + 400], device=where).float()
            best = model.token(model.encode(some).hidden).argmax(-1).cpu().numpy()
        for row in best:
            begins = np.flatnonzero(np.diff(row, prepend=-1))
            begins = begins[row[begins] < spoken.N_SYLLABLES]
            found.append(templates.Heard(row[begins].tolist(), begins * spoken.MOMENT, begins * spoken.MOMENT))
    return found


def wrong(found, some: spoken.Sounds, backwards: bool = False) -> list[int]:
    """The edits of each sentence."""
    true = [symbols[::-1] if backwards else symbols for symbols in some.symbols]
    return [spoken.edits(*pair) for pair in zip(found, true, strict=True)]


def error(edits, some: spoken.Sounds) -> float:
    """Edits of 100 syllables."""
    return round(100 * sum(edits) / total(some.symbols), 2)


def errors(recorded: dict, arm: str, name: str) -> np.ndarray:
    """Of a recorded arm on a set: numbers (seeds, sentences) whose mean is the edits of 100 syllables."""
    runs = ["rivals 0"] if arm == "rivals" else [f"{arm} {seed}" for seed in SEEDS]
    edits = np.array([recorded[run]["edits"][name] for run in runs])
    return 100 * edits * edits.shape[1] / recorded["all 1"]["said"][name]


def shares(model, task: str, part: str) -> list[list[float]]:
    """The mean share of each head's cross-attention inside the syllable being written: layers of heads."""
    import torch

    from course_lib.torch import Whisper

    some = spoken.sounds(part)
    where, ids = next(model.parameters()).device, spoken.targets(task, some)[:MAPPED]
    plain = Whisper(model.config).to(where).eval()  # the fused attention keeps no weights
    plain.load_state_dict(model.state_dict())
    with torch.no_grad():
        sound = torch.tensor(some.features[:MAPPED], device=where).float()
        layers = plain(sound, torch.tensor(ids[:, :-1], device=where), return_layers=True).cross_weights
    found = []
    for weights in layers:  # (B, H, T, S)
        rows = zip(weights.cpu().numpy(), ids, *some[1:], strict=False)
        each = [of_sentence(*row) for row in rows]
        found.append(np.concatenate(each, axis=1).mean(axis=1).round(4).tolist())
    return found


def of_sentence(weights, ids, symbols, starts, ends) -> np.ndarray:
    """The shares of one sentence, weights (H, T, S), in the order in which it is written: (H, K)."""
    mask = syllables.position_mask(starts, ends, weights.shape[-1])
    writes = np.flatnonzero((ids[1:] >= spoken.WORDS) & (ids[1:] < spoken.CLOCK))  # where a syllable comes next
    return spoken.inside(weights[:, writes], mask[::-1] if ids[1] == spoken.TRANSLATE else mask)


def measure(run: Run, record: Record) -> dict:
    """Train a model and say what it hears."""
    begin = time.perf_counter()
    if run.arm == "rivals":
        return rivals() | {"seconds": round(time.perf_counter() - begin, 1)}
    peak = run.peak if run.is_trial else chosen(run, record)
    model, losses = train(run, peak)
    seconds = time.perf_counter() - begin
    some = spoken.sounds("validation")
    figures = {"peak": peak, "validation": error(wrong(heard(model, run.arm, some.features), some), some)}
    figures["losses"] = losses[: len(losses) // 50 * 50].reshape(-1, 50).mean(1).round(3).tolist()
    if not run.is_trial:
        figures |= of_sets(model, run.arm)
        if run.arm != "ctc":
            figures |= of_tasks(model, run, record)
            figures |= {"shares": of_attention(model, run.arm), "untrained": of_attention(untrained(run), run.arm)}
        if run.name == "all 1":
            keep(model, record)
    figures |= {"parameters": sum(weight.numel() for weight in model.parameters()), "seconds": round(seconds, 1)}
    return figures | {"device": device_name(), "version": version("torch")}


def of_sets(model, arm: str) -> dict:
    """Of each set: the edits of each sentence, and how many syllables were said and written in all."""
    edits, said, written_ = {}, {}, {}
    for name in list(spoken.SETS)[3:]:
        some = spoken.sounds(name)
        found = heard(model, arm, some.features)
        edits[name], said[name], written_[name] = wrong(found, some), total(some.symbols), total(found)
    return {"edits": edits, "said": said, "written": written_}


def total(sentences) -> int:
    """How many syllables they have."""
    return sum(map(len, sentences))


def of_tasks(model, run: Run, record: Record) -> dict:
    """Each task that it has learned, on the test sentences; what it does without a task, and told to translate."""
    some = spoken.sounds("test")
    figures, texts = {"tasks": {}, "late": {}}, []
    for task in ARMS[run.arm]:
        ids = written(model, some.features, spoken.PROMPTS[task])
        backwards = task.startswith("translation")
        figures["tasks"][task] = error(wrong([spoken.said(row) for row in ids], some, backwards), some)
        if task.endswith("times"):
            rows = zip(ids, some.starts, some.ends, strict=True)
            way = -1 if backwards else 1
            figures["late"][task] = [spoken.late(spoken.times_of(row), a[::way], b[::way]) for row, a, b in rows]
        texts += [f"{task}: {text_of(row)}" for row in ids[:KEPT]]
    for name, prompt in (("no task", (spoken.START,)), ("told to translate", spoken.PROMPTS["translation"])):
        ids = written(model, some.features, prompt)
        figures[name] = {
            "kinds": {kind: sum(kind_of(row) == kind for row in ids) for kind in ("syllables", "other", "mixed")},
            "with times": sum(bool((row >= spoken.CLOCK).any()) for row in ids),
            "as said": error(wrong([spoken.said(row) for row in ids], some), some),
            "backwards": error(wrong([spoken.said(row) for row in ids], some, backwards=True), some),
        }
        texts += [f"{name}: {text_of(row)}" for row in ids[:KEPT]]
    record.keep(run.name.replace(" ", "-").replace(",", ""), texts)
    return figures


def kind_of(ids) -> str:
    """Whether a text is written in syllables or in the other language."""
    ours = ((ids >= spoken.WORDS) & (ids < spoken.OTHER)).any()
    other = ((ids >= spoken.OTHER) & (ids < spoken.CLOCK)).any()
    return "mixed" if ours == other else "syllables" if ours else "other"


def text_of(ids) -> str:
    """Ids as a reader reads them; the other language has capitals."""
    marks = ["<pad>", "<end>", "<start>", "<transcribe>", "<translate>", "<no times>", "<times>"]
    words = [*marks, *syllables.SYLLABLES, *(name.upper() for name in syllables.SYLLABLES)]
    return " ".join(words[i] if i < spoken.CLOCK else f"{(i - spoken.CLOCK) * spoken.MOMENT:.2f}" for i in ids if i)


def of_attention(model, arm: str) -> dict:
    """task -> part -> shares."""
    return {task: {part: shares(model, task, part) for part in ("validation", "test")} for task in ARMS[arm]}


def trained():
    """The Whisper of "all 1", with weights of 16 bits and an attention that returns its weights."""
    from course_lib.checkpoints.weights import read_checkpoint
    from course_lib.torch import Whisper, set_state

    folder = EXPERIMENT.record.folder / "all-1"
    if not (folder / "config.json").exists():
        raise Waiting("run first speech.py 'all 1'")
    settings, weights = read_checkpoint(folder)
    model = Whisper(WhisperConfig.from_hugging_face(settings))
    set_state(model, {name: value.astype(np.float32) for name, value in weights.items()})
    return model.eval()


@cache
def untrained(run: Run):
    """The model as it began."""
    import torch

    torch.manual_seed(run.seed)
    return model_of(run.arm).to(device()).eval()


def keep(model, record: Record) -> None:
    """Write the weights, in 16 bits, into the record's folder."""
    from course_lib.checkpoints.weights import write_checkpoint
    from course_lib.torch import get_state

    half = {name: value.astype(np.float16) for name, value in get_state(model).items()}
    write_checkpoint(record.folder / "all-1", model.config.to_hugging_face(), half)


def device_name() -> str:
    """What computed."""
    import torch

    return torch.cuda.get_device_name() if device() == "cuda" else "cpu"


def rivals() -> dict:
    """Templates on each set, and times and shares by rules, each with the settings that validation chooses."""
    held = spoken.sounds("validation")
    few, found = spoken.Sounds(*(part[:100] for part in held)), {}
    for n in COUNTS:
        for penalty in PENALTIES:
            reader = templates.Templates(spoken.sounds("train"), n, penalty)
            found[n, penalty] = error(wrong([reader(x).symbols for x in few.features], few), few)
    n, penalty = min(found, key=found.get)
    reader = templates.Templates(spoken.sounds("train"), n, penalty)
    figures = {"n": n, "penalty": penalty, "trials": [[*key, value] for key, value in found.items()], "edits": {}}
    for name in list(spoken.SETS)[3:]:
        some = spoken.sounds(name)
        heard_ = [reader(x) for x in some.features]
        figures["edits"][name] = wrong([one.symbols for one in heard_], some)
        if name == "test":
            test = heard_
    figures["late"], figures["shares"] = {}, {}
    for name, rule in (("equal parts", templates.equal_parts), ("dips", templates.dips)):
        best = min(THRESHOLDS, key=lambda t, rule=rule: np.mean(by_rule(rule, held, t)[0]))
        figures[f"{name} threshold"] = best
        figures["late"][name], figures["shares"][name] = by_rule(rule, spoken.sounds("test"), best)
    some = spoken.sounds("test")
    rows = zip(test, some.starts, some.ends, strict=True)
    figures["late"]["templates"] = [spoken.late(np.stack(one[1:], 1).ravel(), a, b) for one, a, b in rows]
    masks = [syllables.position_mask(a, b, some.features.shape[-1] // 2) for a, b in zip(*some[2:], strict=True)]
    figures["shares"]["uniform"] = round(float(np.concatenate([m.mean(1) for m in masks[:MAPPED]]).mean()), 4)
    return figures


def by_rule(rule, some: spoken.Sounds, threshold: float):
    """How late a rule is for each sentence, and the mean share of its parts inside their syllables."""
    late, inside = [], []
    for x, symbols, starts, ends in zip(*some, strict=True):
        begin, end = rule(x, len(symbols), threshold)
        late.append(spoken.late(np.stack([begin, end], 1).ravel(), starts, ends))
        parts, mask = (syllables.position_mask(*pair, x.shape[-1] // 2) for pair in ((begin, end), (starts, ends)))
        inside.append(spoken.inside(parts.astype(float), mask))
    return late, round(float(np.concatenate(inside[:MAPPED]).mean()), 4)


def chosen(run: Run, record: Record) -> float:
    """The peak of the arm's best trial; "pink too" takes that of "all"."""
    arm = "all" if run.arm == "pink too" else run.arm
    trials = of_trials((Run(arm, TRIAL_SEED, peak).name for peak in PEAKS), record).values()
    return min(trials, key=lambda figures: (figures["validation"], figures["peak"]))["peak"]


EXPERIMENT = Experiment(__doc__, RUNS, measure, Record.of(__file__), "pink")

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
