"""Models and optimizers of one's own in the loop: their rates stay, and what would train in silence is refused."""

import dataclasses
import importlib
import pickle
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn

from course_lib.batches.texts import IGNORED
from tests.support import tasks
from tests.support.tasks import CONFIG, LIBRARIES, build, module, train

CLASSIFY = "classification"


@pytest.fixture(params=["torch", "tensorflow"])
def library(request):
    return request.param


def in_groups(model):
    """Plain gradient descent: the encoder stands still, the norms learn at 0.02, the head at 0.1."""
    norms = [w for name, w in model.named_parameters() if "norm" in name]
    rest = [w for name, w in model.bert.named_parameters() if "norm" not in name]
    groups = [{"params": rest, "lr": 0.0}, {"params": norms, "lr": 0.02}, {"params": model.classifier.parameters()}]
    return torch.optim.SGD(groups, lr=0.1)


def rates(optimizer):
    return [group["lr"] for group in optimizer.param_groups]


def test_groups_keep_their_rates_and_a_schedule_their_ratios():
    model = build("torch", CLASSIFY)
    before, optimizer = LIBRARIES["torch"].get_state(model), in_groups(model)
    train("torch", CLASSIFY, model, rate=None, optimizer=optimizer, steps=2)
    assert_allclose(rates(optimizer), [0.0, 0.02, 0.1])
    for name, value in LIBRARIES["torch"].get_state(model).items():
        assert (abs(value - before[name]).max() > 0) == ("norm" in name or "classifier" in name), name
    for rate, now in ((lambda step: 0.5 / (step + 1), 0.25), (lambda step: 0.0, 0.0), (0.3, 0.3)):  # from 0, too
        train("torch", CLASSIFY, model, rate=rate, optimizer=optimizer, steps=2)
        assert_allclose(rates(optimizer), np.array([0.0, 0.2, 1.0]) * now)


def test_an_optimizer_keeps_its_rate_and_one_of_the_course_has_a_thousandth(library):
    model = build(library, CLASSIFY)
    if library == "torch":
        own, rate_of = torch.optim.Adam(model.parameters(), 1e-6), lambda optimizer: rates(optimizer)[0]
    else:
        own, rate_of = keras.optimizers.Adam(1e-6), lambda optimizer: float(optimizer.learning_rate)
    for optimizer, rate in ((own, 1e-6), (module(library, "optimizers").adamw(model), 1e-3)):
        train(library, CLASSIFY, model, rate=None, optimizer=optimizer, steps=1)
        assert_allclose(rate_of(optimizer), rate, rtol=1e-6)
        train(library, CLASSIFY, model, rate=1e-2, optimizer=optimizer, steps=1)
        assert_allclose(rate_of(optimizer), 1e-2, rtol=1e-6)


def test_groups_are_resumed(tmp_path):
    def run(folder, steps):
        model = build("torch", CLASSIFY)
        optimizer = in_groups(model)
        for limit in steps:
            found = train("torch", CLASSIFY, model, rate=None, optimizer=optimizer, steps=limit, checkpoint=folder)
        return found.loss

    assert_array_equal(run(tmp_path / "a", [2, 5]), run(tmp_path / "b", [5]))


@pytest.mark.parametrize("change", ["lora", "unfreeze"])
def test_an_optimizer_from_before_is_refused(library, change):
    model, freezing = build(library, CLASSIFY), module(library, "freezing")
    frozen = freezing.freeze(model, "bert.encoder") if change == "unfreeze" else []
    optimizer = module(library, "optimizers").adamw(model)
    if change == "lora":
        importlib.import_module(f"course_lib.{library}.lora").add_lora(model, rank=2)
    else:
        freezing.unfreeze(model)
    message = f"lacks {len(frozen) or 4} weights that are to be trained, such as .*; make it after"
    with pytest.raises(ValueError, match=message):
        train(library, CLASSIFY, model, optimizer=optimizer, steps=1)


def test_the_norm_is_that_of_what_is_trained():
    """Not of gradients that a training before has left at what is frozen now."""
    states = []
    for left in (False, True):
        model = build("torch", CLASSIFY)
        module("torch", "freezing").freeze(model, "bert")
        if left:
            for weight in model.bert.parameters():
                weight.grad = torch.ones_like(weight)
        train("torch", CLASSIFY, model, optimizer=torch.optim.SGD(model.classifier.parameters()), max_norm=0.1, steps=3)
        states.append(LIBRARIES["torch"].get_state(model)["classifier.weight"])
    assert_array_equal(*states)


def test_weights_in_bfloat16_are_refused(library):
    if library == "torch":
        model, remedy = build(library, CLASSIFY).bfloat16(), "autocast"
    else:
        model, remedy = LIBRARIES[library].BertForSequenceClassification(CONFIG, dtype="bfloat16"), "mixed_bfloat16"
    with pytest.raises(ValueError, match=f"weights in bfloat16 are too coarse to be trained.*{remedy}"):
        train(library, CLASSIFY, model, steps=1)
    module(library, "freezing").freeze(model, "bert")
    if library == "torch":
        model.classifier.float()
        model.bert.register_forward_hook(lambda *call: call[-1]._replace(pooled=call[-1].pooled.float()))
        assert np.isfinite(train(library, CLASSIFY, model, steps=1).loss).all()  # frozen ones may be coarse


def test_autocast_in_float16_is_refused():
    with torch.autocast("cpu", torch.float16), pytest.raises(ValueError, match="vanish unless the loss is scaled"):
        train("torch", CLASSIFY, steps=1)
    with torch.autocast("cpu", torch.float16, enabled=False):
        assert len(train("torch", CLASSIFY, steps=1).loss) == 1


class Wrapped(nn.Module):
    """A model inside of one that takes whatever there is, as the call of `transformers` takes what it does not know."""

    pad_id = 1

    def __init__(self, task):
        super().__init__()
        self.inner = build("torch", task)

    def forward(self, *arguments, **more):
        return self.inner(*arguments, **more)


@pytest.mark.parametrize("task", [task for task in tasks.TASKS if task not in ("translation", "next_token")])
def test_padding_must_be_hidden(task):
    objective, model, batch = tasks.objective("torch", task), Wrapped(task), tasks.batches(task)(0)[0]
    with pytest.raises(TypeError, match="the call of a Wrapped names no `mask`, which hides padding"):
        objective.read(model, "B", batch)
    call = {"forward": lambda ids, mask=None: None}
    with pytest.raises(TypeError, match="a SimpleNamespace does not say what padding is; give it a `pad_id`"):
        objective.read(SimpleNamespace(**call, config=SimpleNamespace(pad_token_id=1)), "B", batch)
    if task != "distillation":
        objective.read(SimpleNamespace(**call, pad_id=None), "B", batch)


def test_a_teacher_of_another_padding_is_refused(library):
    teacher = build(library, CLASSIFY, dataclasses.replace(CONFIG, pad_id=2))
    objective = module(library, "objectives").distillation(teacher)
    with pytest.raises(ValueError, match="teacher and its student must have the same pad_id, got {1, 2}"):
        objective.read(build(library, CLASSIFY), "B", tasks.batches(CLASSIFY)(0)[0])


def test_what_a_student_shares_with_its_teacher_keeps_its_dropout():
    teacher, student = (build("torch", CLASSIFY, tasks.DROPOUT, seed) for seed in (7, 8))
    student.bert.embeddings = teacher.bert.embeddings
    student.train()
    objective = module("torch", "objectives").distillation(teacher)
    arrays = objective.read(student, "B", tasks.batches(CLASSIFY)(0)[0]).arrays
    for _ in range(2):
        objective.losses(student, **module("torch", "loop").tensors(arrays, "cpu"))
        assert all(part.training for part in student.modules())


def test_what_a_cross_entropy_does_not_solve(library):
    for changes, message in (
        ({"n_classes": 1}, "a classifier of one class has nothing to learn"),
        ({"problem_type": "multi_label_classification"}, "problem_type 'multi_label_classification', and here each"),
        ({"problem_type": "regression"}, "problem_type 'regression'"),
    ):
        model = build(library, CLASSIFY, dataclasses.replace(CONFIG, **changes))
        with pytest.raises(ValueError, match=message):
            train(library, CLASSIFY, model, steps=1)
        with pytest.raises(ValueError, match=message):
            module(library, "classifier").train(model, [np.arange(2, 6)], [0], progress=False)
    fits = dataclasses.replace(CONFIG, problem_type="single_label_classification")
    assert len(train(library, CLASSIFY, build(library, CLASSIFY, fits), steps=1).loss) == 1


@pytest.mark.parametrize("task", ["masked_lm", "pretraining"])
def test_a_batch_without_a_blank_is_no_end_where_others_have_some(library, task):
    full = tasks.batches(task)(0)[0]
    none = full._replace(labels=full.labels * 0 + IGNORED)
    if task == "pretraining":
        none = none._replace(follows=none.follows * 0 + IGNORED)
    both, alone = ([*batches] for batches in ((none, full), (full,)))
    found, expected = (
        train(library, task, given=lambda epoch, b=b: b, accumulate=2, steps=2).loss for b in (both, alone)
    )
    assert_allclose(found, expected, rtol=1e-4)
    with pytest.raises(ValueError, match="batch 0 of epoch 0 to batch 1 of epoch 0 have no blank, so there is nothing"):
        train(library, task, given=lambda epoch: [none, none], accumulate=2, steps=2)


def test_a_teacher_needs_no_labels(library):
    objectives, teacher = module(library, "objectives"), build(library, CLASSIFY, seed=8)
    batch = tasks.batches(CLASSIFY)(0)[0]
    none, some = (batch._replace(labels=np.where(np.arange(8) < n, batch.labels, IGNORED)) for n in (0, 3))
    losses = []
    for given in ([batch], [none], [some], [none, some]):
        call = (build(library, CLASSIFY), lambda epoch, g=given: g, objectives.distillation(teacher, alpha=1.0))
        settings = {"accumulate": len(given), "steps": 2, "progress": False}
        losses.append(module(library, "loop").train(*call, **settings).loss)
        with pytest.raises(ValueError, match="batch 0 of validation has no label; a teacher is enough to train by"):
            module(library, "loop").train(*call, [none], **settings)
    for loss in losses[1:]:
        assert_allclose(loss, losses[0], rtol=1e-4)
    with pytest.raises(ValueError, match="B has no label"):
        objectives.distillation(teacher, alpha=0.9).update(teacher, "B", none)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # in Keras's own saving
@pytest.mark.parametrize("task", tasks.TASKS)
def test_objectives_can_be_sent_to_another_process(library, task):
    objective = tasks.objective(library, task)
    again = pickle.loads(pickle.dumps(objective))
    if library == "tensorflow" and task != "distillation":  # its teacher goes as Keras pickles it
        return
    batches = tasks.batches(task)(0)
    found = [module(library, "loop").evaluate(build(library, task), batches, one) for one in (objective, again)]
    assert found[0] == found[1] and again.name == objective.name


class Block(keras.layers.Layer):
    """Attention of Keras's, whose weights no attribute leads to, and a norm."""

    def __init__(self):
        super().__init__()
        self.attend, self.norm = keras.layers.MultiHeadAttention(2, 4), keras.layers.LayerNormalization()

    def call(self, x):
        return self.norm(x + self.attend(x, x))


class Blocks(keras.layers.Layer):
    """Two of them."""

    def __init__(self):
        super().__init__()
        self.layers = [Block(), Block()]

    def call(self, x):
        return self.layers[1](self.layers[0](x))


class Stack(keras.Model):
    """A classifier as one writes it with Keras: its weights come with the first call."""

    pad_id, supports_masking = 1, True  # Keras warns of the mask that is given here, too

    def __init__(self, penalty=0.0, encoder=Blocks):
        super().__init__()
        self.table, self.encoder = keras.layers.Embedding(30, 8), encoder()
        self.body = keras.Sequential([keras.layers.Dense(8), keras.layers.Dense(8)])
        self.head = keras.layers.Dense(3, kernel_regularizer=keras.regularizers.L2(penalty))

    def call(self, ids, mask=None, training=False):
        return SimpleNamespace(logits=self.head(self.body(self.encoder(self.table(ids)))[:, 0]))


def stack(penalty=0.0, encoder=Blocks):
    keras.utils.set_random_seed(0)
    model = Stack(penalty, encoder)
    model(np.full((2, 4), 5))
    return model


def test_a_keras_model_without_weights_is_to_be_called():
    with pytest.raises(ValueError, match="no weights yet: call it once on a batch, or build it"):
        train("tensorflow", CLASSIFY, Stack(), steps=1)


def test_parts_of_kerass_layers_are_frozen_whole():
    model, freezing = stack(), module("tensorflow", "freezing")
    names = list(LIBRARIES["tensorflow"].get_state(model))
    assert "body.weights[0].kernel" in names and len(names) == len(model.weights)
    frozen = freezing.freeze(model, "encoder.layers.0")
    assert len(frozen) == 10 and not model.encoder.layers[0].trainable_variables
    assert len(model.encoder.layers[1].trainable_variables) == 10
    assert freezing.freeze(model, "body")[0] == "body.weights[0].kernel" and not model.body.trainable_variables
    other = stack()
    for variable in other.weights:
        variable.assign(variable + 1.0)
    LIBRARIES["tensorflow"].set_state(other, LIBRARIES["tensorflow"].get_state(model))
    for ours, theirs in zip(other.weights, model.weights, strict=True):
        assert_array_equal(ours, theirs)


def test_kerass_layers_have_their_share_of_the_rate_and_no_decay_of_biases():
    model = stack()
    optimizer = module("tensorflow", "optimizers").adamw(model, weight_decay=0.1, layer_decay=0.5)
    settings = zip(model.trainable_variables, optimizer.scales, optimizer.decays, strict=True)
    found = {v.path: (scale, decay) for v, scale, decay in settings}
    for layer, scale in zip(model.encoder.layers, (0.25, 0.5), strict=True):
        for v in layer.trainable_variables:
            assert found[v.path] == (scale, 0.1 if v.name == "kernel" else 0.0), v.path


@pytest.mark.parametrize("accumulate", [1, 2])
def test_regularizers_are_a_part_of_the_loss(accumulate):
    batches = tasks.batches(CLASSIFY)(0)[:2]
    small = keras.layers.Identity
    plain, penalised = (
        train("tensorflow", CLASSIFY, stack(p, small), lambda epoch: batches, accumulate=accumulate, steps=1).loss[0]
        for p in (0.0, 10.0)
    )
    assert_allclose(penalised - plain, 10.0 * (stack(0.0, small).head.kernel.numpy() ** 2).sum(), rtol=1e-4)
