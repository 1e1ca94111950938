"""Recurrent translation: the encoder-decoder, with attention and without."""

import keras
import tensorflow as tf

from course_lib.checks import check_pairs
from course_lib.models.seq2seq import SEQ2SEQ, Seq2SeqConfig, Seq2SeqMemory, Seq2SeqOutput, Seq2SeqState
from course_lib.tensorflow.alignment import SCORES, weighted_mean
from course_lib.tensorflow.checkpoint import Checkpoint
from course_lib.tensorflow.decoding import NextLogits
from course_lib.tensorflow.fitting import Fittable
from course_lib.tensorflow.layers import ExplicitMask, checked_ids, dense, embedding, product
from course_lib.tensorflow.rnn import CELLS, RNN, run_fused


class Seq2Seq(Checkpoint, Fittable, ExplicitMask, keras.Model):
    """The recurrent encoder-decoder, with attention (Bahdanau et al. 2015) or without (Cho et al. 2014).

    The encoder reads in both directions. A step of the decoder, from the state s(i-1) and the target token y(i-1):

        c(i) = sum_s a(i, s) h(s),  a(i) = softmax of score(s(i-1), h(s))
        s(i) = cell([y(i-1), c(i)], s(i-1))
        logits = W tanh(V [s(i), y(i-1), c(i)])

    Without attention, c(i) is the encoder's last state [forward, backward] at every step, and nothing else differs.
    In Luong's order (Luong et al. 2015, section 3, without input feeding) the cell reads y(i-1) alone, and the score
    sees s(i).

    Parameters
    ----------
    config : sizes, the kind of cell, and of attention
    run : what runs a cell along a sequence, `run_unrolled` or `run_fused`
    """

    family, architecture = SEQ2SEQ, "Seq2Seq"

    def __init__(self, config: Seq2SeqConfig, run=run_fused):
        super().__init__()
        self.config, self.order, self.run = config, config.order, run
        self.source_vocab, self.target_vocab = config.source_vocab, config.target_vocab
        d_model, d_hidden = config.d_model, config.d_hidden
        self.source_embedding = embedding(self.source_vocab, d_model, d_model**-0.5)
        self.target_embedding = embedding(self.target_vocab, d_model, d_model**-0.5)
        self.encoder = RNN(d_model, d_hidden // 2, config.cell, True, run)
        self.cell = CELLS[config.cell](d_model + d_hidden if self.order == "bahdanau" else d_model, d_hidden)
        self.bridge = dense(d_hidden, self.cell.n_states * d_hidden)
        self.score = None if config.score is None else SCORES[config.score](d_hidden, d_hidden)
        self.readout = dense(d_hidden + d_model + d_hidden, d_model)
        self.out_proj = dense(d_model, self.target_vocab)
        self.dropout = keras.layers.Dropout(config.dropout)

    def call(self, source_ids, target_ids, training=False):
        """Predict each target token from the true ones before it (teacher forcing).

        Parameters
        ----------
        source_ids : integers, shape (B, S)
        target_ids : integers, shape (B, T): the start token, then the target without its last token

        Returns
        -------
        Seq2SeqOutput : logits (B, T, target_vocab), of the token after each; weights (B, T, S), None without attention.

        Raises
        ------
        ValueError : ids outside the vocabulary (when run eagerly; a compiled function cannot look), wrong shapes, no
            step at all.
        TypeError : ids that are not integers.
        """
        memory = self.encode(source_ids)
        target_ids = checked_ids("target_ids", target_ids, self.target_vocab)
        check_pairs(memory.annotations.shape[:2], target_ids.shape)
        y = self.dropout(self.target_embedding(target_ids))  # (B, T, d_model)
        if self.score is None:
            context, weights = tf.repeat(memory.summary[:, None], tf.shape(y)[1], axis=1), None
            inputs = tf.concat([y, context], -1) if self.order == "bahdanau" else y
            states = self.run(self.cell, inputs, None, memory.state).outputs  # (B, T, d_hidden)
        elif self.order == "luong":
            states = self.run(self.cell, y, None, memory.state).outputs
            scores = self.score.compare(states, memory.keys)  # (B, T, S)
            context, weights = weighted_mean(scores, memory.annotations, memory.mask)
        else:
            states, weights = self._attentive_steps(y, memory)
            context = tf.matmul(weights, memory.annotations)
        return Seq2SeqOutput(self.predict_from(states, y, context), weights)

    def _attentive_steps(self, y, memory):
        """Bahdanau's order, with all that waits for no state done before the loop.

        The cell's product with [y, c] is that with y, known for all T, and that with c = sum_s a_s h_s. The latter is
        sum_s a_s (W_c h_s): the annotations go through W_c once, and a step forms a mean of S vectors.
        """
        weight_y, weight_c = tf.split(self.cell.weight_ih, [self.config.d_model, self.config.d_hidden], axis=1)
        from_y = product(y, weight_y) + self.cell.bias_ih  # (B, T, n_gates d_hidden)
        from_annotations = product(memory.annotations, weight_c)  # (B, S, n_gates d_hidden)
        n_rows, n_steps = y.shape[0], tf.shape(y)[1]
        inputs = tf.TensorArray(y.dtype, n_steps, element_shape=(n_rows, from_y.shape[-1]))
        inputs = inputs.unstack(tf.transpose(from_y, (1, 0, 2)))
        states = tf.TensorArray(y.dtype, n_steps, element_shape=(n_rows, self.config.d_hidden))
        weights = tf.TensorArray(y.dtype, n_steps, element_shape=(n_rows, memory.mask.shape[-1]))

        def step(t, state, states, weights):
            scores = self.score.compare(state[0][:, None], memory.keys)  # (B, 1, S)
            from_c, weights_t = weighted_mean(scores, from_annotations, memory.mask)
            state = self.cell.combine(inputs.read(t) + from_c[:, 0], self.cell.recur(state[0]), state)
            return t + 1, state, states.write(t, state[0]), weights.write(t, weights_t[:, 0])

        loop = tf.while_loop(
            lambda t, *_: t < n_steps, step, (0, memory.state, states, weights), maximum_iterations=n_steps
        )
        return tf.transpose(loop[2].stack(), (1, 0, 2)), tf.transpose(loop[3].stack(), (1, 0, 2))

    def encode(self, source_ids):
        """Read the source: integers (B, S) -> Seq2SeqMemory; errors as for the call."""
        source_ids = checked_ids("source_ids", source_ids, self.source_vocab)
        real = source_ids != self.config.pad_id
        annotations, last = self.encoder(self.dropout(self.source_embedding(source_ids)), mask=real)
        keys = None if self.score is None else self.score.prepare(annotations)
        state = tf.split(tf.tanh(self.bridge(last[0])), self.cell.n_states, axis=-1)
        return Seq2SeqMemory(annotations, keys, real[:, None], last[0], tuple(state))

    def start(self, memory):
        """The state before the first target token, for a Seq2SeqMemory."""
        return Seq2SeqState(memory, memory.state)

    def step(self, ids, state):
        """Read new target tokens, integers (B, n) -> logits (B, target_vocab) of the one after them, the next state."""
        memory, hidden = state
        for t in range(ids.shape[1]):
            logits, hidden, _ = self.advance(ids[:, t], hidden, memory)
        return logits, Seq2SeqState(memory, hidden)

    def advance(self, ids, state, memory):
        """One step from the decoder's own predictions.

        Parameters
        ----------
        ids : the tokens chosen last, integers (B,); the start token at first
        state : what the last step returned, arrays (B, d_hidden); `memory.state` at first
        memory : what `encode` returned

        Returns
        -------
        logits (B, target_vocab), the next state, and weights (B, S), None without attention.

        Raises
        ------
        ValueError, TypeError : as for the call.
        """
        y = self.dropout(self.target_embedding(checked_ids("ids", ids, self.target_vocab, "(B,)")))
        if self.order == "bahdanau":
            context, weights = self.attend(state[0], memory)
            state = self.cell(tf.concat([y, context], -1), state)
        else:
            state = self.cell(y, state)
            context, weights = self.attend(state[0], memory)
        return self.predict_from(state[0], y, context), state, weights

    def attend(self, s, memory):
        """A state (B, d_hidden) -> context (B, d_hidden) and weights (B, S), None without attention."""
        if self.score is None:
            return memory.summary, None
        scores = self.score.compare(s[:, None], memory.keys)  # (B, 1, S)
        context, weights = weighted_mean(scores, memory.annotations, memory.mask)
        return context[:, 0], weights[:, 0]

    def predict_from(self, s, y, context):
        """States, embeddings and contexts (..., features) -> logits (..., target_vocab)."""
        return self.out_proj(self.dropout(tf.tanh(self.readout(tf.concat([s, y, context], -1)))))

    def next_logits(self, source_ids, cached: bool = True):
        """The logits of the next target token, for decoding: a `NextLogits` for the sources, integers (B, S)."""
        return NextLogits(self, source_ids, cached)
