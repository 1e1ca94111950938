"""Recurrent translation: the encoder-decoder, with attention and without."""

import numpy as np

from course_lib.checks import check_pairs
from course_lib.models.seq2seq import SEQ2SEQ, Seq2SeqConfig, Seq2SeqMemory, Seq2SeqOutput, Seq2SeqState
from course_lib.numpy.alignment import SCORES, weighted_mean
from course_lib.numpy.checkpoint import Checkpoint
from course_lib.numpy.decoding import NextLogits
from course_lib.numpy.layers import Embedding, Linear, Module, checked_ids
from course_lib.numpy.rnn import CELLS, RNN, run_fused


class Seq2Seq(Checkpoint, Module):
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
        self.config, self.order, self.run = config, config.order, run
        self.source_vocab, self.target_vocab = config.source_vocab, config.target_vocab
        d_model, d_hidden = config.d_model, config.d_hidden
        self.source_embedding = Embedding(self.source_vocab, d_model, d_model**-0.5)
        self.target_embedding = Embedding(self.target_vocab, d_model, d_model**-0.5)
        self.encoder = RNN(d_model, d_hidden // 2, config.cell, True, run)
        self.cell = CELLS[config.cell](d_model + d_hidden if self.order == "bahdanau" else d_model, d_hidden)
        self.bridge = Linear(d_hidden, self.cell.n_states * d_hidden)
        self.score = None if config.score is None else SCORES[config.score](d_hidden, d_hidden)
        self.readout = Linear(d_hidden + d_model + d_hidden, d_model)
        self.out_proj = Linear(d_model, self.target_vocab)

    def __call__(self, source_ids, target_ids):
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
        ValueError : ids outside the vocabulary, wrong shapes, no step at all.
        TypeError : ids that are not integers.
        """
        memory = self.encode(source_ids)
        target_ids = checked_ids("target_ids", target_ids, self.target_vocab)
        check_pairs(memory.annotations.shape[:2], target_ids.shape)
        state, logits, weights = memory.state, [], []
        for t in range(target_ids.shape[1]):
            logits_t, state, weights_t = self.advance(target_ids[:, t], state, memory)
            logits.append(logits_t)
            weights.append(weights_t)
        return Seq2SeqOutput(np.stack(logits, axis=1), None if self.score is None else np.stack(weights, axis=1))

    def encode(self, source_ids):
        """Read the source: integers (B, S) -> Seq2SeqMemory; errors as for the call."""
        source_ids = checked_ids("source_ids", source_ids, self.source_vocab)
        real = source_ids != self.config.pad_id
        annotations, last = self.encoder(self.source_embedding(source_ids), mask=real)
        keys = None if self.score is None else self.score.prepare(annotations)
        state = np.split(np.tanh(self.bridge(last[0])), self.cell.n_states, axis=-1)
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
        y = self.target_embedding(checked_ids("ids", ids, self.target_vocab, "(B,)"))
        if self.order == "bahdanau":
            context, weights = self.attend(state[0], memory)
            state = self.cell(np.concatenate([y, context], axis=-1), state)
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
        return self.out_proj(np.tanh(self.readout(np.concatenate([s, y, context], axis=-1))))

    def next_logits(self, source_ids, cached: bool = True):
        """The logits of the next target token, for decoding: a `NextLogits` for the sources, integers (B, S)."""
        return NextLogits(self, source_ids, cached)
