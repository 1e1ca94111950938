"""A model as `course_lib.decoding` and `course_lib.acting` want it: what is the next token, what the next action?"""

from course_lib.checks import check_continuation
from course_lib.torch.layers import tensor_of
from course_lib.torch.modes import answering


class NextLogits:
    """The logits of the next token: called with growing ids (N, t), it reads what is new and keeps the rest.

    The start token comes first. Row i belongs to source i until `reorder` says otherwise.

    Parameters
    ----------
    model : one with `encode`, `start` and `step`, such as a `Transformer`, a `Seq2Seq` or a `GPT`
    source_ids : what `encode` takes: integers, shape (B, S), or of a `GPT` the number of rows
    cached : False computes all tokens anew at every call, the slow way to the same logits
    """

    def __init__(self, model, source_ids, cached: bool = True):
        self.model, self.cached, self.n_read = model, cached, 0
        with answering(model):
            self.memory = model.encode(source_ids)
            self.state = model.start(self.memory)

    def __call__(self, ids):
        """ids (N, t) -> NumPy array (N, target_vocab); ValueError unless they continue what was read."""
        ids = tensor_of(ids, _device(self.state))
        check_continuation(ids.shape, _n_rows(self.state), self.n_read)
        with answering(self.model):
            if self.cached:
                logits, self.state = self.model.step(ids[:, self.n_read :], self.state)
            else:
                logits, _ = self.model.step(ids, self.model.start(self.memory))
        self.n_read = ids.shape[1]
        return logits.float().cpu().numpy()

    def reorder(self, rows):
        """Row i of the next call continues row rows[i] of the last one: integers (N,), repeated or left out at will."""
        with answering(self.model):
            rows = tensor_of(rows, _device(self.state))
            self.memory, self.state = _chosen(self.memory, rows), _chosen(self.state, rows)


class NextAction:
    """A Decision Transformer as `course_lib.acting.rollouts.Asking` wants it: asked for one action after the other.

    Parameters
    ----------
    model : a `DecisionTransformer`, which reads a batch of one, (1, T, d_state), or one of your own with its call and a
        `config.d_action`
    """

    def __init__(self, model):
        self.model, self.d_action = model, model.config.d_action

    def __call__(self, states, actions, returns, times):
        """T steps, (T, d_state), (T, d_action), (T, 1), (T,) -> what the last shall do, a NumPy array (d_action,)."""
        device = next(self.model.parameters()).device
        inputs = (tensor_of(x, device)[None] for x in (states, actions, returns, times))
        with answering(self.model):
            return self.model(*inputs).actions[0, -1].float().cpu().numpy()


def _chosen(value, rows):
    """Of every array in a structure of tuples, these rows."""
    if isinstance(value, tuple):
        parts = [_chosen(part, rows) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return None if value is None else value[rows]


def _n_rows(value):
    return _n_rows(value[0]) if isinstance(value, tuple) else value.shape[0]


def _device(value):
    return _device(value[0]) if isinstance(value, tuple) else value.device
