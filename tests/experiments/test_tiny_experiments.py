"""Every experiment still works: a run of each, from the data to the record, with little data and few updates."""

import functools
import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

from course_lib.acting.rollouts import rollout
from course_lib.batches.trajectories import Episode
from course_lib.checkpoints.weights import read_checkpoint
from course_lib.data import conll, paraphrases, pretraining_texts, resolve, reviews, sentence_pairs, wikitext
from course_lib.evaluation.decision_baselines import Planner
from course_lib.models.bert import BertConfig
from course_lib.torch import BertModel, DecisionTransformer, get_state, linear_attention, load_translator
from course_lib.torch.training.precision import bfloat16_is_faster
from notebooks.experiments import (
    _patch_positions,
    _pretraining,
    ablations,
    cliff,
    decisions,
    exact_search,
    family,
    fine_tuning,
    first_symbol,
    four_tasks,
    frozen_lake,
    gpt,
    grouped_heads,
    in_context,
    long_inputs,
    long_reviews,
    on_a_gpu,
    parts,
    positions,
    pretrain_bert,
    pretraining,
    pretraining_pays,
    recurrence,
    rnn_attention,
    score_scale,
    train_translator,
    vision,
    vision_maps,
    warm_up,
)
from notebooks.experiments.harness import Record, main


@pytest.fixture(autouse=True)
def no_emulated_bfloat16(monkeypatch):
    """Train in float32 on a processor that emulates bfloat16: there it takes minutes, and says nothing more."""
    if not bfloat16_is_faster("cpu"):
        autocast = torch.autocast
        monkeypatch.setattr(torch, "autocast", lambda *_, **__: autocast("cpu", enabled=False))


NARROW = {"hidden_size": 24, "num_attention_heads": 2, "intermediate_size": 48}


@pytest.fixture(scope="module")
def narrow_minilm(tmp_path_factory):
    """A folder with MiniLM's vocabulary and its six layers, a sixteenth as wide, of random weights."""
    shipped, folder = resolve("minilm-l6"), tmp_path_factory.mktemp("checkpoints") / "minilm-l6"
    settings = json.loads((shipped / "config.json").read_text()) | NARROW
    BertModel(BertConfig.from_hugging_face(settings)).save_pretrained(folder)
    for name in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(shipped / name, folder)
    return folder


@pytest.fixture(autouse=True)
def small_minilm(narrow_minilm, monkeypatch):
    """What works at this width works at the full one; a folder here of a checkpoint's name comes before the shipped."""
    monkeypatch.chdir(narrow_minilm.parent)


@pytest.fixture(scope="module")
def split():
    pairs = sentence_pairs.load("tatoeba-es-en")
    some = np.arange(0, len(pairs.sources), 150)  # pairs of short sentences and of long ones
    return sentence_pairs.split(pairs.take(some), validation=8, test=8, natural_test=4)


@pytest.fixture
def little(split, monkeypatch):
    """The data of the translations cut to a few hundred pairs, and their runs to the updates of an instant."""
    monkeypatch.setattr(sentence_pairs, "load", lambda corpus: corpus)
    monkeypatch.setattr(sentence_pairs, "split", lambda pairs: split)
    for module in (rnn_attention, ablations):
        monkeypatch.setattr(module, "SECONDS", 0.01)
    monkeypatch.setattr(rnn_attention, "MAX_LEN", 10)
    monkeypatch.setattr(rnn_attention, "TRIAL_SECONDS", 0.01)
    rnn_attention.prepared.cache_clear()
    yield
    rnn_attention.prepared.cache_clear()


def made(module, folder, *words):
    """What the runs of these words record in a folder of the test's own, where nothing was recorded."""
    experiment = replace(module.EXPERIMENT, record=Record(folder / "tiny.json"))
    assert main(experiment, module.__file__, list(words)) == 0
    return experiment.record.read()


def test_a_recurrent_translator(little, tmp_path, monkeypatch):
    monkeypatch.setattr(rnn_attention, "TRIALS", rnn_attention.TRIALS[-2:])
    trials = [trial.name for trial in rnn_attention.TRIALS]
    found = made(rnn_attention, tmp_path, *trials, "additive-torch-0")
    recorded = rnn_attention.RECORD.read()
    assert list(found) == [*trials, "additive-torch-0"]
    run, before = found["additive-torch-0"], recorded["additive-torch-0"]
    assert run.keys() == before.keys() and run["parameters"] == before["parameters"] and run["updates"] >= 1
    best = min((found[name] for name in trials), key=lambda figures: figures["nll"])
    assert (run["peak"], run["tokens"]) == (best["peak"], best["tokens"])
    texts = (tmp_path / "tiny" / "additive-torch-0.txt").read_text(encoding="utf-8").splitlines()
    assert len(texts) == 8 and len(list((tmp_path / "tiny").glob("*.txt"))) == 1
    assert read_checkpoint(tmp_path / "tiny" / "additive")[0] == rnn_attention.RUNS["additive-torch-0"].settings


def test_without_its_trials_a_run_waits(little, tmp_path, capsys):
    for module, name in ((rnn_attention, "dot-torch-0"), (ablations, "transformer-0"), (warm_up, "pre-norm-warm-1")):
        experiment = replace(module.EXPERIMENT, record=Record(tmp_path / "tiny.json"))
        assert main(experiment, module.__file__, [name]) == 1
        assert re.search(r"run first (?:trial|pre-norm-warm)-0\.00", capsys.readouterr().err)
    assert not (tmp_path / "tiny.json").exists()


def test_a_recurrent_translator_in_tensorflow(little, tmp_path, monkeypatch):
    monkeypatch.setattr(rnn_attention, "chosen", lambda trials, record: (0.01, 1200))
    found = made(rnn_attention, tmp_path, "additive-tensorflow")["additive-tensorflow-0"]
    assert found.keys() == rnn_attention.RECORD.read()["additive-tensorflow-0"].keys()
    assert found["framework"] == "tensorflow" and found["updates"] >= 1


@pytest.mark.parametrize(
    "name", ["no-warm-up-0", "no-warm-up-a-third-0", "pre-norm-1", "trial-0.003-1200-transformer-0"]
)
def test_an_ablation(little, tmp_path, name):
    found, before = made(ablations, tmp_path, name)[name], ablations.EXPERIMENT.record.read()[name]
    same = ("schedule", "pre_norm", "peak", "tokens", "parameters", "seed")
    assert found.keys() == before.keys() and [found[key] for key in same] == [before[key] for key in same]
    assert 0 < found["confidence"] <= 1 and found["updates"] >= 1
    assert (tmp_path / "tiny" / f"{name}.txt").exists() == (not name.startswith("trial"))


def test_an_exact_search(little, tmp_path):
    found = made(exact_search, tmp_path, "beam-1", "exact")
    recorded = exact_search.EXPERIMENT.record.read()
    assert all(figures.keys() == recorded[name].keys() for name, figures in found.items())
    greedy, best = (
        [line.split("\t") for line in (tmp_path / "tiny" / f"{name}.txt").read_text(encoding="utf-8").splitlines()]
        for name in ("beam-1", "exact")
    )
    assert len(greedy) == len(best) == 8 and found["exact"]["proven"] == 8
    assert all(float(p) <= float(q) for (p, _, _), (q, _, _) in zip(greedy, best, strict=True))


def test_exact_search_finds_what_a_beam_has_missed():
    """And needs no good sentence to begin with: an empty one will do."""
    translator = load_translator()
    source = "Tom tiene un historial de arrestos por conducir en estado de ebriedad."
    tokenizer = translator.target_tokenizer
    (log_p, ids), (poor_p, poor) = (exact_search.beams(translator, [source], width)[0] for width in (8, 1))
    best, found, proven = exact_search.exact(translator, source, log_p, ids)
    assert proven and best > log_p + 1 and found[-1] == tokenizer.end_id
    assert tokenizer.decode(found) == "Tom has"
    again = exact_search.exact(translator, source, best - 0.1, poor)
    assert again[2] and abs(again[0] - best) < 1e-3 and np.array_equal(again[1], found)
    assert poor_p <= log_p
    nothing_better = exact_search.exact(translator, source, best, found)
    assert nothing_better[0] == best and nothing_better[2]


def test_a_warm_up(little, tmp_path, monkeypatch):
    monkeypatch.setattr(warm_up, "UPDATES", 20)
    monkeypatch.setattr(warm_up, "WARMUP", 10)
    monkeypatch.setattr(warm_up, "MAX_TOKENS", 60)
    monkeypatch.setattr(warm_up, "TRIALS", warm_up.TRIALS[:4])
    warm_up.test_pairs.cache_clear()
    trials = ["pre-norm-warm-0.0003-0", "pre-norm-cold-0.0003-0"]
    found = made(warm_up, tmp_path, *trials, "pre-norm-cold-1")
    before = warm_up.EXPERIMENT.record.read()
    assert list(found) == [*trials, "pre-norm-cold-1"]
    warm, cold, again = found.values()
    assert cold.keys() == again.keys() == before[trials[0]].keys()
    assert cold["parameters"] == before[trials[0]]["parameters"] and again["peak"] == 0.0003
    assert len(cold["loss_of_20_updates"]) == 1 and cold["nll"] != cold["test_nll"]
    assert cold["first_move"] == pytest.approx(10 * warm["first_move"], rel=0.05)
    warm_up.test_pairs.cache_clear()


def test_a_rate_with_and_without_warm_up():
    warm, cold = ([warm_up.rate(step, 1e-3, kind) for step in range(400)] for kind in (True, False))
    assert warm[0] == pytest.approx(1e-5) and cold[:100] == [1e-3] * 100 and max(warm) == 1e-3
    assert warm[99:] == cold[99:] and warm[399] == pytest.approx(5e-4)


@pytest.fixture
def few_sentences(monkeypatch):
    """The reviews of a fine-tuning cut to some dozens."""
    monkeypatch.setattr(fine_tuning, "POOL", 60)
    monkeypatch.setattr(fine_tuning, "VALIDATION", 8)
    monkeypatch.setattr(fine_tuning, "TEST", {"rotten-tomatoes": 16})
    for cached in (fine_tuning.prepared, fine_tuning.vectors):
        cached.cache_clear()
    yield
    for cached in (fine_tuning.prepared, fine_tuning.vectors):
        cached.cache_clear()


@pytest.mark.parametrize("arm", ["mean", "first", "lora", "layers", "scratch", "keras", "frozen", "tfidf", "trainer"])
def test_a_fine_tuning(few_sentences, tmp_path, monkeypatch, arm):
    counted = arm in fine_tuning.COUNTED
    precision = "float32" if arm == "keras" else "bfloat16"
    source = "mean" if arm == "keras" else arm
    trials = [] if counted else fine_tuning.trials(source, 32, (1, 1e-4), (1, 1e-5))
    told = fine_tuning.Run(arm, 32, seed=1, precision=precision)
    runs = {run.name: run for run in (*trials, told)}
    monkeypatch.setattr(fine_tuning, "RUNS", runs)
    monkeypatch.setattr(fine_tuning, "EXPERIMENT", replace(fine_tuning.EXPERIMENT, runs=runs))
    found = made(fine_tuning, tmp_path)
    assert list(found) == list(runs)
    before = fine_tuning.EXPERIMENT.record.read()
    figures = found[told.name]
    assert figures.keys() == before["mean 2000 seed=1"].keys()
    if not counted:
        assert found[trials[0].name].keys() == before["mean 2000 epochs=1 lr=0.0001 seed=0"].keys()
        best = max((found[t.name] for t in trials), key=lambda f: (f["validation"], -f["nll"]))
        assert (figures["epochs"], figures["lr"]) == (best["epochs"], best["lr"])
    right = fine_tuning.rights(figures)
    assert right.shape == (16,) and right.mean() == pytest.approx(figures["accuracy"][0], abs=1e-4)


def test_the_trainer_stands_in_no_autocast_but_its_own():
    """Within another one, even a disabled one, it would go on with the first update's copies of the weights."""
    with fine_tuning.precision(fine_tuning.Run("trainer")):
        assert torch.autocast_increment_nesting() == 1
        torch.autocast_decrement_nesting()


def test_a_fine_tuning_waits_for_its_trials(few_sentences, tmp_path, monkeypatch, capsys):
    run = fine_tuning.Run("mean", 2000, seed=1)
    monkeypatch.setattr(fine_tuning, "EXPERIMENT", replace(fine_tuning.EXPERIMENT, runs={run.name: run}))
    experiment = replace(fine_tuning.EXPERIMENT, record=Record(tmp_path / "tiny.json"))
    assert main(experiment, fine_tuning.__file__, []) == 1
    assert "run first mean 2000 epochs=1" in capsys.readouterr().err


def test_the_interval_of_several_seeds_covers_both_draws():
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(400):  # sentences of all difficulties, seeds of all qualities
        hard, luck = rng.normal(0.8, 0.2, 500), rng.normal(0, 0.03, 3)
        right = rng.random((3, 500)) < np.clip(hard + luck[:, None], 0, 1)
        truth = np.clip(rng.normal(0.8, 0.2, 20_000)[:, None] + rng.normal(0, 0.03, 50), 0, 1).mean()
        _, low, high = fine_tuning.across(right)
        covered.append(low < truth < high)
    assert 0.88 < np.mean(covered) < 0.99
    value, low, high = fine_tuning.across(np.ones((3, 10)))
    assert value == low == high == 1


def test_three_seeds_that_differ_widen_the_interval_as_student_has_it():
    luck = np.repeat([[0.0], [1.0], [2.0]], 3000, axis=1)  # no sentence differs from another: the seeds are all of it
    value, low, high = fine_tuning.across(luck)
    assert (value, high - value) == pytest.approx((1, 4.3027 / np.sqrt(3)), rel=1e-4) and value - low == high - value
    sentences = np.repeat(np.arange(3000)[None] % 2, 3, axis=0)  # no seed differs from another: 1.96, as for any N
    value, _, high = fine_tuning.across(sentences)
    assert high - value == pytest.approx(1.96 * 0.5 / np.sqrt(3000), rel=1e-3)


def test_the_temperature_of_a_model_that_is_three_times_too_sure_is_three():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(20_000, 2))
    labels = (logits[:, 1] - logits[:, 0] + rng.logistic(size=20_000) > 0).astype(int)
    assert fine_tuning.temperature(3 * logits, labels) == pytest.approx(3, rel=0.1)


@pytest.fixture
def few_of_each(few_sentences, monkeypatch):
    """The reviews of a fine-tuning and of its teacher cut to some dozens."""
    reviews_of_films = reviews.load("imdb").texts[:90]
    allowed = pretraining_texts.PretrainingTexts(reviews_of_films[30:], 0, 30, 0, 0)
    monkeypatch.setattr(pretraining_texts, "load", lambda held_out, **more: allowed)
    monkeypatch.setattr(family, "LABELLED", 32)
    monkeypatch.setattr(family, "MORE", 40)
    monkeypatch.setattr(family, "TAUGHT", family.TAUGHT._replace(examples=32, epochs=20, lr=0.01))
    return reviews_of_films


def test_a_family(few_of_each, tmp_path):
    """A teacher's words are kept, and its students learn from them by the passes and the rate of their best trial."""
    words = ["teacher", "TF-IDF", "small ALBERT", "small DistilBERT", "small BERT, more classes", "cut MiniLM, labels"]
    found = made(family, tmp_path, *words)
    before = family.EXPERIMENT.record.read()
    assert all(figures.keys() == before[name].keys() for name, figures in found.items())
    said = family.kept(Record(tmp_path / "tiny.json"))
    assert said.logits.shape == (72, 2) and len(said.texts) == 40
    assert all(any(text in review for review in few_of_each[30:]) for text in said.texts)
    for arm in ("small ALBERT, more said", "cut MiniLM, labels"):
        trials = [figures for figures in found.values() if figures["arm"] == arm and figures["seed"] == 0]
        best = max(trials, key=lambda figures: (figures["validation"], -figures["nll"]))
        told = [found[f"{arm} {seed}"] for seed in family.SEEDS]
        assert {(figures["epochs"], figures["rate"]) for figures in told} == {(best["epochs"], best["rate"])}
        right = family.unpacked(told[0]["right"], 16)
        assert right.mean() == pytest.approx(told[0]["accuracy"][0], abs=1e-4)


def test_students_wait_for_their_teacher(few_of_each, tmp_path, capsys):
    experiment = replace(family.EXPERIMENT, record=Record(tmp_path / "tiny.json"))
    assert main(experiment, family.__file__, ["small BERT, said 2 0.001 0"]) == 1
    assert "run first teacher" in capsys.readouterr().err


def test_students_learn_what_their_arm_says(few_of_each, monkeypatch):
    """From all texts or from the labelled ones; from labels, from the teacher's classes, or from neither."""
    learned = {}
    monkeypatch.setattr(family, "fit", lambda model, batches, objective, run: learned.update({run.arm: batches}))
    own = family.labelled()
    logits = np.tile(np.array([[1, 0]], dtype=np.float32), (72, 1))
    said = family.Kept([], [np.array([101, 2000 + i, 102]) for i in range(40)], logits)
    for arm in family.ARMS:
        family.student(family.Run(arm, 1, 1e-3, 0), said)
    labels = {arm: np.concatenate([batch.labels for batch in batches]) for arm, batches in learned.items()}
    for arm, found in labels.items():
        assert len(found) == (72 if "more" in arm else 32), arm
        assert set(found) == ({0} if "classes" in arm else {-100} if "said" in arm else {0, 1}), arm
    assert sorted(labels["small BERT, labels"]) == sorted(own.labels)


def test_a_remembered_teacher_finds_texts_by_their_ids():
    teacher = family.Remembered([np.array([5, 6]), np.array([7])], np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert torch.equal(teacher(torch.tensor([[7, 0], [5, 6]])).logits, torch.tensor([[3.0, 4.0], [1.0, 2.0]]).double())
    with pytest.raises(KeyError):
        teacher(torch.tensor([[6, 5]]))


@pytest.mark.parametrize(("arm", "cut"), [("first", "first"), ("first", "both"), ("counts", "both")])
def test_a_long_review(tmp_path, monkeypatch, arm, cut):
    run = long_reviews.Run(16, cut, examples=20, arm=arm)
    monkeypatch.setattr(long_reviews, "HELD_OUT", 4)
    monkeypatch.setattr(long_reviews, "EXPERIMENT", replace(long_reviews.EXPERIMENT, runs={run.name: run}))
    found = made(long_reviews, tmp_path)[run.name]
    recorded = long_reviews.Record.of(long_reviews.__file__).read()
    assert all(found.keys() == figures.keys() for figures in recorded.values() if figures["arm"] == arm)
    assert len(found["accuracy"]) == 3 and found["corpus"] == run.corpus
    if arm == "counts":
        assert 0 < found["left"] < found["are_cut"] == 1  # no review has 16 tokens or fewer


@pytest.mark.parametrize("arm", ["first-lstm-keeping-32-length-5-0", "copy-looker-32-length-16-0"])
def test_a_recurrence(tmp_path, monkeypatch, arm):
    monkeypatch.setattr(recurrence, "BUDGETS", {"first": (1, 2), "copy": (1, 2, 3)})
    trials = [f"trial-{rate}-{arm[:-1]}{recurrence.TRIAL_SEED}" for rate in recurrence.RATES]
    found = made(recurrence, tmp_path, *trials, arm)
    assert list(found) == [*trials, arm] and found[arm]["rate"] in recurrence.RATES
    before = recurrence.RECORD.read()[arm]
    assert found[arm].keys() == before.keys() and len(found[arm]["accuracy"]) == len(before["accuracy"])
    if arm.startswith("first"):
        assert found[arm]["start_gradient"] == pytest.approx(before["start_gradient"], rel=1e-3)


@pytest.mark.parametrize("arm", ["attention-bare", "vanilla-orthogonal", "gru-keeping"])
def test_what_came_first(tmp_path, monkeypatch, arm):
    monkeypatch.setattr(first_symbol, "UPDATES", 2)
    trials = [run.name for run in first_symbol.TRIALS if (run.label, run.length) == (arm, 20)]
    found = made(first_symbol, tmp_path, *trials, f"{arm}-20-0")
    run, before = found[f"{arm}-20-0"], first_symbol.RECORD.read()[f"{arm}-20-0"]
    assert run.keys() == before.keys() and run["parameters"] == before["parameters"] and run["updates"] == 2
    assert len(trials) == 10 and run["rate"] in first_symbol.RATES


@pytest.mark.parametrize("name", ["scaled-4-1.0-torch-0", "raw-4-1.0-tensorflow-0"])
def test_the_scale_of_the_scores(tmp_path, monkeypatch, name):
    monkeypatch.setattr(score_scale, "STEPS", 2)
    found, before = made(score_scale, tmp_path, name)[name], score_scale.RECORD.read()[name]
    assert found.keys() == before.keys() and 0 < found["accuracy"] < 0.5


@pytest.mark.parametrize("lacking", parts.LACKING)
def test_a_transformer_without_a_part(tmp_path, monkeypatch, lacking):
    runs = {name: run for name, run in parts.RUNS.items() if run.lacking == lacking}
    monkeypatch.setattr(parts, "UPDATES", 2)
    monkeypatch.setattr(parts, "EXPERIMENT", replace(parts.EXPERIMENT, runs=runs))
    found = made(parts, tmp_path)
    best = min((run for run in runs.values() if run.is_trial), key=lambda run: found[run.name]["loss"])
    assert {found[name]["peak"] for name, run in runs.items() if not run.is_trial} == {best.peak}
    assert all(figures.keys() == found[best.name].keys() for figures in parts.Record.of(parts.__file__).read().values())


@pytest.mark.parametrize("kind", [*positions.INDEX_KINDS, *positions.TIME_KINDS])
def test_a_kind_of_position(tmp_path, monkeypatch, kind):
    task = "time" if kind in positions.TIME_KINDS else "recent" if kind == "shifted" else "distance"
    trials = [trial for trial in positions.TRIALS if (trial.task, trial.kind) == (task, kind)][-2:]
    monkeypatch.setattr(positions, "UPDATES", 2)
    monkeypatch.setattr(positions, "LENGTHS", (16,))
    monkeypatch.setattr(positions, "TRIALS", trials)
    name = f"{task}-{kind}-1"
    found = made(positions, tmp_path, *(trial.name for trial in trials), name)
    run, before = found[name], positions.EXPERIMENT.record.read()[name]
    assert run.keys() == before.keys() and run["parameters"] == before["parameters"]
    best = min((found[trial.name] for trial in trials), key=lambda figures: figures["nll"])
    assert run["peak"] == best["peak"] and run["seed"] == 1


def test_rotary_positions_with_a_larger_base_are_those_of_the_trained_model(tmp_path, monkeypatch):
    trials = [trial for trial in positions.TRIALS if (trial.task, trial.kind) == ("distance", "rotary")][-1:]
    monkeypatch.setattr(positions, "UPDATES", 2)
    monkeypatch.setattr(positions, "LENGTHS", (16,))
    monkeypatch.setattr(positions, "TRIALS", trials)
    names = [trials[0].name, "distance-rotary-1", "distance-rotary-slow-100", "distance-rotary-slow-1"]
    found = made(positions, tmp_path, *names)
    run, bases = found["distance-rotary-slow-1"], found["distance-rotary-slow-100"]["bases"]
    assert run.keys() == positions.EXPERIMENT.record.read()["distance-rotary-slow-1"].keys()
    assert run["as_trained"] == found["distance-rotary-1"]["accuracy"]
    assert bases[str(run["base"])] == max(bases.values())


def test_what_is_predicted_without_training(tmp_path):
    recorded = positions.EXPERIMENT.record.read()["time-baselines"]
    found = made(positions, tmp_path, "time-baselines")["time-baselines"]
    assert found == recorded and found["best"]["gap"] < found["line"]["gap"] < found["mean"]["gap"]


def test_the_answers_about_letters_are_those_that_were_asked_for():
    rng = np.random.default_rng(0)
    ids, answers = positions.three_back(rng, 4, 9)
    assert np.array_equal(answers[:, 3:], ids[:, :-3])
    ids, answers = positions.last_vowel(rng, 4, 9)
    for row, said in zip(ids, answers, strict=True):
        assert said.tolist() == [[i for i in row[: t + 1] if i < 4][-1] for t in range(9)]


@pytest.fixture
def few_reviews(monkeypatch, tmp_path):
    """Pretraining on some reviews, of a tiny model."""
    texts = reviews.load("imdb").texts[::400]
    sizes = {"d_model": 16, "n_layers": 1, "n_heads": 4, "d_ff": 16, "max_len": 128}
    changes = {"texts_of": lambda corpus: np.split(texts, [-16, -8]), "VOCABULARY": 600, "SIZES": sizes, "EVERY": 1}
    for name, value in changes.items():
        monkeypatch.setattr(_pretraining, name, value)
    cached = _pretraining.prepared, _pretraining.counted, _pretraining.vectors
    for function in cached:
        function.cache_clear()
    yield
    for function in cached:
        function.cache_clear()


def test_a_bert_from_nothing_and_whether_it_pays(few_reviews, tmp_path, monkeypatch):
    runs = {name: run._replace(updates=2) for name, run in pretrain_bert.RUNS.items() if run.seed == 0}
    monkeypatch.setattr(pretrain_bert, "RUNS", runs)
    monkeypatch.setattr(pretrain_bert, "EXPERIMENT", replace(pretrain_bert.EXPERIMENT, runs=runs))
    monkeypatch.setattr(pretrain_bert, "SHIPPED", tmp_path / "shipped")
    found = made(pretrain_bert, tmp_path, *runs)
    before = pretrain_bert.Record.of(pretrain_bert.__file__).read()
    assert all(figures.keys() == before[name].keys() for name, figures in found.items())
    blanks = found["reviews blanks 0"]
    assert [point[0] for point in blanks["curve"]] == [0, 1, 2]
    # the shares of the tokens are known from the start, and without them every token is as likely as any other
    assert abs(blanks["curve"][0][2] - blanks["unigram"]) < 0.5
    words = found["reviews words 0"]
    assert words["loss, tokens"]["all"] == blanks["loss"] and words["neighbours, tokens"]["all"] == blanks["neighbours"]
    _, weights = read_checkpoint(tmp_path / "shipped" / pretrain_bert.NAME)
    assert {value.dtype for value in weights.values()} == {np.dtype(np.float16)}
    assert abs(found["free shipped 0"]["loss"] - found["free blanks 0"]["loss"]) < 1e-2
    monkeypatch.setattr(pretraining_pays, "PRETRAINED", Record(tmp_path / "tiny.json"))
    monkeypatch.setattr(pretraining_pays, "EPOCHS", {250: 1})
    monkeypatch.setattr(_pretraining, "N_TESTED", 1020)
    names = [f"{start} 250, 0.001" for start in ("scratch", "vectors", "blanks")]
    before = pretraining_pays.Record.of(pretraining_pays.__file__).read()
    paid = made(pretraining_pays, tmp_path / "pays", *names)
    assert list(paid) == names and all(paid[name].keys() == before[name].keys() for name in names)
    line = (tmp_path / "pays" / "tiny" / f"{names[2]}.txt").read_text().strip()
    assert len(line) == paid[names[2]]["sentences"] == 20 and line.count("1") == 20 * paid[names[2]]["accuracy"]


@pytest.mark.parametrize("arm", ["plain, post-norm", "places", "all"])
def test_starts_of_a_pretraining(few_reviews, tmp_path, monkeypatch, arm):
    name = f"{arm}, 0.002"
    runs = {name: pretraining.RUNS[name]._replace(updates=2)}
    monkeypatch.setattr(pretraining, "EVERY", 1)
    monkeypatch.setattr(pretraining, "EXPERIMENT", replace(pretraining.EXPERIMENT, runs=runs))
    found, before = made(pretraining, tmp_path)[name], pretraining.Record.of(pretraining.__file__).read()[name]
    assert found.keys() - {"heads"} == before.keys() - {"heads"}  # the first records have no heads
    assert [point[0] for point in found["curve"]] == [1, 2]
    assert [point[0] for point in found["heads"]] == [0, 1, 2] and all(0 < w < 1 for w in found["heads"][0][1:])


def test_a_start_without_turned_heads_is_the_other_one_but_for_them(few_reviews):
    texts = _pretraining.prepared("reviews")
    runs = (pretraining.Run(arm, 0, 1e-3) for arm in ("wide, places", "wide, undirected"))
    looks, undirected = (get_state(pretraining.started(run, texts)) for run in runs)
    changed = {name for name in looks if not np.array_equal(looks[name], undirected[name])}
    assert changed == {f"bert.encoder.layers.0.attention.{part}_proj.weight" for part in "qk"}
    assert undirected["bert.encoder.layers.0.attention.q_proj.weight"].std() == pytest.approx(16**-0.5, rel=0.2)


def test_a_start_with_places_in_narrow_matrices_still_looks_there(few_reviews):
    texts = _pretraining.prepared("reviews")
    model = pretraining.started(pretraining.RUNS["places, 0.002"], texts)
    state = get_state(model)
    assert state["bert.encoder.layers.0.feed_forward.linear1.weight"].std() == pytest.approx(0.02, rel=0.1)
    assert state["head.transform.weight"].std() == pytest.approx(0.02, rel=0.2)
    assert np.abs(np.diag(state["bert.encoder.layers.0.attention.q_proj.weight"])[:4]).min() > 1


def test_only_a_checkpoint_brings_weights():
    def largest(arm):
        return max(get_state(fine_tuning.classifier(arm)).values(), key=np.size)

    assert np.array_equal(largest("mean"), largest("first"))
    assert not np.array_equal(largest("scratch"), largest("scratch"))


def test_the_translator(little, tmp_path, monkeypatch, capsys):
    tiny = train_translator.RECIPES["tatoeba-es-en"]._replace(preset="tiny", vocabulary=200)
    monkeypatch.setitem(train_translator.RECIPES, tiny.corpus, tiny)
    assert train_translator.main(["--to", str(tmp_path / "mine"), "--epochs", "0.2"]) == 0
    figures = json.loads((tmp_path / "mine" / "figures.json").read_text())
    assert figures["updates"] >= 1 and '"test_beam_bleu"' in capsys.readouterr().out
    assert isinstance(load_translator(tmp_path / "mine")("hola"), str)


@pytest.fixture
def few_examples(monkeypatch):
    """The data of the four tasks cut to a few examples."""
    load, split = conll.load, paraphrases.split
    caches = (four_tasks.names, four_tasks.questions, four_tasks.pairs)

    def some(part, progress):
        found = load(part, progress)
        return conll.Tagged(found.words[:40], found.tags[:40], found.documents[:40])

    def few(*arguments):
        found = split(*arguments)
        return found._replace(train=type(found.train)(*(field[:64] for field in found.train)))

    monkeypatch.setattr(conll, "load", some)
    monkeypatch.setattr(paraphrases, "split", few)
    monkeypatch.setattr(four_tasks, "SENTENCES", 32)
    monkeypatch.setattr(four_tasks, "QUESTIONS", 12)
    monkeypatch.setattr(four_tasks, "HELD_OUT", {"names": 20, "answers": 12, "paraphrases": 8})
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.mark.parametrize(
    ("task", "arm"),
    [
        *((task, arm) for task in ("names", "answers") for arm in ("frozen", "lora", "trainer")),
        ("paraphrases", "lora"),
    ],
)
def test_one_of_four_tasks(few_examples, tmp_path, monkeypatch, task, arm):
    own = [run for run in four_tasks.RUNS.values() if (run.task, run.arm) == (task, arm)]
    trials, told = [run for run in own if run.is_trial][:2], next(run for run in own if not run.is_trial)
    runs = {run.name: run for run in (*trials, told)}
    monkeypatch.setattr(four_tasks, "RUNS", runs)
    monkeypatch.setattr(four_tasks, "EXPERIMENT", replace(four_tasks.EXPERIMENT, runs=runs))
    found, before = made(four_tasks, tmp_path), four_tasks.EXPERIMENT.record.read()
    assert list(found) == list(runs)
    biases = {"names": len(four_tasks.KINDS), "answers": 2, "paraphrases": 0}[task]  # of the classifier
    for name, figures in found.items():
        assert figures.keys() == before[name].keys()
        # all other weights that learn are vectors as wide as the model
        full, narrow = ((each[name]["trained"] - biases) for each in (before, found))
        assert full / 384 == narrow / NARROW["hidden_size"]
    best = max((found[trial.name] for trial in trials), key=lambda figures: figures["validation"])
    assert (found[told.name]["rate"], found[told.name]["layer"]) == (best["rate"], best["layer"])
    assert (tmp_path / "tiny" / task / "config.json").exists() == (arm == "lora")


@pytest.mark.parametrize("name", ["names by heart", "answers overlap", "paraphrases TF-IDF", "paraphrases static"])
def test_what_four_tasks_have_to_beat(few_examples, tmp_path, name):
    found, before = made(four_tasks, tmp_path, name)[name], four_tasks.EXPERIMENT.record.read()[name]
    assert found.keys() == before.keys()


@pytest.fixture
def few_articles(monkeypatch):
    """WikiText-2 cut to a few articles, and a GPT of one narrow layer."""
    load = wikitext.load
    monkeypatch.setattr(wikitext, "load", lambda part: load(part)[:4])
    sizes = {"d_model": 16, "n_layers": 1, "n_heads": 2, "d_ff": 16, "max_len": 16, "init_std": 0.02}
    changes = {"VOCABULARY": 300, "LENGTH": 16, "STRIDE": 8, "SIZES": sizes}
    for name, value in changes.items():
        monkeypatch.setattr(gpt, name, value)
    for cached in (gpt.prepared, gpt.tokenizer):
        cached.cache_clear()
    yield
    for cached in (gpt.prepared, gpt.tokenizer):
        cached.cache_clear()


def test_a_gpt_and_its_rivals(few_articles, tmp_path, monkeypatch):
    kept = gpt.KEPT[0]
    names = [*(trial.name for trial in gpt.TRIALS), kept, "kneser-ney 2", "kneser-ney 5 of 40 articles", "xz"]
    few = {name: gpt.RUNS[name]._replace(updates=gpt.RUNS[name].updates and 3) for name in names}
    monkeypatch.setattr(gpt, "KEPT", (few[kept].name,))
    monkeypatch.setattr(gpt, "EXPERIMENT", replace(gpt.EXPERIMENT, runs=few))
    found, before = made(gpt, tmp_path, *names), gpt.EXPERIMENT.record.read()
    assert list(found) == names
    assert all(figures.keys() == before[name].keys() for name, figures in found.items())
    assert found[kept]["peak"] == gpt.chosen(Record(tmp_path / "tiny.json"))
    part = gpt.Run("kneser-ney", order=2, articles=2)
    half = gpt.measure(part, Record(tmp_path / "tiny.json"))
    assert half["tokens"] == sum(map(len, gpt.prepared("train").ids[:2])) < found["kneser-ney 2"]["tokens"]
    assert half["test"] > found["kneser-ney 2"]["test"]
    assert len(found[kept]["test_nats"]) == len(found["kneser-ney 2"]["test_nats"]) == 4
    assert found["kneser-ney 2"]["test"] < found[kept]["test"] < 8.5  # three updates are none
    settings, weights = read_checkpoint(tmp_path / "tiny" / "gpt-3-1")
    assert settings == {**gpt.SIZES, "vocab_size": 300} and weights["token.weight"].dtype == np.float16


def test_each_token_of_a_text_is_measured_once_with_what_the_windows_show(few_articles):
    ids = gpt.prepared("test").ids[0][:45]
    torch.manual_seed(0)
    model = gpt.GPT(gpt.config_of()).eval()
    text = torch.from_numpy(np.concatenate([[gpt.tokenizer().end_id], ids]))
    expected = 0.0
    for t in range(1, len(text)):
        window = 0 if t <= 16 else min(-(-(t - 16) // 8) * 8, len(text) - 1 - 16)  # where its window begins
        logits = model(text[None, window:t]).logits[0, -1]
        expected -= logits.log_softmax(-1)[text[t]].item()
    assert gpt.nats_of(model, [ids], gpt.tokenizer().end_id, 16, 8)[0] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("layers", [1, 2])
def test_learning_in_context(tmp_path, monkeypatch, layers):
    for name, value in {"UPDATES": 2, "TRIAL_UPDATES": 2, "TESTED": 40}.items():
        monkeypatch.setattr(in_context, name, value)
    for cached in (in_context.sequences, in_context.rivals):
        cached.cache_clear()
    trials = [trial.name for trial in in_context.TRIALS if trial.layers == layers]
    name = in_context.Run(layers, 1).name
    found, before = made(in_context, tmp_path, *trials, name), in_context.EXPERIMENT.record.read()
    assert list(found) == [*trials, name]
    assert all(figures.keys() == before[run].keys() for run, figures in found.items())
    figures = found[name]
    assert figures["peak"] == in_context.chosen(in_context.RUNS[name], Record(tmp_path / "tiny.json"))
    assert np.shape(figures["without"]) == np.shape(figures["induction"]) == (layers, 4)
    assert figures["end"] > in_context.rivals("test").best[:, -in_context.END :].mean()
    assert (tmp_path / "tiny" / "two-layers" / "config.json").exists() == (name == in_context.KEPT)
    for cached in (in_context.sequences, in_context.rivals):
        cached.cache_clear()


def test_a_silenced_head_says_what_it_says_on_average():
    """All heads silenced: no position knows another one any more but by its number."""
    torch.manual_seed(0)
    model = in_context.GPT(in_context.config_of(2)).eval()
    ids = in_context.markov_chains.draw(6, 12, in_context.STATES, 0.5, np.random.default_rng(0)).ids
    other = ids.copy()
    other[:, :-1] = (other[:, :-1] + 1) % in_context.STATES

    def logits(ids):
        with torch.no_grad():
            return model(torch.from_numpy(ids)).logits.numpy()

    before = logits(ids)
    every = [(layer, head) for layer in range(2) for head in range(4)]
    with in_context.silenced(model, every, ids):
        np.testing.assert_allclose(logits(ids)[:, -1], logits(other)[:, -1], atol=1e-5)
    with in_context.silenced(model, [(1, 2)], ids):
        assert np.abs(logits(ids)[:, -1] - before[:, -1]).max() > 1e-3
        assert np.abs(logits(ids)[:, -1] - logits(other)[:, -1]).max() > 1e-3
    np.testing.assert_array_equal(logits(ids), before)
    np.testing.assert_array_equal(logits(other[:3]), logits(other)[:3])


@pytest.mark.parametrize("world, setting, kinds", [
    ("graph", "100", ("asked",)), ("crossing", "0.02", ("cloned", "best")), ("crossing", "0.02", ("last step",)),
])  # fmt: skip
def test_decisions(tmp_path, monkeypatch, world, setting, kinds):
    monkeypatch.setattr(decisions, "UPDATES", dict.fromkeys(decisions.UPDATES, 3))
    monkeypatch.setattr(decisions, "BATCH", 4)
    monkeypatch.setattr(decisions, "OUT_OF_TIME", 3)
    runs = [f"{world} {setting} {kind} 1" for kind in kinds]
    trials = [f"{world} {setting} {kind} trial {peak}" for kind in kinds for peak in decisions.PEAKS]
    found, before = made(decisions, tmp_path, *trials, *runs), decisions.EXPERIMENT.record.read()
    assert list(found) == [*trials, *runs]
    assert all(figures.keys() == before[name].keys() for name, figures in found.items())
    for name in runs:
        assert found[name]["peak"] == decisions.chosen(decisions.RUNS[name], Record(tmp_path / "tiny.json"))
        assert found[name]["parameters"] == before[name]["parameters"]
        assert found[name]["possible"] == before[name]["possible"]


def test_what_is_cloned_knows_no_reward_and_what_is_asked_does():
    world = decisions.world_of("crossing", 1)
    episodes = decisions.episodes_of("crossing", "0.1", 1, "training", world)[:60]
    for kind in decisions.KINDS:
        batches = decisions.batches_of(decisions.Run("crossing", "0.1", kind, 1), episodes, world, None)
        returns = np.concatenate([batch.returns[batch.real] for batch in batches])
        assert (returns == 0).all() == (kind in ("cloned", "best"))
        assert (batches[0].times.shape[1] == 1) == (kind == "last step")
    assert len(decisions.of_kind("best", episodes)) < 10
    model = lambda asked: lambda states, actions, rewards: (asked, sum(rewards))  # noqa: E731
    assert decisions.Silent(model)([0], [1], [-5.0]) == (0.0, 0.0)


def test_a_walker_beside_the_cliff():
    class Draws:  # the row, and no noise
        def __init__(self, row):
            self.row = row

        def choice(self, n, p):
            return self.row

        def random(self):
            return 0.9

    def act(row, at, rewards=()):
        state = np.eye(48)[[at]]
        return decisions.cliff_walker(0.5, Draws(row))(state, [], list(rewards))

    up, right, down = 0, 1, 2
    assert [act(2, at) for at in (36, 24, 34, 35)] == [up, right, right, down]
    assert [act(0, at) for at in (36, 24, 0, 11)] == [up, up, right, down]
    assert act(2, 0) == down and act(2, 24, [-100.0]) == up  # after a fall along the first row


@pytest.mark.parametrize("reads", ["eight steps", "one step"])
def test_a_cliff(tmp_path, monkeypatch, reads):
    monkeypatch.setitem(cliff.ARMS, "best shown", cliff.Arm(episodes=60, updates=3, times=2))
    monkeypatch.setattr(cliff, "HELD_OUT", 4)
    monkeypatch.setattr(decisions, "OUT_OF_TIME", 3)
    arm = f"best shown: {reads}"
    words = [*(f"{arm} trial {peak}" for peak in cliff.PEAKS), f"{arm} 1"]
    found, before = made(cliff, tmp_path, *words), cliff.EXPERIMENT.record.read()
    assert list(found) == words
    assert all(figures.keys() == before[name].keys() for name, figures in found.items())
    figures = found[words[-1]]
    assert figures["peak"] == cliff.chosen(cliff.RUNS[words[-1]], Record(tmp_path / "tiny.json"))
    assert len(figures["partings"]) == 1 and abs(sum(figures["parting"]) - 1) < 1e-3


def test_steps_where_the_ways_part_are_counted():
    at, updates = decisions.world_of("cliff", 1), 6
    edge = rollout(at.env, lambda states, *_: [0, *[1] * 11, 2][len(states) - 1], at.state, 20)
    second = rollout(at.env, lambda states, *_: [0, 0, *[1] * 11, 2, 2][len(states) - 1], at.state, 20)
    assert (edge.total, second.total) == (cliff.ASKED, cliff.ASKED - 2)
    assert cliff.examples([edge, second]) == ["R"] and cliff.examples([edge, second], 2.0) == ["R", "U"]
    for kind, windows, there in (("asked", 6 + 8, 2), ("last step", 13 + 15, 1)):  # the step is the second of thirteen
        batches = decisions.batches_of(decisions.Run("cliff by 5", "0.3", kind, 1), [edge, second], at, 1)
        assert sum(len(batch.times) for batch in batches) == windows and len(batches) == 1
        assert cliff.shown(batches, updates, decisions.SCALE["cliff by 5"]) == there * updates
    policy = lambda states, actions, rewards: int(edge.actions[len(actions)])  # noqa: E731
    assert cliff.answer(policy, at) == {"obtained": -13.0, "way": "URRRRRRRRRRRD"}


def test_the_odds_where_the_ways_part_are_those_by_which_a_model_acts():
    at, told = decisions.world_of("cliff", 1), []
    model = DecisionTransformer(decisions.config_of(at)).eval()
    like = decisions.Run("cliff", "0.3", "asked", 1)
    policy = decisions.asking(like, model, at)(cliff.ASKED)
    policy.choose = lambda logits: told.append(logits)
    policy(np.stack([at.state(cliff.START), at.state(cliff.PARTING)]), [cliff.UP], [-1.0])
    odds = np.exp(told[0]) / np.exp(told[0]).sum()
    np.testing.assert_allclose(cliff.parting(model, at, 8, decisions.SCALE["cliff"]), odds, atol=1e-4)


@pytest.mark.parametrize("kind", frozen_lake.KINDS)
def test_a_frozen_lake(tmp_path, monkeypatch, kind):
    for name, value in {"WALKS": 120, "HELD_OUT": 120, "UPDATES": 3, "TESTED": 2, "LONGEST": 20}.items():
        monkeypatch.setattr(frozen_lake, name, value)
    arm = f"land {kind}"
    words = [*(f"{arm} trial {peak}" for peak in frozen_lake.PEAKS), f"{arm} 1"]
    found, before = made(frozen_lake, tmp_path, *words), frozen_lake.EXPERIMENT.record.read()
    assert list(found) == words
    assert all(figures.keys() == before[name].keys() for name, figures in found.items())
    assert 0 <= found[words[-1]]["arrived"] <= 1


def test_a_plan_on_the_lake_takes_the_way_that_arrives_the_more_often(monkeypatch):
    def walk(fields, actions, total):  # from field to field, and paid at the end
        rewards = np.zeros(len(actions))
        rewards[-1] = total
        return Episode(np.eye(frozen_lake.FIELDS, dtype=np.float32)[fields], np.array(actions), rewards)

    # from 0 there is a gamble, 1, and a way by 4 and back to 0 by chance, which arrives in the end
    walks = [walk([0], [1], 1.0), walk([0], [1], 0.0), walk([0, 4, 0, 4], [2, 3, 2, 3], 1.0)]
    planned = functools.partial(Planner, discount=frozen_lake.DISCOUNT, sweeps=frozen_lake.SWEEPS)
    plan = planned(walks)
    assert [plan(np.eye(frozen_lake.FIELDS)[[field]], [], []) for field in (0, 4)] == [2, 3]
    cut = walk([0, 4], [2, 3], 1.0)._replace(ended=False)  # what followed is not known
    assert planned([*walks[:2], cut])(np.eye(frozen_lake.FIELDS)[[0]], [], []) == 1


@pytest.mark.parametrize("attention", ["full", "windowed", "linear"])
def test_recall(tmp_path, monkeypatch, attention):
    monkeypatch.setattr(long_inputs, "TESTED", 4)
    monkeypatch.setattr(long_inputs, "BATCH", 4)
    names = [f"{attention} 16 trial {peak}" for peak in long_inputs.PEAKS] + [f"{attention} 16 1"]
    few = {name: long_inputs.RUNS[name]._replace(updates=30 if "trial" in name else 31) for name in names}
    monkeypatch.setattr(long_inputs, "EXPERIMENT", replace(long_inputs.EXPERIMENT, runs=few))
    found, before = made(long_inputs, tmp_path, *names), long_inputs.EXPERIMENT.record.read()
    assert list(found) == names
    assert all(figures.keys() == before[name].keys() for name, figures in found.items())
    figures = found[names[-1]]
    assert figures["peak"] == long_inputs.chosen(few[names[-1]], Record(tmp_path / "tiny.json"))
    assert figures["parameters"] == before[names[-1]]["parameters"]
    assert len(figures["right"]) == len(long_inputs.PAIRS) and len(figures["loss_of_30_updates"]) == 1
    assert len(figures["right_beyond"]) == (len(long_inputs.PAIRS) if attention == "windowed" else 0)
    assert 3 < figures["loss_of_30_updates"][0] < 8


@pytest.mark.parametrize("attention", ["full", "windowed", "linear", "few keys", "few values", "spread keys"])
def test_a_model_that_recalls_sees_as_far_back_as_the_table_it_is_compared_to(attention):
    torch.manual_seed(0)
    model = long_inputs.Recaller(long_inputs.ATTENTION[attention], 16).eval()
    ids = torch.randint(1, 129, (1, long_inputs.LENGTH))
    last = torch.arange(long_inputs.LENGTH)[None] == 100
    reach = long_inputs.reach(attention)
    with torch.no_grad():
        before = model(ids, last)
        moved = []
        for place in (99, 100 - 33, 100 - 34, 101):
            other = ids.clone()
            other[0, place] = other[0, place] % 128 + 1
            moved.append(not torch.equal(model(other, last), before))
    assert moved == [True, True, reach is None, False] and reach in (None, 33)


def test_linear_attention_of_few_features_leaves_the_others_alone():
    q, k, v = torch.randn(3, 1, 1, 20, 64, generator=torch.Generator().manual_seed(0))
    few_keys, few_values = (long_inputs.ATTENTION[name](q, k, v, causal=True).output for name, _ in long_inputs.SPLIT)
    torch.testing.assert_close(few_keys, linear_attention(q[..., :16], k[..., :16], v, causal=True).output)
    whole = linear_attention(q, k, v, causal=True).output
    torch.testing.assert_close(few_values[..., :16], whole[..., :16])
    assert few_values.shape == whole.shape and not few_values[..., 16:].any()


def test_linear_attention_of_spread_keys_reads_few_numbers_of_queries_and_keys_and_has_many_features():
    q, k, v = torch.randn(3, 1, 1, 20, 64, generator=torch.Generator().manual_seed(0))
    found = long_inputs.ATTENTION["spread keys"](q, k, v, causal=True).output
    few = [torch.nn.functional.pad(x[..., :16], (0, 48)) for x in (q, k)]
    torch.testing.assert_close(long_inputs.ATTENTION["spread keys"](*few, v, causal=True).output, found)
    matrix = long_inputs.mixed(16, 64)
    torch.testing.assert_close(
        linear_attention(q[..., :16] @ matrix, k[..., :16] @ matrix, v, causal=True).output, found
    )


def test_a_stack_has_a_layer_of_each_kind_in_their_order():
    layers = long_inputs.stacked("windowed then linear", 16).decoder.layers
    kinds = [layer.self_attention.attention for layer in layers]
    assert kinds == [long_inputs.ATTENTION["windowed"], long_inputs.ATTENTION["linear"]]
    assert len(long_inputs.stacked("full", 16).decoder.layers) == 1


def test_a_cost(tmp_path, monkeypatch):
    """Of a length that fits, and of one whose scores do not."""
    monkeypatch.setattr(long_inputs, "LENGTHS", (16, 10**6))
    found = made(long_inputs, tmp_path, "cost torch formula")["cost torch formula"]
    assert found.keys() == long_inputs.EXPERIMENT.record.read()["cost torch formula"].keys()
    assert found["lengths"] == [16, 10**6] and found["milliseconds"][0] > 0 and found["mebibytes"][0] >= 0
    assert found["milliseconds"][1] is None and found["mebibytes"][1] is None


@pytest.mark.parametrize(
    "name", ["full 4 x 2 in 1 seed 1", "linear 1 x 16 in 1 seed 1", "full 1 x 2 in 1 patient seed 1"]
)
def test_recall_of_heads_that_share(tmp_path, monkeypatch, name):
    for module, setting, value in (
        (long_inputs, "TESTED", 2), (long_inputs, "BATCH", 4), (grouped_heads, "TESTED", 2),
        (grouped_heads, "LENGTHS", (256,)),
    ):  # fmt: skip
        monkeypatch.setattr(module, setting, value)
    train = long_inputs.fitted
    monkeypatch.setattr(long_inputs, "fitted", lambda model, rng, peak, updates: train(model, rng, peak, 30))
    run = grouped_heads.RUNS[name]
    alike = [trial for trial in grouped_heads.TRIALS if (trial.arm, trial.updates) == (run.arm, run.updates)]
    names = [each.name for each in (*alike, run)]
    found, before = made(grouped_heads, tmp_path, *names), grouped_heads.EXPERIMENT.record.read()
    assert list(found) == names
    assert all(figures.keys() == before[name].keys() for name, figures in found.items())
    figures = found[name]
    assert figures["peak"] == grouped_heads.chosen(run, Record(tmp_path / "tiny.json"))
    assert figures["parameters"] == before[name]["parameters"]
    assert len(figures["right"]) == len(long_inputs.PAIRS) and len(figures["loss_of_30_updates"]) == 1
    assert len(figures["right_by_length"]) == (2 if run.arm in grouped_heads.BY_LENGTH else 0)
    assert 3 < figures["loss_of_30_updates"][0] < 8


def test_heads_that_share_keep_as_many_numbers_as_their_rivals():
    kept = {}
    for arm in (*grouped_heads.WIDE, *grouped_heads.NARROW, *grouped_heads.RIVALS):
        model = long_inputs.Recaller(long_inputs.ATTENTION["full"], arm.d_head, 1, arm.n_heads, arm.sets)
        keys, values = model.decoder.layers[0].self_attention.project(*[torch.zeros(1, 1, long_inputs.D_MODEL)] * 2)
        assert keys.shape == values.shape == (1, arm.sets, 1, arm.d_head)
        kept[arm.name] = keys.numel()
    assert kept["full 4 x 8 in 1"] == kept["full 4 x 2 in 4"] == kept["full 2 x 4 in 2"] == 8
    assert kept["full 4 x 2 in 2"] == kept["full 2 x 2 in 2"] == kept["full 1 x 4 in 1"] == 4
    assert kept["full 4 x 2 in 1"] == kept["full 1 x 2 in 1"] == 2


def test_the_cost_of_heads_that_share(tmp_path, monkeypatch):
    monkeypatch.setattr(grouped_heads, "LENGTHS", (16,))
    found = made(grouped_heads, tmp_path, "cost write 1")["cost write 1"]
    assert found.keys() == grouped_heads.EXPERIMENT.record.read()["cost write 1"].keys()
    assert found["lengths"] == [16] and found["milliseconds"][0] > 0 and found["mebibytes"][0] >= 0


def test_the_rate_of_a_recall_rises_stays_and_falls():
    rates = [long_inputs.rate(step, 0.01, 600) for step in range(600)]
    assert rates[0] == pytest.approx(0.01 / 50) and rates[49:301] == [0.01] * 252
    assert rates[450] == pytest.approx(0.005) and 0 < rates[-1] < 1e-4


@pytest.fixture
def few_images(monkeypatch):
    """Data for vision cut to a few images, and trainings to a few updates."""
    for name, value in {"VALIDATION": 8, "TESTED": 12, "UPDATES": {"digits": 2, "scenes": 2}}.items():
        monkeypatch.setattr(vision, name, value)
    rng, draw = np.random.default_rng(0), vision.scenes.draw
    some = vision.Images(rng.normal(size=(40, 1, 28, 28)).astype(np.float32), rng.permutation(40) % 10)
    monkeypatch.setattr(vision, "digits", lambda part: some)
    monkeypatch.setattr(vision.scenes, "draw", lambda n, rng, named: draw(40, rng, named=named))
    drawn = vision.drawn.__wrapped__
    monkeypatch.setattr(vision, "drawn", lambda n, *seed: drawn(min(n, 30), *seed))


@pytest.mark.parametrize(
    ("data", "arm", "change"),
    [
        *(("digits", arm, None) for arm in ("vit", "cnn", "svm")),
        ("digits", "vit", "scrambled"),
        ("digits", "cnn", "moved"),
        ("scenes", "vit", "patient"),
    ],
)
def test_what_sees(few_images, tmp_path, monkeypatch, data, arm, change):
    n = {"patient": vision.SCENES}.get(change, vision.DIGITS[1])
    name = vision.Run(data, arm, n, 1, change=change).name
    arm_of = (data, arm, n, None if change == "patient" else change)
    trials = [t.name for t in vision.TRIALS if (*t[:3], t.change) == arm_of]
    few = {each: vision.RUNS[each] for each in (*trials, name)}
    monkeypatch.setattr(vision, "EXPERIMENT", replace(vision.EXPERIMENT, runs=few))
    found, before = made(vision, tmp_path, *few), vision.EXPERIMENT.record.read()
    assert list(found) == [*trials, name]
    assert all(figures.keys() == before[run].keys() for run, figures in found.items())
    if arm != "svm":
        assert found[name]["peak"] == vision.chosen(few[name], Record(tmp_path / "tiny.json"))
        assert found[name]["parameters"] == before[name]["parameters"]
    assert (tmp_path / "tiny" / "scenes-1" / "config.json").exists() == (change == "patient")


def test_maps_of_scenes(few_images, tmp_path, monkeypatch):
    monkeypatch.setattr(vision_maps, "ASKED", 6)
    found, before = made(vision_maps, tmp_path, "maps 1")["maps 1"], vision_maps.EXPERIMENT.record.read()["maps 1"]
    assert found.keys() == before.keys() and found["mass"].keys() == set(vision_maps.MAPS)
    assert found["mass"]["red"] > 4 * found["mass"]["even"]
    lines = (tmp_path / "tiny" / "maps 1.txt").read_text().splitlines()
    assert len(lines) == 2 * len(vision_maps.MAPS) and all(len(line.split(": ")[1].split()) in (1, 6) for line in lines)


def test_scenes_that_are_asked_of_have_a_red_circle_or_a_red_cross(few_images):
    some = vision.drawn(30, 5)
    kinds = vision.scenes.kind_of(some, vision.COLOUR)
    assert {vision.scenes.KINDS[kind] for kind in kinds} == set(vision.ASKED)
    np.testing.assert_array_equal(vision.labelled(some).labels == 1, kinds == vision.scenes.KINDS.index("cross"))
    assert len(some.images) == 30


def test_moved_digits_are_the_digits_elsewhere():
    images = np.zeros((50, 1, 28, 28), np.float32)
    images[:, 0, 10, 12] = 1
    places = np.argwhere(vision.moved(images, np.random.default_rng(0), -1.0) == 1)
    assert len(places) == 50 and set(places[:, 2]) == set(range(8, 13)) and set(places[:, 3]) == set(range(10, 15))
    corner = vision.moved(images, np.random.default_rng(0), -1.0)[:, 0, [0, -1]]
    assert corner.min() == -1 and np.abs(vision.moved(images, np.random.default_rng(0), 0.0)).sum() == 50


def test_scrambled_digits_have_the_same_pixels_in_one_order_for_all():
    images = np.random.default_rng(0).normal(size=(3, 1, 28, 28))
    found = vision.scrambled(images)
    np.testing.assert_array_equal(np.sort(found.ravel()), np.sort(images.ravel()))
    assert (found != images).mean() > 0.9
    np.testing.assert_array_equal(vision.scrambled(images[1:2]), found[1:2])


@pytest.mark.parametrize(("planted", "there"), [(True, True), (False, False)])
def test_a_grid_of_positions_is_found_where_there_is_one(planted, there):
    places = np.stack(np.divmod(np.arange(36), 6), axis=1)
    table = np.concatenate([np.sin(0.3 * places), np.cos(0.3 * places)], axis=1)
    found = _patch_positions.position_grid(table if planted else np.random.default_rng(0).normal(size=(36, 8)), 200)
    assert (found["correlation"] < found["least"]) == there
    assert -0.2 < found["least"] < found["largest"] < 0.3


def test_hidden_patches_have_the_colour_of_the_scene_and_the_highest_are_hidden():
    images = np.random.default_rng(0).normal(size=(2, 3, 8, 8))
    maps = np.array([[[1.0, 0.0], [3.0, 2.0]], [[0.0, 0.0], [0.0, 5.0]]])
    chosen = vision_maps.most(maps, 2)
    assert chosen[0].tolist() == [[False, False], [True, True]] and chosen[1, 1, 1] and chosen[1].sum() == 2
    found = vision_maps.hidden(images, chosen, 4)
    np.testing.assert_array_equal(found[0, :, :4], images[0, :, :4])
    np.testing.assert_allclose(found[0, :, 4:], np.broadcast_to(images[0].mean((1, 2))[:, None, None], (3, 4, 8)))


@pytest.mark.parametrize("name", ["fused", "by blocks", "masked", "linear"])
def test_attention_as_a_gpu_would_be_measured(name, monkeypatch):
    """On the processor: what is measured there has one figure for each length, and an error where it is exact."""
    monkeypatch.setattr(on_a_gpu, "SECONDS", 0.0)
    found = on_a_gpu.attention_run(on_a_gpu.Run("attention", name), "cpu", (8, 24), 2, 4)
    assert found["lengths"] == [8, 24] and min(found["milliseconds"]) > 0
    exact = name in on_a_gpu.EXACT
    assert all((error is not None and error < 1e-5) == exact for error in found["error"])


def test_without_a_gpu_nothing_is_recorded_as_of_one(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(RuntimeError, match="no CUDA GPU is here"):
        on_a_gpu.measure(on_a_gpu.RUNS["products copy bfloat16"], Record(tmp_path / "record.json"))
