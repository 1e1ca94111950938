"""GPT-2 (Radford et al. 2019, section 2.3): a decoder alone, which says after each token what comes next."""

import torch
from torch import nn

from course_lib.checks import check_length
from course_lib.models.gpt import GPT2, GPTConfig, GPTOutput, GPTState, check_config
from course_lib.torch.attention import attention
from course_lib.torch.checkpoint import Checkpoint
from course_lib.torch.decoder import Decoder
from course_lib.torch.decoding import NextLogits
from course_lib.torch.kernels import to_vocabulary
from course_lib.torch.layers import checked_ids
from course_lib.torch.models.bert import initialise
from course_lib.torch.positions import LearnedPositions


class GPT(Checkpoint, nn.Module):
    """Tokens with learned positions, causal layers that normalise first, and the token table once more as the output.

    Padding, `config.pad_id`, is hidden: real tokens do not attend to it, and their positions are counted without it,
    so that it may stand on the left or on the right. Fresh matrices are normal; those before a residual are divided by
    the square root of the number of residuals (section 2.3).

    Parameters
    ----------
    config : sizes
    attention : the attention function, `attention` or `fused_attention`
    """

    family, architecture = GPT2, "GPT2LMHeadModel"

    def __init__(self, config: GPTConfig, attention=attention):
        super().__init__()
        self.config = check_config(config)
        self.token = nn.Embedding(config.vocab_size, config.d_model)
        self.position = LearnedPositions(config.d_model, config.max_len, config.init_std)
        self.dropout = nn.Dropout(config.embedding_dropout)
        self.decoder = Decoder(config.n_layers, config.block, attention, cross_attention=False)
        initialise(self, config.init_std)
        for layer in self.decoder.layers:
            for linear in (layer.self_attention.out_proj, layer.feed_forward.linear2):
                nn.init.normal_(linear.weight, std=config.init_std * config.residual_scale)

    def forward(self, ids, return_layers=False):
        """Predict each token from those before it.

        Parameters
        ----------
        ids : integers, shape (B, T)
        return_layers : also return every layer's hidden states and attention weights

        Returns
        -------
        GPTOutput : logits (B, T, vocab_size), of the token after each; hidden and weights, None unless return_layers.

        Raises
        ------
        ValueError : ids outside the vocabulary (on a CPU and outside a compiled graph; elsewhere nobody looks), wrong
            shapes, sequences over max_len.
        TypeError : ids that are not integers.
        """
        ids = checked_ids("ids", ids, self.config.vocab_size, device=self.token.weight.device)
        real = self.real_tokens(ids)
        decoded = self.decoder(self.embed(ids, real), None, _mask(real), None, return_layers, causal=True)
        return GPTOutput(self.predict_from(decoded.last_hidden), decoded.hidden, decoded.self_weights)

    def next_logits(self, n_rows: int = 1, cached: bool = True):
        """The logits of the next token, for decoding: a `NextLogits` for so many sequences, prompts included."""
        return NextLogits(self, n_rows, cached)

    def encode(self, n_rows: int = 1):
        """The GPTState of `n_rows` sequences of which no token was read; a decoder alone has no other source."""
        real = None
        if self.config.pad_id is not None:
            real = torch.zeros((n_rows, 0), dtype=torch.bool, device=self.token.weight.device)
        return GPTState(self.decoder.start(n_rows=n_rows), real)

    def start(self, memory):
        """The state before the first token: what `encode` returned."""
        return memory

    def step(self, ids, state):
        """Read new tokens, integers (B, n) -> logits (B, vocab_size) of the one after them, the next state."""
        ids = checked_ids("ids", ids, self.config.vocab_size, device=self.token.weight.device)
        real = self.real_tokens(ids)  # (B, n)
        if real is not None:
            real = torch.cat([state.real, real], dim=1)  # (B, t + n)
        x = self.embed(ids, real, state.caches[0].keys.shape[2])
        hidden, caches = self.decoder.step(x, state.caches, _mask(real), causal=True)
        return self.predict_from(hidden[:, -1]), GPTState(caches, real)

    def real_tokens(self, ids):
        """ids (B, T) -> boolean (B, T), True at what is no padding; None without a padding id."""
        return None if self.config.pad_id is None else ids != self.config.pad_id

    def embed(self, ids, real=None, first=0):
        """Tokens with their positions, and dropout.

        Parameters
        ----------
        ids : integers, shape (B, n), the tokens from place `first` on
        real : boolean, shape (B, first + n), True at what is no padding; None: all of it
        first : how many tokens stand before these

        Returns
        -------
        Shape (B, n, d_model).

        Raises
        ------
        ValueError : more tokens than max_len.
        """
        if real is None:
            return self.dropout(self.position(self.token(ids), first))
        check_length(first + ids.shape[1], self.config.max_len)
        places = (real.cumsum(1) - 1).clamp(min=0)[:, first:]  # (B, n): 0 for the first real token
        return self.dropout(self.token(ids) + self.position.weight[places])

    def predict_from(self, hidden):
        """Hidden states (B, T, d_model) -> logits (B, T, vocab_size)."""
        return to_vocabulary(hidden, self.token.weight)


def _mask(real):
    """Which keys no query may attend to: boolean (B, S) -> (B, 1, 1, S)."""
    return None if real is None else real[:, None, None, :]
