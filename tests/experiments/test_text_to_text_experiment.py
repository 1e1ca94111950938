"""The experiment of the lecture *T5*: what its tasks ask and answer, and a run of each kind."""

import json
import re

import numpy as np
import pytest

from course_lib.checkpoints.weights import read_checkpoint
from notebooks.experiments import _tasks as tasks
from notebooks.experiments import text_to_text as experiment
from notebooks.experiments.harness import Record, Waiting


def answered(source: str) -> str:
    """What a reader of the story answers, sentence by sentence, without looking at how stories are made."""
    question, _, story = source.partition("? ")
    places, owners = {}, {}
    for person, doing, last in re.findall(r"(\w+) (\w+(?: to| up)?) the (\w+)\.", story):
        if doing.endswith(" to"):
            places[person] = last
        else:
            owners[last] = person
    asked = question.split()[-1]
    if question.startswith("Who"):
        return owners.get(asked, tasks.NOT_TOLD)
    return places.get(asked if asked[0].isupper() else owners.get(asked), tasks.NOT_TOLD)


def test_stories_tell_what_is_answered():
    rng = np.random.default_rng(0)
    drawn = [tasks.told(rng) for _ in range(600)]
    assert [answered(source) for source, _, _ in drawn] == [answer for _, answer, _ in drawn]
    kinds = [kind for *_, kind in drawn]
    assert min(kinds.count(kind) for kind in tasks.KINDS) > 150
    assert 0.1 < np.mean([answer == tasks.NOT_TOLD for _, answer, _ in drawn]) < 0.25


def test_the_kinds_are_those_of_the_questions(monkeypatch):
    monkeypatch.setitem(tasks.STORIES, "test", 50)
    sources, kinds = tasks.answer.__wrapped__("test").sources, tasks.kinds.__wrapped__("test")
    for source, kind in zip(sources, kinds, strict=True):
        question = source.partition("?")[0].split()
        named = "where is she" if question[-1][0].isupper() else "where is it"
        assert kind == ("who has it" if question[0] == "Who" else named)


def test_a_sentence_to_mend_has_two_neighbours_exchanged():
    for wrong, right in zip(*tasks.mend("test"), strict=True):
        a, b = wrong.split(), right.split()
        (first, *rest) = np.flatnonzero([x != y for x, y in zip(a, b, strict=True)])
        assert rest == [first + 1] and a[first : first + 2] == b[first : first + 2][::-1]


@pytest.mark.parametrize("task", tasks.PREFIXES)
def test_what_is_tested_was_not_learned(task):
    parts = {part: tasks.texts(task, part) for part in tasks.PARTS}
    assert all(source.startswith(f"{task}: ") for some in parts.values() for source in some.sources)
    assert not set(parts["test"].sources) & {*parts["train"].sources, *parts["validation"].sources}
    if task == "mend":  # a sentence whose other words were exchanged is the same sentence
        assert not set(parts["test"].targets) & {*parts["train"].targets, *tasks.texts("translate", "train").targets}


def test_scores():
    assert tasks.score("judge", ["good", "bad", "goodness"], ["good", "good", "good"]) == 33.33
    assert tasks.score("answer", ["the Barn.", "hall"], ["barn", "barn"]) == 50
    assert tasks.score("translate", ["a b c d e"], ["a b c d e"]) == 100


def test_the_kept_tokenizer_is_the_one_that_is_learned(tmp_path):
    assert tasks.KEPT == experiment.EXPERIMENT.record.folder / tasks.KEPT.name
    assert tasks.learned().save(tmp_path / "anew.json").read_text() == tasks.KEPT.read_text()


def test_ids_begin_and_end_as_t5_has_them():
    source, target = (side[0] for side in tasks.pairs_of("judge"))
    config, tokenizer = experiment.config(), tasks.tokenizer()
    assert target[0] == config.start_id == config.pad_id and source[-1] == target[-1] == config.end_id
    assert tokenizer.decode(source) == tasks.texts("judge", "train").sources[0]
    assert config.vocab_size == tokenizer.vocab_size + tasks.SENTINELS
    assert tasks.text_of(np.append(target[1:], config.vocab_size - 1)) in tasks.VERDICTS


@pytest.fixture
def little(monkeypatch):
    """Trainings of a few updates, scored on a few examples."""

    def few(made):
        return lambda part: tasks.Texts(*(side[: 200 if part == "train" else 3] for side in made(part)))

    monkeypatch.setattr(tasks, "MADE", {task: few(made) for task, made in tasks.MADE.items()})
    monkeypatch.setattr(tasks, "texts", tasks.texts.__wrapped__)
    monkeypatch.setattr(tasks, "pairs_of", tasks.pairs_of.__wrapped__)
    for name, value in {"UPDATES": 2, "MAX_TOKENS": 200, "KEPT": 2}.items():
        monkeypatch.setattr(experiment, name, value)


def test_runs_choose_by_their_trials_and_keep_what_they_found(little, tmp_path):
    record = Record(tmp_path / "record.json")
    run = experiment.Run("together", 1)
    with pytest.raises(Waiting, match="together trial 0.02 0"):
        experiment.measure(run, record)
    for i, trial in enumerate(experiment.trials("together")):
        score = {"mend": 5.0 if i == 3 else 1.0}
        record.add(trial.name, {"peak": trial.peak, "dropout": trial.dropout, "validation": score})
    best = experiment.trials("together")[3]
    figures = experiment.measure(run, record)
    assert (figures["peak"], figures["dropout"]) == (best.peak, best.dropout) == (4e-2, 0.1)
    assert figures["test"].keys() == figures["right"].keys() == figures["losses"].keys() == set(tasks.PREFIXES)
    lines = (record.folder / "together-1.txt").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[0] for line in lines] == ["translate"] * 3 + ["mend"] * 2 + ["judge"] * 2 + ["answer"] * 2
    settings, weights = read_checkpoint(record.folder / "together-1")
    assert settings["model_type"] == "t5" and {value.dtype.name for value in weights.values()} == {"float16"}
    given = experiment.measure(experiment.Run(experiment.FASTER, 1), record)
    assert (given["peak"], given["dropout"]) == experiment.GIVEN[experiment.FASTER]
    assert json.dumps([figures, given])


def test_the_rate_of_adamw_by_size_is_in_proportion():
    model = experiment.model_of(0, 0.0)
    sizes = {}
    for group in experiment.optimizer_of(model, "AdamW by size").param_groups:
        (weight,) = group["params"]
        sizes[id(weight)] = group["scale"]
        assert group["scale"] == pytest.approx(weight.detach().square().mean().sqrt().item())
    assert sizes[id(model.token.weight)] > 50 * sizes[id(model.decoder.layers[0].cross_attention.q_proj.weight)]
    (group,) = {g["scale"]: g for g in experiment.optimizer_of(model, "AdamW").param_groups}.values()
    assert group["scale"] == 1.0
    scales = {id(g["params"][0]): g["scale"] for g in experiment.optimizer_of(model, "AdamW table").param_groups}
    assert scales.pop(id(model.token.weight)) == 128**0.5 and set(scales.values()) == {1.0}


@pytest.mark.parametrize("task", ("translate", "judge"))
def test_how_far_one_arm_is_ahead_of_another(task):
    record, alone = experiment.EXPERIMENT.record.read(), experiment.ALONE[task]
    means = [
        np.mean([record[f"{arm} {seed}"]["test"][task] for seed in experiment.SEEDS]) for arm in ("together", alone)
    ]
    found, back = experiment.ahead(task, "together", alone), experiment.ahead(task, alone, "together")
    assert found.value == pytest.approx(means[0] - means[1], abs=0.02) and found.low < found.value < found.high
    assert (back.value, back.low, back.high) == pytest.approx((-found.value, -found.high, -found.low), abs=0.3)
    assert len(experiment.kept(task, f"{alone} 1")) == (400 if task == "translate" else experiment.KEPT)
