"""The experiment of the lecture *Speech*: what is to be written, how it counts, its rivals, and a run of two arms."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from course_lib.checkpoints.weights import read_checkpoint
from course_lib.data import syllables
from notebooks.experiments import _spoken as spoken
from notebooks.experiments import _templates as templates
from notebooks.experiments import speech
from notebooks.experiments.harness import Record, main


@pytest.fixture
def little(monkeypatch):
    """Sets of a few sentences, made here, and trainings of a few updates."""
    drawn, sets = spoken.drawn, dict(spoken.SETS)

    @cache
    def sounds(name):
        monkeypatch.setitem(spoken.SETS, name, (12 if name.startswith("train") else 3, sets[name][1]))
        features, counts, *truth = drawn(name, 0)
        return spoken.Sounds(features, *(tuple(np.split(flat, np.cumsum(counts)[:-1])) for flat in truth))

    monkeypatch.setattr(spoken, "sounds", sounds)
    for name, value in {"UPDATES": 3, "TRIAL_UPDATES": 2, "BATCH": 4, "MAPPED": 2, "KEPT": 2}.items():
        monkeypatch.setattr(speech, name, value)


def test_targets_say_what_is_asked_then_what_is_said():
    ma, so = syllables.SYLLABLES.index("ma"), syllables.SYLLABLES.index("so")
    truth = np.array([ma, so]), np.array([0.1, 0.52]), np.array([0.31, 0.84])
    assert {task: speech.text_of(spoken.target(task, *truth)) for task in spoken.PROMPTS} == {
        "words": "<start> <transcribe> <no times> ma so <end>",
        "times": "<start> <transcribe> <times> 0.10 ma 0.32 0.52 so 0.84 <end>",
        "translation": "<start> <translate> <no times> SO MA <end>",
        "translation, times": "<start> <translate> <times> 0.52 SO 0.84 0.10 MA 0.32 <end>",
    }
    ids = spoken.target("translation, times", *truth)
    assert spoken.said(ids) == [so, ma]
    np.testing.assert_allclose(spoken.times_of(ids), [0.52, 0.84, 0.1, 0.32])  # to the nearest 20 ms
    assert [speech.kind_of(spoken.target(task, *truth)) for task in spoken.PROMPTS] == ["syllables"] * 2 + ["other"] * 2
    assert speech.kind_of(ids[[4, 4]]) == "other" and speech.kind_of(np.array([spoken.WORDS, spoken.OTHER])) == "mixed"


@pytest.mark.parametrize(
    ("found", "true", "expected"),
    [([], [1, 2], 2), ([1, 2], [1, 2], 0), ([1, 3], [1, 2], 1), ([2], [1, 2], 1), ([1, 1, 2, 2], [1, 2], 2),
     ([2, 1], [1, 2], 2), ([5, 1, 2, 3], [1, 2, 3, 4], 2)],
)  # fmt: skip
def test_edits_are_the_fewest(found, true, expected):
    assert spoken.edits(found, np.array(true, int)) == expected


def test_times_of_another_number_of_syllables_are_not_compared():
    assert spoken.late(np.array([0.1, 0.32]), np.array([0.1]), np.array([0.3])) == 10.0
    assert spoken.late(np.array([0.1]), np.array([0.1]), np.array([0.3])) is None
    assert np.allclose(spoken.spots(np.array([[0, 3.0, 1.0], [0, 0, 2.0]])), [1.25 * spoken.MOMENT, 2 * spoken.MOMENT])


def test_the_share_of_a_syllable_that_is_written_backwards_is_that_of_its_own_moment():
    truth = np.array([0, 1]), np.array([0.0, 0.1]), np.array([0.1, 0.2])
    for task, here in (("words", [[3, 0], [4, 7]]), ("translation", [[3, 7], [4, 0]])):
        ids = spoken.target(task, *truth)
        weights = np.full((1, len(ids) - 1, 10), 0.0)
        weights[0, :, 9] = 1.0  # nowhere right but in the rows that write a syllable
        for row, place in np.subtract(here, [[1, 0], [1, 0]]):
            weights[0, row] = np.eye(10)[place]
        np.testing.assert_array_equal(speech.of_sentence(weights, ids, *truth), [[1.0, 1.0]])


def test_templates_read_the_sentences_that_they_are_cut_from(little):
    some = spoken.sounds("quiet")
    reader = templates.Templates(some, 5, 2.0)
    for row, symbols, starts, ends in zip(*some, strict=True):
        heard = reader(row)
        assert heard.symbols == symbols.tolist()
        assert spoken.late(np.stack(heard[1:], axis=1).ravel(), starts, ends) < 30


def test_rules_for_times_part_what_is_loud():
    features = np.full((1, spoken.N_MELS, 70), -1.0)
    features[0, :, 10:24] = features[0, :, 30:60] = 1.0  # loud from 0.1 to 0.24 s, and from 0.3 to 0.6 s
    for rule, border in ((templates.equal_parts, 0.35), (templates.dips, 0.27)):
        starts, ends = rule(features[0], 2, 0.5)
        np.testing.assert_allclose([starts[0], ends[0], starts[1], ends[1]], [0.1, border, border, 0.6], atol=0.031)


def test_two_arms_run_from_their_sounds_to_their_record(little, tmp_path):
    experiment = replace(speech.EXPERIMENT, record=Record(tmp_path / "tiny.json"))
    names = [run.name for run in speech.RUNS.values() if run.arm in ("all", "ctc") and run.seed < 2]
    assert main(experiment, speech.__file__, names) == 0
    found = experiment.record.read()
    assert list(found) == names
    both, ctc = found["all 1"], found["ctc 1"]
    for figures, arm in ((both, "all"), (ctc, "ctc")):
        trials = [found[name] for name in names if name.startswith(f"{arm} trial")]
        assert figures["peak"] in {trial["peak"] for trial in trials if trial["validation"] == min(
            other["validation"] for other in trials)}  # fmt: skip
        assert list(figures["edits"]) == list(spoken.SETS)[3:] and len(figures["edits"]["test"]) == 3
    assert abs(ctc["parameters"] / both["parameters"] - 1) < 0.05
    assert both["shares"].keys() == both["tasks"].keys() == spoken.PROMPTS.keys()
    assert both["late"].keys() == {"times", "translation, times"} and np.shape(both["shares"]["times"]["test"]) == (
        2,
        4,
    )
    config, weights = read_checkpoint(tmp_path / "tiny" / "all-1")
    assert config["d_model"] == speech.SIZES["d_model"] and weights["token.weight"].dtype == np.float16
    assert len((tmp_path / "tiny" / "all-1.txt").read_text(encoding="utf-8").splitlines()) == 2 * 6
