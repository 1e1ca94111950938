"""The Decision Transformer (Chen et al. 2021, section 3): what to do next, as a GPT that reads returns and states."""

import numpy as np

from course_lib.checks import check_tokens
from course_lib.models.decision import DECISION, DecisionConfig, DecisionOutput, check_config, check_given, check_steps
from course_lib.numpy.attention import attention
from course_lib.numpy.checkpoint import Checkpoint
from course_lib.numpy.decoder import Decoder
from course_lib.numpy.layers import Embedding, LayerNorm, Linear, Module, checked_ids
from course_lib.numpy.models.bert import initialise


class DecisionTransformer(Checkpoint, Module):
    """Three tokens a step, (return, state, action), with the step's time, read by the decoder of a GPT.

    The return of a step is the sum of the rewards from there to the episode's end; at the state's token stands the
    prediction of the action. A step's tokens share the vector of its time; where a token stands among the three is told
    by its linear layer alone, so there are no other positions.

    Parameters
    ----------
    config : sizes
    attention : the attention function, `attention` or `fused_attention`
    """

    family, architecture = DECISION, "DecisionTransformerModel"

    def __init__(self, config: DecisionConfig, attention=attention):
        self.config = check_config(config)
        self.embed_return = Linear(1, config.d_model)
        self.embed_state = Linear(config.d_state, config.d_model)
        self.embed_action = Linear(config.d_action, config.d_model)
        self.time = Embedding(config.max_len, config.d_model, config.init_std)
        self.norm = LayerNorm(config.d_model)
        self.shift = np.random.normal(0.0, config.init_std, config.d_model)
        self.decoder = Decoder(config.n_layers, config.block, attention, cross_attention=False)
        self.predict_action = Linear(config.d_model, config.d_action)
        self.predict_state = Linear(config.d_model, config.d_state)
        self.predict_return = Linear(config.d_model, 1)
        initialise(self, config.init_std)
        for layer in self.decoder.layers:
            for linear in (layer.self_attention.out_proj, layer.feed_forward.linear2):
                linear.weight = linear.weight * config.residual_scale

    def __call__(self, states, actions, returns, times, real=None, return_layers=False):
        """Predict the action of each step from its return, its state and the steps before.

        The paper trains the actions alone; states and returns of the next step are predicted besides, as in
        `transformers`. The last action has no influence on the actions: where it is yet to be chosen, give zeros.

        Parameters
        ----------
        states : shape (B, T, d_state)
        actions : shape (B, T, d_action)
        returns : the returns-to-go, shape (B, T, 1), divided by a number that brings them near 1: each token is
            normalised, so that large ones look alike
        times : the number of each step in its episode, integers, shape (B, T)
        real : boolean, shape (B, T), False at padding, which no step attends to; None: all are. Numbers at padding must
            be finite: nan times a weight of 0 is nan
        return_layers : also return every layer's hidden states and attention weights

        Returns
        -------
        DecisionOutput : actions (B, T, d_action), states (B, T, d_state), returns (B, T, 1); hidden and weights, None
            unless return_layers.

        Raises
        ------
        ValueError : wrong shapes, no step, times outside 0 ... max_len - 1.
        TypeError : None but for `real`, times that are not integers, a `real` that is not boolean, other numbers than
            floating point.
        """
        x = self.embed(states, actions, returns, times)
        decoded = self.decoder(x, None, _mask(real, x.shape), None, return_layers, causal=True)
        steps = decoded.last_hidden.reshape(len(x), x.shape[1] // 3, 3, self.config.d_model)  # (B, T, 3, d_model)
        predicted = self.predict_action(steps[:, :, 1])
        return DecisionOutput(
            np.tanh(predicted) if self.config.action_tanh else predicted,
            self.predict_state(steps[:, :, 2]),
            self.predict_return(steps[:, :, 2]),
            decoded.hidden,
            decoded.self_weights,
        )

    def embed(self, states, actions, returns, times):
        """The tokens of all steps, normalised: shapes as for the call -> (B, 3T, d_model)."""
        check_given(states=states, actions=actions, returns=returns, times=times)
        states, actions, returns = (np.asarray(x) for x in (states, actions, returns))
        times = checked_ids("times", times, self.config.max_len)
        check_steps(self.config, states, actions, returns, times)
        tokens = [self.embed_return(returns), self.embed_state(states), self.embed_action(actions)]
        x = np.stack(tokens, axis=2) + self.time(times)[:, :, None]  # (B, T, 3, d_model)
        return self.norm(x).reshape(len(x), 3 * x.shape[1], self.config.d_model) + self.shift


def _mask(real, tokens_shape):
    """Which of the tokens (B, 3T, d_model) no query may attend to: boolean (B, T) -> (B, 1, 1, 3T)."""
    if real is None:
        return None
    real = np.asarray(real)
    check_tokens("real", real.shape, real.dtype, (tokens_shape[0], tokens_shape[1] // 3))
    return np.repeat(real, 3, axis=1)[:, None, None, :]
