"""The Decision Transformer (Chen et al. 2021, section 3): what to do next, as a GPT that reads returns and states."""

import keras
import tensorflow as tf

from course_lib.checks import check_tokens
from course_lib.models.decision import DECISION, DecisionConfig, DecisionOutput, check_config, check_given, check_steps
from course_lib.tensorflow.attention import attention
from course_lib.tensorflow.checkpoint import Checkpoint
from course_lib.tensorflow.decoder import Decoder
from course_lib.tensorflow.fitting import Fittable
from course_lib.tensorflow.layers import ExplicitMask, checked_ids, dense, embedding, layer_norm, lengths
from course_lib.tensorflow.models.bert import initialise


class DecisionTransformer(Checkpoint, Fittable, ExplicitMask, keras.Model):
    """Three tokens a step, (return, state, action), with the step's time, read by the decoder of a GPT.

    The return of a step is the sum of the rewards from there to the episode's end; at the state's token stands the
    prediction of the action. A step's tokens share the vector of its time; where a token stands among the three is told
    by its linear layer alone, so there are no other positions.

    Keras's own `fit` knows nothing of padding: give it `sample_weight=real`, or it learns the actions there, too;
    `course_lib.tensorflow.training.loop` leaves them out by itself.

    Parameters
    ----------
    config : sizes
    attention : the attention function, `attention` or `fused_attention`
    """

    family, architecture = DECISION, "DecisionTransformerModel"

    def __init__(self, config: DecisionConfig, attention=attention):
        super().__init__()
        self.config = check_config(config)
        self.embed_return = dense(1, config.d_model)
        self.embed_state = dense(config.d_state, config.d_model)
        self.embed_action = dense(config.d_action, config.d_model)
        self.time = embedding(config.max_len, config.d_model, config.init_std)
        self.norm = layer_norm(config.d_model, 1e-5)
        start = keras.initializers.RandomNormal(stddev=config.init_std)
        self.shift = self.add_weight(shape=(config.d_model,), initializer=start, name="shift")
        self.dropout = keras.layers.Dropout(config.embedding_dropout)
        self.decoder = Decoder(config.n_layers, config.block, attention, cross_attention=False)
        self.predict_action = dense(config.d_model, config.d_action)
        self.predict_state = dense(config.d_model, config.d_state)
        self.predict_return = dense(config.d_model, 1)
        initialise(self, config.init_std)
        for layer in self.decoder.layers:
            for linear in (layer.self_attention.out_proj, layer.feed_forward.linear2):
                linear.kernel.assign(linear.kernel * config.residual_scale)

    def call(self, states, actions, returns, times, real=None, return_layers=False, training=False):
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
        ValueError : wrong shapes, no step, times outside 0 ... max_len - 1 (when run eagerly; a compiled function
            cannot look).
        TypeError : None but for `real`, times that are not integers, a `real` that is not boolean, other numbers than
            floating point.
        """
        x = self.embed(states, actions, returns, times)
        decoded = self.decoder(x, mask=_mask(real, times), return_layers=return_layers, causal=True)
        b, tokens, d_model = lengths(decoded.last_hidden)
        steps = tf.reshape(decoded.last_hidden, (b, tokens // 3, 3, d_model))
        predicted = self.predict_action(steps[:, :, 1])
        return DecisionOutput(
            tf.tanh(predicted) if self.config.action_tanh else predicted,
            self.predict_state(steps[:, :, 2]),
            self.predict_return(steps[:, :, 2]),
            decoded.hidden,
            decoded.self_weights,
        )

    def embed(self, states, actions, returns, times):
        """The tokens of all steps, normalised, and dropout: shapes as for the call -> (B, 3T, d_model)."""
        check_given(states=states, actions=actions, returns=returns, times=times)
        states, actions, returns = (tf.convert_to_tensor(x) for x in (states, actions, returns))
        times = checked_ids("times", times, self.config.max_len)
        check_steps(self.config, states, actions, returns, times)
        sizes = (self.config.d_state, self.config.d_action, 1)
        states, actions, returns = (
            tf.ensure_shape(x, (None, None, n))  # which a compiled function may not know
            for x, n in zip((states, actions, returns), sizes, strict=True)
        )
        tokens = [self.embed_return(returns), self.embed_state(states), self.embed_action(actions)]
        x = self.norm(tf.stack(tokens, axis=2) + self.time(times)[:, :, None])  # (B, T, 3, d_model)
        b, steps, _, d_model = lengths(x)
        return self.dropout(tf.reshape(x, (b, 3 * steps, d_model)) + tf.cast(self.shift, x.dtype))

    def _inputs_signature(self):
        sizes = {"states": self.config.d_state, "actions": self.config.d_action, "returns": 1}
        numbers = [keras.InputSpec("float32", (None, None, n), name=name) for name, n in sizes.items()]
        return (*numbers, keras.InputSpec("int64", (None, None), name="times"))


def _mask(real, times):
    """Which of the tokens of all steps no query may attend to: boolean (B, T) -> (B, 1, 1, 3T)."""
    if real is None:
        return None
    real = tf.convert_to_tensor(real)
    check_tokens("real", real.shape, real.dtype.name, tf.convert_to_tensor(times).shape)
    return tf.repeat(real, 3, axis=1)[:, None, None, :]
