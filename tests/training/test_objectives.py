"""Each objective's loss against its definition, what it counts, and the batches that it refuses."""

import dataclasses
import importlib
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch.nn import functional as F

from course_lib.batches.contrastive import ContrastiveBatch
from course_lib.batches.texts import IGNORED, TextBatch
from course_lib.models.roberta import RobertaConfig
from course_lib.training.arguments import max_len_of, reads_segments
from course_lib.training.objective import Objective, Update, check_objective, shares
from tests.support import tasks, translators


@pytest.fixture(params=["torch", "tensorflow"])
def library(request):
    return request.param


def objectives(library):
    return importlib.import_module(f"course_lib.{library}.training.objectives")


def parts_of(library, objective, model, batch):
    """(loss, nll, n) of each part as numbers."""
    arrays, counts = objective.read(model, "the batch", batch)
    if library == "torch":
        model.eval()
        with torch.no_grad():
            parts = objective.losses(model, **{name: torch.tensor(value) for name, value in arrays.items()})
    else:
        parts = objective.losses(model, training=False, **arrays)
    assert counts == tuple(int(part.n) for part in parts)
    return [(float(part.loss), float(part.nll), int(part.n)) for part in parts]


def of(library, task, batch, **arguments):
    objective = getattr(objectives(library), task)(**arguments)
    return parts_of(library, objective, tasks.build(library, task), batch)


def batch(task, n=6, seed=1):
    if task == "translation":
        return translators.batches(n, n, seed)(0)[0]
    return tasks.batch(task, np.random.default_rng(seed), n)


def called(task, given, **more):
    """What PyTorch's model says of a batch's ids, without padding."""
    model = tasks.build("torch", task).eval()
    ids = torch.tensor(given.ids)
    segments = getattr(given, "segments", None)
    more = {} if segments is None else {"segments": torch.tensor(segments)}
    return model(ids, mask=(ids != 1)[:, None, None, :], **more)


def nll(logits, labels):
    return F.cross_entropy(logits.flatten(0, -2), torch.tensor(labels).flatten(), ignore_index=-100).item()


def test_classification_is_a_cross_entropy_of_texts_and_their_segments(library):
    given = batch("classification")
    given = given._replace(labels=np.where(np.arange(6) == 2, IGNORED, given.labels))
    ((loss, found, n),) = of(library, "classification", given)
    expected = nll(called("classification", given).logits, given.labels)
    assert_allclose([loss, found], expected, rtol=1e-4)
    assert n == 5
    single = of(library, "classification", given._replace(segments=given.segments * 0))
    assert_allclose(of(library, "classification", given._replace(segments=None)), single, rtol=1e-5)
    assert abs(single[0][0] - loss) > 1e-3


def test_token_labels_leave_out_what_has_none(library):
    given = batch("token_labels")
    ((loss, _, n),) = of(library, "token_labels", given)
    assert_allclose(loss, nll(called("token_labels", given).logits, given.labels), rtol=1e-4)
    assert n == (given.labels != IGNORED).sum()


def test_spans_are_the_mean_of_starts_and_ends(library):
    given = batch("spans")
    ((loss, _, n),) = of(library, "spans", given)
    said, padding = called("spans", given), torch.tensor(given.ids == 1)
    starts, ends = (logits.masked_fill(padding, -1e30) for logits in (said.start_logits, said.end_logits))
    assert_allclose(loss, (nll(starts, given.starts) + nll(ends, given.ends)) / 2, rtol=1e-4)
    assert n == 12


def test_masked_lm_asks_for_the_blanks_alone(library):
    given = batch("masked_lm")
    ((loss, _, n),) = of(library, "masked_lm", given)
    assert_allclose(loss, nll(called("masked_lm", given).logits, given.labels), rtol=1e-4)
    assert n == (given.labels != IGNORED).sum()


def test_pretraining_is_the_sum_and_zero_says_follows(library):
    given = batch("pretraining")
    masked, follows = of(library, "pretraining", given)
    said = called("pretraining", given)
    assert_allclose(masked[0], nll(said.masked_logits, given.labels), rtol=1e-4)
    assert_allclose(follows[0], nll(said.next_logits, 1 - given.follows), rtol=1e-4)
    assert (masked[2], follows[2]) == ((given.labels != IGNORED).sum(), 6)
    half = given._replace(follows=np.where(np.arange(6) < 2, IGNORED, given.follows))
    assert_allclose(
        of(library, "pretraining", half)[1][0], nll(said.next_logits[2:], 1 - given.follows[2:]), rtol=1e-4
    )


def test_contrastive_tells_each_text_from_the_others(library):
    given = batch("contrastive")
    model = tasks.build("torch", "contrastive").eval()
    vectors = []
    for ids in map(torch.tensor, given):
        hidden = model(ids, mask=(ids != 1)[:, None, None, :]).last_hidden
        vectors.append(torch.stack([h[i != 1].mean(0) for h, i in zip(hidden, ids, strict=True)]))
    cosines = F.cosine_similarity(vectors[0][:, None], vectors[1][None], dim=-1)
    forward, backward = (nll(20 * c, np.arange(6)) for c in (cosines, cosines.T))
    assert_allclose(of(library, "contrastive", given)[0], [forward, forward, 6], rtol=1e-3)
    both = of(library, "contrastive", given, symmetric=True)[0]
    assert_allclose(both, [(forward + backward) / 2] * 2 + [12], rtol=1e-3)
    assert_allclose(of(library, "contrastive", given, scale=5)[0][0], nll(5 * cosines, np.arange(6)), rtol=1e-3)


def test_distillation_is_hintons(library):
    given = batch("distillation")
    given = given._replace(labels=np.where(np.arange(6) == 2, IGNORED, given.labels))
    teacher = tasks.build(library, "distillation", seed=8)
    before = tasks.LIBRARIES[library].get_state(teacher)
    objective = objectives(library).distillation(teacher, temperature=3.0, alpha=0.7)
    ((loss, found, n),) = parts_of(library, objective, tasks.build(library, "distillation"), given)
    student = called("distillation", given).logits
    ids, segments = torch.tensor(given.ids), torch.tensor(given.segments)
    wise = tasks.build("torch", "distillation", seed=8).eval()
    said = wise(ids, mask=(ids != 1)[:, None, None, :], segments=segments).logits
    hard = nll(student, given.labels)
    real = given.labels != IGNORED
    soft = F.kl_div((student / 3).log_softmax(-1)[real], (said / 3).softmax(-1)[real], reduction="batchmean").item()
    assert_allclose(loss, 0.7 * 9 * soft + 0.3 * hard, rtol=1e-3)
    assert_allclose([found, n], [hard, 5], rtol=1e-4)
    for name, value in tasks.LIBRARIES[library].get_state(teacher).items():
        assert (value == before[name]).all()


@pytest.mark.parametrize("mode", [True, False])
def test_the_teacher_has_no_dropout_and_keeps_its_mode(mode):
    """Its dropout would make the loss another one each time; it keeps no gradient."""
    teacher = tasks.build("torch", "distillation", dataclasses.replace(tasks.CONFIG, dropout=0.5), seed=8)
    teacher.train(mode)
    objective, student = objectives("torch").distillation(teacher, alpha=1.0), tasks.build("torch", "distillation")
    arrays = objective.read(student, "the batch", batch("distillation")).arrays
    losses = []
    for _ in range(2):
        (part,) = objective.losses(student, **{name: torch.tensor(value) for name, value in arrays.items()})
        part.loss.backward()
        losses.append(part.loss.item())
    assert losses[0] == losses[1] and all(weight.grad is None for weight in teacher.parameters())
    assert teacher.training == mode


@pytest.mark.parametrize("task", ["masked_lm", "pretraining"])
def test_a_model_that_takes_the_blanks_is_asked_at_them_alone(library, task):
    asked = []

    class Asked:
        config = tasks.CONFIG

        def __init__(self):
            self.model = tasks.build(library, "pretraining")

        def forward(self, ids, mask=None, segments=None, at=None, training=False):
            more = {"training": training} if library == "tensorflow" else {}
            said = self.model(ids, mask=mask, segments=segments, at=at, **more)
            asked.append(tuple(said.masked_logits.shape))
            return SimpleNamespace(**said._asdict(), logits=said.masked_logits)

        def __call__(self, *arguments, **more):
            return self.forward(*arguments, **more)

        def eval(self):
            self.model.eval()

    given = batch(task)
    (loss, _, n), *_ = parts_of(library, tasks.objective(library, task), Asked(), given)
    assert asked == [(n, 30)] and n == (given.labels != IGNORED).sum()
    if task == "pretraining":
        assert_allclose(loss, of(library, task, given)[0][0], rtol=1e-4)


def test_a_model_that_was_asked_at_the_blanks_and_gives_all(library):
    model, given = tasks.build(library, "pretraining"), batch("pretraining")

    class Deaf:
        config = tasks.CONFIG

        def __call__(self, ids, mask=None, segments=None, at=None, **more):
            return model(ids, mask=mask, segments=segments, **more)

        def eval(self):
            model.eval()

    with pytest.raises(ValueError, match=r"the logits \(6, 12\) do not fit the labels \(\d+,\)"):
        parts_of(library, tasks.objective(library, "pretraining"), Deaf(), given)
    all_tokens = objectives(library).pretraining(blanks_only=False)
    found = parts_of(library, all_tokens, Deaf(), given)
    assert_allclose(found, of(library, "pretraining", given), rtol=1e-4)


def test_next_token_is_the_next_one_after_each():
    given = batch("next_token")
    found = tasks.objective("torch", "next_token").read(tasks.build("torch", "next_token"), "the batch", given)
    inputs, labels = found.arrays["ids"], found.arrays["labels"]
    assert_array_equal(inputs[:, 1:][labels[:, :-1] != IGNORED], labels[:, :-1][labels[:, :-1] != IGNORED])
    assert_array_equal(labels == IGNORED, given.ids[:, 1:] == 1)


def test_what_is_no_distillation(library):
    module, teacher = objectives(library), tasks.build(library, "distillation")
    for arguments, error, message in (
        ({"temperature": 0}, ValueError, "temperature must be positive, got 0"),
        ({"alpha": 1.5}, ValueError, r"must lie in \[0, 1\], got 1.5"),
        ({"objective": module.pretraining()}, TypeError, "pretraining has several parts"),
    ):
        with pytest.raises(error, match=message):
            module.distillation(teacher, **arguments)
    with pytest.raises(ValueError, match="scale must be positive, got -1"):
        module.contrastive(scale=-1)


@pytest.mark.parametrize("task", tasks.TASKS)
def test_padding_changes_nothing(library, task):
    given, pad_id = batch(task), 0 if task == "translation" else 1
    longer = []
    for name, array in zip(getattr(given, "_fields", ("source", "target", "rows")), given, strict=True):
        fill = {"segments": 0, "labels": IGNORED}.get(name, pad_id)
        longer.append(np.pad(array, ((0, 0), (0, 2)), constant_values=fill) if array.ndim == 2 else array)
    longer = tuple(longer) if task == "translation" else type(given)(*longer)
    objective, model = tasks.objective(library, task), tasks.build(library, task)
    found = [parts_of(library, objective, model, one) for one in (given, longer)]
    assert_allclose(found[0], found[1], rtol=1e-4)


@pytest.mark.parametrize("task", [task for task in tasks.TASKS if task != "contrastive"])
def test_a_batch_of_one(library, task):
    ((loss, *_), *_) = parts_of(library, tasks.objective(library, task), tasks.build(library, task), batch(task, 1))
    assert 0 < loss < 20


def put(value):
    """A change of an array: the second row, and there the first place, becomes a value."""

    def change(array):
        array[(1, 0)[: array.ndim]] = value
        return array

    return change


def tiled(array):
    return np.tile(array, 3)


C, EMPTY = "classification", TextBatch(np.zeros((0, 4), int), np.zeros((0, 4), int), np.zeros(0, int))
PADDING = "row . of B has an answer that ends at padding, token "
ONE_PAIR = ContrastiveBatch(np.ones((1, 3), int), np.ones((1, 3), int))


@pytest.mark.parametrize(
    ("task", "given", "error", "message"),
    [
        (C, None, TypeError, r"B must be a TextBatch\(ids, segments, labels\); got NoneType"),
        (C, batch("masked_lm"), TypeError, "B must be a TextBatch.*; got MaskedBatch"),
        (C, {"ids": lambda a: a.tolist()}, TypeError, "the ids of B must be an array"),
        (C, {"ids": lambda a: a / 2}, TypeError, "the ids of B must be integers"),
        (C, {"ids": lambda a: a[0]}, ValueError, r"the ids of B must have shape \(B, T\)"),
        (C, {"labels": lambda a: a[1:]}, ValueError, "the labels of B .* not fit its ids: B is 6"),
        (C, {"segments": lambda a: a[:, 1:]}, ValueError, "the segments of B .* not fit its ids: T is"),
        (C, {"ids": put(30)}, ValueError, "the ids of B must lie in 0 ... 29"),
        (C, {"segments": put(2)}, ValueError, "the segments of B must lie in 0 ... 1"),
        (C, {"labels": put(3)}, ValueError, "the labels of B must lie in 0 ... 2, or be -100 for none; got"),
        (C, {"labels": put(-1)}, ValueError, "the labels of B must lie in 0 ... 2"),
        (C, {"labels": lambda a: a * 0 - 100}, ValueError, "B has no label, so there is nothing to learn"),
        (C, {"ids": tiled, "segments": tiled}, ValueError, "maximum of 16; truncate or split it; .* `multiple`"),
        (C, EMPTY, ValueError, r"the ids of B has no sequence, or none with a token: its shape is \(0, 4\)"),
        ("token_labels", {"labels": put(3)}, ValueError, "the labels of B must lie in 0 ... 2"),
        ("spans", {"starts": put(99)}, ValueError, "the starts of B must lie in 0 ... "),
        ("spans", {"starts": put(3), "ends": put(2)}, ValueError, "row 1 of B has .* from token 3 to token 2"),
        ("spans", {"starts": put(-100)}, ValueError, "where there is none to learn both are -100"),
        ("spans", {"ids": lambda a: np.where(np.arange(a.shape[1]) < 1, a, 1), "ends": put(3)}, ValueError, PADDING),
        ("masked_lm", {"labels": put(30)}, ValueError, "the labels of B must lie in 0 ... 29"),
        ("pretraining", {"labels": put(30)}, ValueError, "the labels of B must lie in 0 ... 29"),
        ("pretraining", {"follows": put(2)}, ValueError, "the follows of B must lie in 0 ... 1"),
        ("next_token", {"ids": lambda a: a[:, :1]}, ValueError, "B has no label"),
        ("contrastive", ONE_PAIR, ValueError, "B is one pair, with no other to tell it from"),
        ("contrastive", {"second": lambda a: a[1:]}, ValueError, "the second of B .* not fit its first: B is 6"),
        ("contrastive", {"second": put(30)}, ValueError, "the second of B must lie in 0 ... 29"),
    ],
)
def test_what_is_no_batch(task, given, error, message):
    objective, model = tasks.objective("torch", task), tasks.build("torch", task)
    if isinstance(given, dict):
        plain = batch(task)
        given = plain._replace(**{name: change(getattr(plain, name).copy()) for name, change in given.items()})
    with pytest.raises(error, match=message):
        objective.update(model, "B", given)


def test_any_integers_tensors_and_plain_tuples_are_taken():
    objective, model = tasks.objective("torch", "classification"), tasks.build("torch", "classification")
    given = batch("classification")
    expected = parts_of("torch", objective, model, given)
    for form in (np.int32, np.uint8, ">i8"):
        assert parts_of("torch", objective, model, tuple(part.astype(form) for part in given)) == expected
    assert parts_of("torch", objective, model, type(given)(*map(torch.tensor, given))) == expected


def test_a_model_of_another_task(library):
    given = batch("classification")
    with pytest.raises(TypeError, match="a BertModel gives no `logits`"):
        parts_of(library, tasks.objective(library, "classification"), tasks.build(library, "contrastive"), given)
    with pytest.raises(ValueError, match=r"the logits \(6, \d+\) do not fit the labels \(6,\)"):
        parts_of(library, tasks.objective(library, "classification"), tasks.build(library, "masked_lm"), given)


def test_a_model_without_segments_is_given_none(library):
    config = dataclasses.replace(tasks.CONFIG, n_segments=1)
    objective, model = tasks.objective(library, "classification"), tasks.build(library, "classification", config)
    given = batch("classification")
    assert "segments" not in objective.update(model, "B", given).arrays
    found = parts_of(library, objective, model, given)
    assert found == parts_of(library, objective, model, given._replace(segments=None))


class WithSegments:
    """A model of one's own whose call has segments, which its config says nothing of."""

    config = SimpleNamespace(vocab_size=30, max_len=16, pad_id=1)

    def forward(self, ids, mask=None, segments=None):
        return SimpleNamespace(logits=segments)


def test_training_and_answering_agree_on_segments():
    given = batch("spans")
    for model in (WithSegments(), SimpleNamespace(config=WithSegments.config, forward=lambda ids, mask=None: None)):
        assert reads_segments(model) == ("segments" in tasks.objective("torch", "spans").read(model, "B", given).arrays)
    assert reads_segments(WithSegments())


def test_a_teacher_reads_the_segments_that_its_student_does_not(library):
    given = batch("classification")
    teacher = tasks.build(library, "distillation", seed=8)
    student = tasks.build(library, "distillation", dataclasses.replace(tasks.CONFIG, n_segments=1))
    losses = [
        parts_of(library, objectives(library).distillation(a, alpha=1.0), b, one)[0][0]
        for one in (given, given._replace(segments=given.segments * 0))
        for a, b in ((teacher, student), (student, teacher))
    ]
    assert abs(losses[0] - losses[2]) > 1e-3 and abs(losses[1] - losses[3]) > 1e-3
    with pytest.raises(ValueError, match="B, for the teacher, has a sequence of 12 tokens, over the maximum of 11"):
        short = tasks.build(library, "distillation", dataclasses.replace(tasks.CONFIG, max_len=11))
        objectives(library).distillation(short).read(teacher, "B", given)


def test_spans_are_distilled_at_low_temperatures(library):
    """Padding, of which no answer begins, has the least logit that there is; half of it less has none."""
    module, teacher = objectives(library), tasks.build(library, "spans", seed=8)
    objective = module.distillation(teacher, temperature=0.5, objective=module.spans())
    ((loss, _, _),) = parts_of(library, objective, tasks.build(library, "spans"), batch("spans"))
    assert np.isfinite(loss) and loss > 0
    none = batch("spans")
    none = none._replace(starts=none.starts * 0 - 100, ends=none.ends * 0 - 100)
    with pytest.raises(ValueError, match="B has no start or end, so there is nothing to learn"):
        module.spans().update(teacher, "B", none)


def test_a_roberta_reads_as_many_tokens_as_it_has_positions_for():
    sizes = {"vocab_size": 30, "d_model": 12, "n_layers": 1, "n_heads": 3, "d_ff": 16, "max_len": 18}
    model = SimpleNamespace(config=RobertaConfig(**sizes), forward=lambda ids, mask=None: None)
    assert max_len_of(model) == 16 and max_len_of(SimpleNamespace(config=tasks.CONFIG)) == 16
    with pytest.raises(ValueError, match="a sequence of 17 tokens, over the maximum of 16"):
        tasks.objective("torch", "token_labels").read(model, "B", (np.full((2, 17), 5), np.full((2, 17), 0)))


def test_what_is_no_objective():
    module = objectives("torch")
    with pytest.raises(TypeError, match=r"must be an Objective.*got classification; write classification\(\)"):
        check_objective(module.classification)
    with pytest.raises(TypeError, match="must be an Objective.*got str"):
        check_objective("classification")
    check_objective(Objective("mine", lambda model, name, batch: Update({}, (1,)), lambda model: []))


def test_shares_weight_means_by_what_they_count():
    found = shares([Update({}, (1, 4, 0)), Update({}, (3, 4, 0))])
    assert_allclose(found, [[0.25, 0.5, 0.0], [0.75, 0.5, 0.0]])
    assert_allclose(shares([Update({}, (7,))]), [[1.0]])
