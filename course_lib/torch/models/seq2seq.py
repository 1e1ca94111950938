"""Recurrent translation: the encoder-decoder, with attention and without."""

import torch
from torch import nn
from torch.nn import functional as F

from course_lib.checks import check_pairs
from course_lib.models.seq2seq import SEQ2SEQ, Seq2SeqConfig, Seq2SeqMemory, Seq2SeqOutput, Seq2SeqState
from course_lib.torch.alignment import SCORES, weighted_mean
from course_lib.torch.checkpoint import Checkpoint
from course_lib.torch.decoding import NextLogits
from course_lib.torch.layers import checked_ids
from course_lib.torch.rnn import CELLS, RNN, run_fused


class Seq2Seq(Checkpoint, nn.Module):
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
        self.source_embedding = nn.Embedding(self.source_vocab, d_model)
        self.target_embedding = nn.Embedding(self.target_vocab, d_model)
        self.encoder = RNN(d_model, d_hidden // 2, config.cell, True, run)
        self.cell = CELLS[config.cell](d_model + d_hidden if self.order == "bahdanau" else d_model, d_hidden)
        self.bridge = nn.Linear(d_hidden, self.cell.n_states * d_hidden)
        self.score = None if config.score is None else SCORES[config.score](d_hidden, d_hidden)
        self.readout = nn.Linear(d_hidden + d_model + d_hidden, d_model)
        self.out_proj = nn.Linear(d_model, self.target_vocab)
        self.dropout = nn.Dropout(config.dropout)
        for table in (self.source_embedding, self.target_embedding):
            nn.init.normal_(table.weight, std=d_model**-0.5)

    def forward(self, source_ids, target_ids):
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
        ValueError : ids outside the vocabulary (on a CPU and outside a compiled graph; elsewhere nobody looks), wrong
            shapes, no step at all.
        TypeError : ids that are not integers.
        """
        memory = self.encode(source_ids)
        target_ids = checked_ids("target_ids", target_ids, self.target_vocab, device=memory.annotations.device)
        check_pairs(memory.annotations.shape[:2], target_ids.shape)
        y = self.dropout(self.target_embedding(target_ids))  # (B, T, d_model)
        if self.score is None:
            context, weights = memory.summary[:, None].expand(-1, y.shape[1], -1), None
            inputs = torch.cat([y, context], dim=-1) if self.order == "bahdanau" else y
            states = self.run(self.cell, inputs, None, memory.state).outputs  # (B, T, d_hidden)
        elif self.order == "luong":
            states = self.run(self.cell, y, None, memory.state).outputs
            scores = self.score.compare(states, memory.keys)  # (B, T, S)
            context, weights = weighted_mean(scores, memory.annotations, memory.mask)
        else:
            states, weights = self._attentive_steps(y, memory)
            context = weights @ memory.annotations
        return Seq2SeqOutput(self.predict_from(states, y, context), weights)

    def _attentive_steps(self, y, memory):
        """Bahdanau's order, with all that waits for no state done before the loop.

        The cell's product with [y, c] is that with y, known for all T, and that with c = sum_s a_s h_s. The latter is
        sum_s a_s (W_c h_s): the annotations go through W_c once, and a step forms a mean of S vectors.
        """
        weight_y, weight_c = self.cell.weight_ih.split([self.config.d_model, self.config.d_hidden], dim=1)
        from_y = F.linear(y, weight_y, self.cell.bias_ih)  # (B, T, n_gates d_hidden)
        from_annotations = F.linear(memory.annotations, weight_c)  # (B, S, n_gates d_hidden)
        state, states, weights = memory.state, [], []
        for projected in from_y.unbind(1):
            scores = self.score.compare(state[0][:, None], memory.keys)  # (B, 1, S)
            from_c, weights_t = weighted_mean(scores, from_annotations, memory.mask)
            state = self.cell.combine(projected + from_c[:, 0], self.cell.recur(state[0]), state)
            states.append(state[0])
            weights.append(weights_t)
        return torch.stack(states, dim=1), torch.cat(weights, dim=1)

    def encode(self, source_ids):
        """Read the source: integers (B, S) -> Seq2SeqMemory; errors as for the call."""
        source_ids = checked_ids("source_ids", source_ids, self.source_vocab, device=self.out_proj.weight.device)
        real = source_ids != self.config.pad_id
        annotations, last = self.encoder(self.dropout(self.source_embedding(source_ids)), mask=real)
        keys = None if self.score is None else self.score.prepare(annotations)
        state = torch.tanh(self.bridge(last[0])).chunk(self.cell.n_states, dim=-1)
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
            state = self.cell(torch.cat([y, context], dim=-1), state)
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
        return self.out_proj(self.dropout(torch.tanh(self.readout(torch.cat([s, y, context], dim=-1)))))

    def next_logits(self, source_ids, cached: bool = True):
        """The logits of the next target token, for decoding: a `NextLogits` for the sources, integers (B, S)."""
        return NextLogits(self, source_ids, cached)
