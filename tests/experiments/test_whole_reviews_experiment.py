"""The experiment on whole reviews: what each arm reads, how it attends, and a tiny run of each kind."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from course_lib.torch import get_state
from notebooks.experiments import whole_reviews as experiment
from notebooks.experiments.harness import Record, Waiting

FEW = {"train": 24, "validation": 8, "test": 8}


@pytest.fixture(scope="module")
def few():
    """A few short reviews of each part in the place of all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "LONGEST", 48)
        patch.setattr(experiment, "SHORT", 16)
        patch.setattr(experiment, "WINDOW", 4)
        patch.setattr(experiment, "EPOCHS", 1)
        patch.setattr(experiment, "BATCH", 8)
        whole = {part: [side[: FEW[part]] for side in sides] for part, sides in experiment.texts().items()}
        ids = {part: experiment.ids_of(part)[: FEW[part]] for part in FEW}
        patch.setattr(experiment, "texts", lambda: whole)
        patch.setattr(experiment, "ids_of", ids.__getitem__)
        yield


def test_parts_have_no_review_in_common_and_both_labels_alike():
    texts = experiment.texts()
    assert {part: len(sides[0]) for part, sides in texts.items()} == {"train": 2000, "validation": 1000, "test": 1000}
    every = [text for sides in texts.values() for text in sides[0]]
    assert len(set(every)) == len(every)
    assert all(0.45 < sides[1].mean() < 0.55 for sides in texts.values())


@pytest.mark.parametrize("arm", experiment.ARMS)
def test_an_arm_reads_what_its_name_says(few, arm):
    for whole, read in zip(experiment.ids_of("train"), experiment.read("train", arm), strict=True):
        longest = 16 if "128" in arm else 48
        assert len(whole) > longest == len(read) or len(whole) == len(read) <= longest
        head = 8 if arm == "both 128" else longest - 1
        np.testing.assert_array_equal(read[:head], whole[:head])
        assert read[0] == whole[0] and read[-1] == whole[-1]  # [CLS] and [SEP]


@pytest.mark.parametrize("arm", experiment.READ)
def test_a_token_is_heard_as_far_as_its_arm_allows(few, arm):
    model = experiment.model_of(arm, seed=1, longest=48).eval()
    layer = model.bert.encoder.layers[0].attention
    x = torch.randn(1, 40, 128, requires_grad=True)
    heard = [torch.autograd.grad(layer(x, x, x)[0][0, at].square().sum(), x)[0][0].abs().sum(-1) > 0 for at in (0, 20)]
    near = np.abs(np.arange(40) - 20) <= 4
    near[0] = True
    assert heard[0].all() and heard[1].tolist() == (near.tolist() if arm == "windowed" else [True] * 40)


def test_equal_attention_is_the_mean_of_what_may_be_seen():
    q, k, v = torch.randn(3, 2, 1, 5, 4)
    mask = torch.tensor([[True, True, True, False, False], [True] * 5])[:, None, None]
    found = experiment.equal_attention(q, k, v, mask=mask).output
    torch.testing.assert_close(found[0], v[0, :, :3].mean(1, keepdim=True).expand(1, 5, 4))
    torch.testing.assert_close(found[1], v[1].mean(1, keepdim=True).expand(1, 5, 4))


def test_positions_are_laid_end_to_end_and_arms_start_alike():
    states = [get_state(experiment.model_of(arm, seed=3)) for arm in ("full", "windowed")]
    assert all(np.array_equal(value, states[1][name]) for name, value in states[0].items())
    (table,) = (value for name, value in states[0].items() if "position" in name)
    assert table.shape == (1024, 128) and np.array_equal(table[:128], table[128:256])
    assert not np.array_equal(table[:128], np.roll(table[:128], 1, axis=0))


@pytest.mark.parametrize("arm", ["both 128", "windowed"])
def test_a_training(few, arm, tmp_path, monkeypatch):
    record = Record(tmp_path / "tiny.json")
    with pytest.raises(Waiting):
        experiment.chosen(arm, record)
    best = {f"{arm} trial {lr:g}": {"accuracy": [0.5 + lr], "lr": lr} for lr in experiment.RATES[arm]}
    record.file.write_text(json.dumps(best), encoding="utf-8")
    run = experiment.Run(arm, 1)
    monkeypatch.setattr(experiment, "EXPERIMENT", replace(experiment.EXPERIMENT, record=record))
    found = experiment.measure(run, record)
    assert found["lr"] == experiment.RATES[arm][-1] and len(found["accuracy"]) == 3
    assert json.loads(json.dumps(found)) == found


@pytest.mark.parametrize("arm", experiment.COUNTED)
def test_a_count(few, arm):
    found = experiment.counted(arm)
    assert found["left"] <= 1 and (found["are_cut"] == 0) == (arm == "whole")
    assert found["median"] == np.median([len(ids) for ids in experiment.ids_of("train")])
