"""T5 (Raffel et al. 2020, section 2.1): an encoder and a decoder that read every task as text and answer in text."""

from torch import nn

from course_lib.checks import check_pairs
from course_lib.models.t5 import T5_FAMILY, T5Config, T5Memory, T5Output, T5State, check_config
from course_lib.torch.attention import attention
from course_lib.torch.checkpoint import Checkpoint
from course_lib.torch.decoder import Decoder
from course_lib.torch.decoding import NextLogits
from course_lib.torch.encoder import Encoder
from course_lib.torch.kernels import hiding, to_vocabulary
from course_lib.torch.layers import checked_ids
from course_lib.torch.masks import padding_mask
from course_lib.torch.positions import RelativePositions


class T5(Checkpoint, nn.Module):
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
        super().__init__()
        self.config = check_config(config)
        self.token = nn.Embedding(config.vocab_size, config.d_model)
        sizes = config.n_heads, config.n_buckets, config.max_distance
        self.encoder_position = RelativePositions(*sizes)
        self.decoder_position = RelativePositions(*sizes, bidirectional=False)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = Encoder(config.n_layers, config.block, attention)
        self.decoder = Decoder(config.n_decoder_layers, config.block, attention)
        self.out_proj = None if config.tie_output else nn.Linear(config.d_model, config.vocab_size, bias=False)
        for name, weight in self.named_parameters():
            if (std := config.std_of(name)) is not None:
                nn.init.normal_(weight, std=std)

    def forward(self, source_ids, target_ids, return_layers=False):
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
        ValueError : ids outside the vocabulary (on a CPU and outside a compiled graph; elsewhere nobody looks), wrong
            shapes.
        TypeError : ids that are not integers.
        """
        source_ids, target_ids = self._checked("source_ids", source_ids), self._checked("target_ids", target_ids)
        check_pairs(source_ids.shape, target_ids.shape)
        mask, x = padding_mask(source_ids, self.config.pad_id), self.embed(source_ids)
        encoded = self.encoder(x, mask, return_layers, self.encoder_position(x))
        x = self.embed(target_ids)
        bias, memory = self.decoder_position(x), self.dropout(encoded.last_hidden)
        decoded = self.decoder(x, memory, None, mask, return_layers, bias, causal=True)
        return T5Output(self.predict_from(decoded.last_hidden), *encoded[1:], *decoded[1:])

    def next_logits(self, source_ids, cached: bool = True):
        """The logits of the next target token, for decoding: a `NextLogits` for the sources, integers (B, S)."""
        return NextLogits(self, source_ids, cached)

    def encode(self, source_ids):
        """Read the source: integers (B, S) -> T5Memory; errors as for the call."""
        ids = self._checked("source_ids", source_ids)
        mask, x = padding_mask(ids, self.config.pad_id), self.embed(ids)
        return T5Memory(self.dropout(self.encoder(x, hiding(mask), bias=self.encoder_position(x)).last_hidden), mask)

    def start(self, memory):
        """The state before the first target token, for a T5Memory."""
        return T5State(memory.mask, self.decoder.start(memory.hidden))

    def step(self, ids, state):
        """Read new target tokens, integers (B, n) -> logits (B, vocab_size) of the one after them, the next state."""
        x = self.embed(self._checked("ids", ids))
        bias = self.decoder_position(x, state.caches[0].keys.shape[2])  # (1, H, n, t + n)
        hidden, caches = self.decoder.step(x, state.caches, None, hiding(state.memory_mask), bias, causal=True)
        return self.predict_from(hidden[:, -1]), T5State(state.memory_mask, caches)

    def embed(self, ids):
        """ids (B, T) -> (B, T, d_model), with dropout."""
        return self.dropout(self.token(ids))

    def predict_from(self, hidden):
        """Hidden states (B, T, d_model) -> logits (B, T, vocab_size), with dropout before."""
        hidden = self.dropout(hidden)
        if self.out_proj is not None:
            return self.out_proj(hidden)
        return to_vocabulary(hidden * self.config.d_model**-0.5, self.token.weight)

    def _checked(self, name, ids):
        return checked_ids(name, ids, self.config.vocab_size, device=self.token.weight.device)
