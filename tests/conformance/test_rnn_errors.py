"""Recurrent models: the same mistake gives the same exception type and a telling message in every framework."""

import numpy as np
import pytest

from course_lib.models.seq2seq import Seq2SeqConfig
from tests.support.pairwise import pairwise

B, T, D_IN, D = 2, 3, 4, 6
X = np.zeros((B, T, D_IN))
MASK = np.ones((B, T), dtype=bool)
H, WIDE = np.zeros((B, D)), np.zeros((B, 2 * D))


# case -> x, mask, state, exception, message; a GRU of 4 inputs and 6 units
CALLS = {
    "x without a batch": (X[0], None, None, ValueError, r"x must have shape \(B, T, 4\), got \(3, 4\)"),
    "x of another width": (X[..., :3], None, None, ValueError, r"x must have shape \(B, T, 4\), got \(2, 3, 3\)"),
    "no step": (X[:, :0], None, None, ValueError, r"at least one step, got x \(2, 0, 4\)"),
    "mask of numbers": (X, MASK.astype(np.int64), None, TypeError, "boolean with True = a real token, got.*int64"),
    "float mask": (X, MASK.astype(float), None, TypeError, "boolean with True = a real token, got.*float"),
    "mask of attention": (X, MASK[:, None, None], None, ValueError, r"each step, \(2, 3\); got \(2, 1, 1, 3\)"),
    "mask of another length": (X, MASK[:, :2], None, ValueError, r"each step, \(2, 3\); got \(2, 2\)"),
    "mask of another batch": (X, MASK[:1], None, ValueError, r"each step, \(2, 3\); got \(1, 3\)"),
    "state that is no tuple": (X, None, H, TypeError, r"a tuple of arrays, got .*write \(h,\)"),
    "two states for one": (X, None, (H, H), ValueError, r"must hold 1 of shape \(2, {wide}\); got \(2, 6\), \(2, 6\)"),
    "state of another batch": (X, None, (H[:1],), ValueError, r"must hold 1 of shape \(2, {wide}\); got \(1, 6\)"),
    "state of another width": (X, None, (H[:, :3],), ValueError, r"must hold 1 of shape \(2, {wide}\); got \(2, 3\)"),
    "no state": (X, None, (), ValueError, r"must hold 1 of shape \(2, {wide}\); got none"),
}


@pairwise(
    case=list(CALLS),
    run=["run_unrolled", "run_fused"],
    bidirectional=[pytest.param(False, id="one way"), pytest.param(True, id="both ways")],
)
def test_network(backend, case, run, bidirectional):
    x, mask, state, exception, message = CALLS[case]
    network = backend.make("RNN", D_IN, D, "gru", bidirectional, run=backend.function(run))
    given = tuple(map(backend.tensor, state)) if isinstance(state, tuple) else backend.tensor(state)
    with pytest.raises(exception, match=f"(?s){message.format(wide=12 if bidirectional else 6)}"):
        backend.call(network, x, mask=mask, state=given)


@pytest.mark.parametrize("x, state, exception, message", [
    (X[0, 0], (H,), ValueError, r"x must have shape \(B, 4\), got \(4\)"),
    (X, (H,), ValueError, r"x must have shape \(B, 4\), got \(2, 3, 4\)"),
    (X[:, 0, :2], (H,), ValueError, r"x must have shape \(B, 4\), got \(2, 2\)"),
    (X[:, 0], (H[:1],), ValueError, r"must hold 1 of shape \(2, 6\); got \(1, 6\)"),
    (X[:, 0], (H, H), ValueError, "must hold 1 of shape"),
    (X[:, 0], H, TypeError, "a tuple of arrays"),
])  # fmt: skip
@pytest.mark.parametrize("name", ["RNNCell", "GRUCell"])
def test_one_step(backend, name, x, state, exception, message):
    given = tuple(map(backend.tensor, state)) if isinstance(state, tuple) else backend.tensor(state)
    with pytest.raises(exception, match=message):
        backend.make(name, D_IN, D)(backend.tensor(x), given)


def test_an_lstm_needs_two_states(backend):
    with pytest.raises(ValueError, match=r"must hold 2 of shape \(2, 6\); got \(2, 6\)"):
        backend.make("LSTMCell", D_IN, D)(backend.tensor(X[:, 0]), (backend.tensor(H),))


SIZES = (9, 11, 3, 4)  # source_vocab, target_vocab, d_model, d_hidden


@pytest.mark.parametrize("name, arguments, settings, message", [
    ("RNN", (4, 6, "elman"), {}, "cell must be one of 'rnn', 'gru', 'lstm'; got 'elman'"),
    ("DotScore", (4, 6), {}, "d_query = d_key, got 4 and 6; 'general' takes any two"),
])  # fmt: skip
def test_constructors(backend, name, arguments, settings, message):
    with pytest.raises(ValueError, match=message):
        backend.make(name, *arguments, **settings)


@pytest.mark.parametrize("query, keys, message", [
    ((2, 5), (2, 4, 3), r"query must have shape \(B, T, 5\), got \(2, 5\)"),
    ((2, 3, 4), (2, 4, 3), r"query must have shape \(B, T, 5\), got \(2, 3, 4\)"),
    ((2, 3, 5), (2, 4, 5), r"keys must have shape \(B, S, 3\), got \(2, 4, 5\)"),
    ((2, 3, 5), (4, 3), r"keys must have shape \(B, S, 3\), got \(4, 3\)"),
    ((2, 3, 5), (1, 4, 3), r"the same batch, got \(2, 3, 5\) and \(1, 4, 3\)"),
])  # fmt: skip
@pytest.mark.parametrize("name", ["GeneralScore", "AdditiveScore"])
def test_scores(backend, name, query, keys, message):
    with pytest.raises(ValueError, match=message):
        backend.call(backend.make(name, 5, 3), np.zeros(query), np.zeros(keys))


IDS = np.array([[1, 2, 3], [4, 5, 0]])


@pytest.mark.parametrize("source, target, exception, message", [
    (IDS + 5, IDS, ValueError, r"source_ids must lie in 0 ... 8, got ids from 5 to 10"),
    (IDS, IDS - 1, ValueError, r"target_ids must lie in 0 ... 10, got ids from -1 to 4"),
    (IDS, IDS + 6, ValueError, r"target_ids must lie in 0 ... 10, got ids from 6 to 11"),
    (IDS.astype(float), IDS, TypeError, "source_ids must be integers"),
    (IDS, IDS.astype(float), TypeError, "target_ids must be integers"),
    (IDS, IDS > 0, TypeError, "target_ids must be integers"),
    (IDS[0], IDS, ValueError, r"source_ids must have shape \(B, T\), got \(3\)"),
    (IDS, IDS[0], ValueError, r"target_ids must have shape \(B, T\), got \(3\)"),
    (IDS, IDS[:1], ValueError, r"one target for each source, got \(2, 3\) and \(1, 3\)"),
    (IDS[:1], IDS, ValueError, r"one target for each source, got \(1, 3\) and \(2, 3\)"),
    (IDS, IDS[:, :0], ValueError, r"at least the start token, got target_ids \(2, 0\)"),
    (IDS[:, :0], IDS, ValueError, "at least one step"),
])  # fmt: skip
@pytest.mark.parametrize("score", [None, "additive"])
def test_translation(backend, score, source, target, exception, message):
    model = backend.make("Seq2Seq", Seq2SeqConfig(*SIZES, score=score))
    with pytest.raises(exception, match=message):
        backend.call(model, source, target)


@pytest.mark.parametrize("ids, exception, message", [
    (IDS[:, :1], ValueError, r"ids must have shape \(B,\), got \(2, 1\)"),
    (np.array([1, 11]), ValueError, r"ids must lie in 0 ... 10, got ids from 1 to 11"),
    (np.array([1.0, 2.0]), TypeError, "ids must be integers"),
])  # fmt: skip
def test_one_step_of_translation(backend, ids, exception, message):
    model = backend.make("Seq2Seq", Seq2SeqConfig(*SIZES, score="additive"))
    memory = model.encode(backend.tensor(IDS))
    with pytest.raises(exception, match=message):
        model.advance(backend.tensor(ids), memory.state, memory)


def test_next_logits(backend):
    next_logits = backend.make("Seq2Seq", Seq2SeqConfig(*SIZES, score="additive")).next_logits(IDS)
    with pytest.raises(ValueError, match=r"ids must have shape \(2, t\), got \(4, 1\); `reorder` chooses other rows"):
        next_logits(np.ones((4, 1), dtype=int))
    with pytest.raises(ValueError, match=r"ids must have shape \(2, t\), got \(2\)"):
        next_logits(np.ones(2, dtype=int))
    next_logits(np.ones((2, 2), dtype=int))
    for length in (1, 2):
        with pytest.raises(ValueError, match=rf"2 tokens of each row are read already.*got \(2, {length}\)"):
            next_logits(np.ones((2, length), dtype=int))
