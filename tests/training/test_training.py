"""Fine-tuning: the same in both frameworks, equal to a loop written out, and it learns."""

import inspect

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch.nn import functional as F

import course_lib.tensorflow.training.classifier
import course_lib.torch.training.classifier
from course_lib.batches.texts import Batches
from course_lib.masks import padding_mask
from course_lib.models.bert import BertConfig
from course_lib.training.schedules import warmup_then_linear_decay
from tests.support.classifiers import CONFIG, build


def test_both_frameworks_take_the_same_path(examples):
    runs = [build("torch"), build("tensorflow")]
    losses = [
        run.training.train(run.model, *examples, epochs=2, lr=3e-3, batch_size=16, progress=False) for run in runs
    ]
    assert len(losses[0]) == 12
    assert_allclose(losses[0], losses[1], rtol=2e-3, atol=2e-4)
    states = [run.get_state(run.model) for run in runs]
    for name in states[0]:
        # AdamW's first steps follow the sign of a gradient, so one that is noise may go either way: compare means
        apart = np.abs(states[0][name] - states[1][name]).mean()
        assert name.endswith("k_proj.bias") or apart < 1e-4, name  # a path of up to 12 steps of 3e-3
    assert_allclose(*(run.training.predict(run.model, examples[0]) for run in runs), atol=2e-2)


def test_the_losses_of_uneven_batches_are_equal_update_by_update(examples):
    """90 examples by 16 leave a batch of 10, which comes somewhere among the others."""
    sequences, labels = examples[0][:90], examples[1][:90]
    runs = [build("torch"), build("tensorflow")]
    settings = {"epochs": 2, "lr": 1e-4, "batch_size": 16, "progress": False}
    losses = [run.training.train(run.model, sequences, labels, **settings) for run in runs]
    sizes = [len(rows) for _, rows in Batches(sequences, 16, seed=0)]
    assert 10 in sizes[:-1], "a short batch at the end would show nothing"
    assert_allclose(losses[0], losses[1], rtol=1e-4)


def test_it_learns(framework, examples):
    losses = framework.training.train(framework.model, *examples, epochs=12, lr=1e-2, batch_size=16, progress=False)
    predictions = framework.training.predict(framework.model, examples[0]).argmax(-1)
    assert losses[-6:].mean() < 0.3 < losses[:6].mean()
    assert (predictions == examples[1]).mean() > 0.9


def test_torch_equals_a_loop_written_out(examples):
    sequences, labels = examples
    ours, model = build("torch"), build("torch").model
    settings = {"batch_size": 16, "lr": 3e-3, "warmup": 0.4, "max_norm": 0.5}
    losses = ours.training.train(ours.model, sequences, labels, progress=False, **settings)
    batches = Batches(sequences, 16, seed=0)
    moments = {name: [torch.zeros_like(p), torch.zeros_like(p)] for name, p in model.named_parameters()}
    for step, (ids, rows) in enumerate(batches):
        ids = torch.as_tensor(ids)
        loss = F.cross_entropy(model(ids, mask=padding_mask(ids)).logits, torch.as_tensor(labels[rows]))
        assert_allclose(losses[step], loss.item(), rtol=1e-4)
        model.zero_grad()
        loss.backward()
        norm = torch.sqrt(sum((p.grad**2).sum() for p in model.parameters()))
        rate = 3e-3 * warmup_then_linear_decay(step, 6, 2)
        with torch.no_grad():
            for name, p in model.named_parameters():
                g = p.grad * min(1.0, 0.5 / norm)
                first, second = moments[name]
                first.mul_(0.9).add_(0.1 * g)
                second.mul_(0.999).add_(0.001 * g**2)
                if not (name.endswith("bias") or "norm" in name):
                    p.mul_(1 - rate * 0.01)
                unbiased = second / (1 - 0.999 ** (step + 1))
                p.sub_(rate * first / (1 - 0.9 ** (step + 1)) / (unbiased.sqrt() + 1e-8))
    for name, p in model.named_parameters():
        if not name.endswith("k_proj.bias"):
            assert_allclose(ours.get_state(ours.model)[name], p.detach().numpy(), rtol=1e-3, atol=1e-5, err_msg=name)


def test_weight_decay_spares_biases_and_norms(framework):
    model, training = framework.model, framework.training
    if framework.name == "torch":
        optimizer, _ = training.make_optimizer(model, 10)
        names = {id(p): name for name, p in model.named_parameters()}
        decayed = {names[id(p)] for g in optimizer.param_groups if g["weight_decay"] for p in g["params"]}
        assert len({names[id(p)] for g in optimizer.param_groups for p in g["params"]}) == len(names)
    else:
        optimizer = training.make_optimizer(model, 10)
        optimizer.build(model.trainable_variables)
        shapes = [v for v in model.trainable_variables if optimizer._use_weight_decay(v)]
        assert all(len(v.shape) == 2 for v in shapes)
        assert len(shapes) == sum(len(v.shape) == 2 for v in model.trainable_variables)
        return
    expected = {n for n in names.values() if n.endswith("weight") and ".norm" not in n}
    assert decayed == expected


def test_predictions_come_in_the_order_given(framework, examples):
    sequences, _ = examples
    together = framework.training.predict(framework.model, sequences)
    assert together.shape == (96, 2) and together.dtype == np.float32
    one_by_one = np.concatenate([framework.training.predict(framework.model, [s]) for s in sequences[:5]])
    assert_allclose(together[:5], one_by_one, rtol=1e-4, atol=1e-5)


def test_prediction_uses_no_dropout_and_training_does(examples):
    config = BertConfig(**{**vars(CONFIG), "dropout": 0.4})
    for name in ("torch", "tensorflow"):
        run = build(name, config)
        first, second = (run.training.predict(run.model, examples[0]) for _ in range(2))
        assert_array_equal(first, second)
        dropped = run.training.train(run.model, *examples, lr=0.0, progress=False)
        plain = build(name)
        assert np.abs(dropped - plain.training.train(plain.model, *examples, lr=0.0, progress=False)).max() > 1e-3
        assert_array_equal(run.training.predict(run.model, examples[0]), first)


def test_embeddings_are_means_over_real_tokens(framework, examples):
    sequences, _ = examples
    vectors = framework.training.embed(framework.model.bert, sequences)
    assert vectors.shape == (96, 12)
    ids = np.array([sequences[3]])
    alone = framework.model.bert(torch.as_tensor(ids) if framework.name == "torch" else ids).last_hidden
    alone = alone.detach().numpy() if framework.name == "torch" else alone.numpy()
    assert_allclose(vectors[3], alone[0].mean(0), rtol=1e-4, atol=1e-5)


def test_the_seed_decides_the_run(examples):
    first, again, other = (build("torch") for _ in range(3))
    results = [
        run.training.train(run.model, *examples, seed=seed, progress=False)
        for run, seed in ((first, 1), (again, 1), (other, 2))
    ]
    assert_allclose(results[0], results[1], rtol=1e-5)
    assert np.abs(results[0] - results[2]).max() > 1e-4


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        (np.zeros(5, int), ValueError, "labels must have shape"),
        (np.full(96, 2), ValueError, "must lie in"),
        (np.zeros(96), TypeError, "must be integers"),
    ],
)
def test_bad_labels(framework, examples, labels, error, message):
    with pytest.raises(error, match=message):
        framework.training.train(framework.model, examples[0], labels, progress=False)


def test_no_epochs(framework, examples):
    with pytest.raises(ValueError, match="epochs must be a whole number of 1 or more"):
        framework.training.train(framework.model, *examples, epochs=0, progress=False)


@pytest.mark.parametrize("name", ["train", "predict", "embed"])
def test_the_same_call_in_both_frameworks(name):
    modules = course_lib.torch.training.classifier, course_lib.tensorflow.training.classifier
    ours, theirs = (getattr(module, name) for module in modules)
    assert inspect.signature(ours) == inspect.signature(theirs)
