"""T5 (Raffel et al. 2020, section 2.1): an encoder and a decoder that read every task as text and answer in text."""

import numpy as np

from course_lib.checks import check_pairs
from course_lib.masks import padding_mask
from course_lib.models.t5 import T5_FAMILY, T5Config, T5Memory, T5Output, T5State, check_config
from course_lib.numpy.attention import attention
from course_lib.numpy.checkpoint import Checkpoint
from course_lib.numpy.decoder import Decoder
from course_lib.numpy.decoding import NextLogits
from course_lib.numpy.encoder import Encoder
from course_lib.numpy.layers import Embedding, Linear, Module, checked_ids
from course_lib.numpy.positions import RelativePositions
from course_lib.numpy.state import get_state, set_state


class T5(Checkpoint, Module):
    """Tokens without positions of their own, encoder, decoder, and the token table once more as the output.

    Order is seen by numbers that are added to the scores of self-attention, by the distance of query and key, the same
    in all layers of a stack. Norms scale and shift nothing, they stand before each sub-layer and at the end of a stack;
    scores are not divided by sqrt(d_head), and no layer adds a bias. The output matrix, where it is the token table, is
    divided by sqrt(d_model).

    A source's padding, `config.pad_id`, is hidden; a target's stands at its end, where no real token sees it, and may
    be what a target begins with, as T5's is.

    Parameters
    ----------
    config : sizes
    attention : the attention function, `attention` or `fused_attention`
    """

    family, architecture = T5_FAMILY, "T5ForConditionalGeneration"

    def __init__(self, config: T5Config, attention=attention):
        self.config = check_config(config)
        self.token = Embedding(config.vocab_size, config.d_model)
        sizes = config.n_heads, config.n_buckets, config.max_distance
        self.encoder_position = RelativePositions(*sizes)
        self.decoder_position = RelativePositions(*sizes, bidirectional=False)
        self.encoder = Encoder(config.n_layers, config.block, attention)
        self.decoder = Decoder(config.n_decoder_layers, config.block, attention)
        self.out_proj = None if config.tie_output else Linear(config.d_model, config.vocab_size, bias=False)
        widths = {name: (config.std_of(name), value.shape) for name, value in get_state(self).items()}
        fresh = {name: np.random.normal(0.0, std, shape) for name, (std, shape) in widths.items() if std is not None}
        set_state(self, fresh, partial=True)

    def __call__(self, source_ids, target_ids, return_layers=False):
        """Predict each target token from the true ones before it (teacher forcing).

        Parameters
        ----------
        source_ids : integers, shape (B, S)
        target_ids : integers, shape (B, T): `config.start_id`, then the target without its last token
        return_layers : also return every layer's hidden states and attention weights

        Returns
        -------
        T5Output : logits (B, T, vocab_size), of the token after each; the rest None unless return_layers.

        Raises
        ------
        ValueError : ids outside the vocabulary, wrong shapes.
        TypeError : ids that are not integers.
        """
        source_ids = checked_ids("source_ids", source_ids, self.config.vocab_size)
        target_ids = checked_ids("target_ids", target_ids, self.config.vocab_size)
        check_pairs(source_ids.shape, target_ids.shape)
        mask, x = padding_mask(source_ids, self.config.pad_id), self.embed(source_ids)
        encoded = self.encoder(x, mask, return_layers, self.encoder_position(x))
        x = self.embed(target_ids)
        bias = self.decoder_position(x)
        decoded = self.decoder(x, encoded.last_hidden, None, mask, return_layers, bias, causal=True)
        return T5Output(self.predict_from(decoded.last_hidden), *encoded[1:], *decoded[1:])

    def next_logits(self, source_ids, cached: bool = True):
        """The logits of the next target token, for decoding: a `NextLogits` for the sources, integers (B, S)."""
        return NextLogits(self, source_ids, cached)

    def encode(self, source_ids):
        """Read the source: integers (B, S) -> T5Memory; errors as for the call."""
        ids = checked_ids("source_ids", source_ids, self.config.vocab_size)
        mask, x = padding_mask(ids, self.config.pad_id), self.embed(ids)
        return T5Memory(self.encoder(x, mask, bias=self.encoder_position(x)).last_hidden, mask)

    def start(self, memory):
        """The state before the first target token, for a T5Memory."""
        return T5State(memory.mask, self.decoder.start(memory.hidden))

    def step(self, ids, state):
        """Read new target tokens, integers (B, n) -> logits (B, vocab_size) of the one after them, the next state."""
        x = self.embed(checked_ids("ids", ids, self.config.vocab_size))
        bias = self.decoder_position(x, state.caches[0].keys.shape[2])  # (1, H, n, t + n)
        hidden, caches = self.decoder.step(x, state.caches, None, state.memory_mask, bias, causal=True)
        return self.predict_from(hidden[:, -1]), T5State(state.memory_mask, caches)

    def embed(self, ids):
        """ids (B, T) -> (B, T, d_model)."""
        return self.token(ids)

    def predict_from(self, hidden):
        """Hidden states (B, T, d_model) -> logits (B, T, vocab_size)."""
        if self.out_proj is not None:
            return self.out_proj(hidden)
        return hidden * self.config.d_model**-0.5 @ self.token.weight.T
