"""The Transformer as a translator (Vaswani et al. 2017, figure 1): embeddings, encoder, decoder, logits."""

import math

import torch
from torch import nn

from course_lib.checks import check_pairs
from course_lib.models.transformer import (
    TRANSFORMER,
    TransformerConfig,
    TransformerMemory,
    TransformerOutput,
    TransformerState,
)
from course_lib.torch.attention import attention
from course_lib.torch.checkpoint import Checkpoint
from course_lib.torch.decoder import Decoder
from course_lib.torch.decoding import NextLogits
from course_lib.torch.encoder import Encoder
from course_lib.torch.kernels import hiding, to_vocabulary
from course_lib.torch.layers import checked_ids
from course_lib.torch.masks import padding_mask
from course_lib.torch.positions import LearnedPositions, SinusoidalPositions


class Transformer(Checkpoint, nn.Module):
    """Encoder and decoder with their embeddings; the masks are made inside, from `config.pad_id`.

    Fresh embeddings are normal with the standard deviation d_model^-0.5, so that multiplied by sqrt(d_model)
    (section 3.4) they are of the size of the sinusoids; linear layers start from Glorot's uniform distribution.

    Parameters
    ----------
    config : sizes
    attention : the attention function, `attention` or `fused_attention`
    """

    family, architecture = TRANSFORMER, "Transformer"

    def __init__(self, config: TransformerConfig, attention=attention):
        super().__init__()
        self.config = config
        self.source_embedding = nn.Embedding(config.source_vocab, config.d_model)
        self.target_embedding = None if config.share_embeddings else nn.Embedding(config.target_vocab, config.d_model)
        self.source_position, self.target_position = _positions(config), _positions(config)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = Encoder(config.n_layers, config.block, attention)
        self.decoder = Decoder(config.n_layers, config.block, attention)
        self.out_proj = None if config.tie_output else nn.Linear(config.d_model, config.target_vocab)
        self.apply(_initialise)

    def forward(self, source_ids, target_ids, return_layers=False):
        """Predict each target token from the true ones before it (teacher forcing).

        Parameters
        ----------
        source_ids : integers, shape (B, S)
        target_ids : integers, shape (B, T): the start token, then the target without its last token
        return_layers : also return every layer's hidden states and attention weights

        Returns
        -------
        TransformerOutput : logits (B, T, target_vocab), of the token after each; the rest None unless return_layers.

        Raises
        ------
        ValueError : ids outside the vocabulary (on a CPU and outside a compiled graph; elsewhere nobody looks), wrong
            shapes, sequences over max_len.
        TypeError : ids that are not integers.
        """
        device = self.source_embedding.weight.device
        source_ids = checked_ids("source_ids", source_ids, self.config.source_vocab, device=device)
        target_ids = checked_ids("target_ids", target_ids, self.config.target_vocab, device=device)
        check_pairs(source_ids.shape, target_ids.shape)
        memory_mask = padding_mask(source_ids, self.config.pad_id)
        encoded = self.encoder(self.embed_source(source_ids), memory_mask, return_layers)
        x, mask = self.embed_target(target_ids), padding_mask(target_ids, self.config.pad_id)
        decoded = self.decoder(x, encoded.last_hidden, mask, memory_mask, return_layers, causal=True)
        return TransformerOutput(self.predict_from(decoded.last_hidden), *encoded[1:], *decoded[1:])

    def next_logits(self, source_ids, cached: bool = True):
        """The logits of the next target token, for decoding: a `NextLogits` for the sources, integers (B, S)."""
        return NextLogits(self, source_ids, cached)

    def encode(self, source_ids):
        """Read the source: integers (B, S) -> TransformerMemory; errors as for the call."""
        device = self.source_embedding.weight.device
        ids = checked_ids("source_ids", source_ids, self.config.source_vocab, device=device)
        mask = padding_mask(ids, self.config.pad_id)
        return TransformerMemory(self.encoder(self.embed_source(ids), mask).last_hidden, mask)

    def start(self, memory):
        """The state before the first target token, for a TransformerMemory."""
        return TransformerState(memory.mask, memory.mask[..., :0], self.decoder.start(memory.hidden))

    def step(self, ids, state):
        """Read new target tokens, integers (B, n) -> logits (B, target_vocab) of the one after them, the next state."""
        ids = checked_ids("ids", ids, self.config.target_vocab, device=self.source_embedding.weight.device)
        mask = torch.cat([state.mask, padding_mask(ids, self.config.pad_id)], dim=-1)  # (B, 1, 1, t + n)
        x = self.embed_target(ids, mask.shape[-1] - ids.shape[1])
        hidden, caches = self.decoder.step(x, state.caches, hiding(mask), hiding(state.memory_mask), causal=True)
        return self.predict_from(hidden[:, -1]), TransformerState(state.memory_mask, mask, caches)

    def embed_source(self, ids):
        """ids (B, S) -> (B, S, d_model): embeddings times sqrt(d_model), with positions and dropout."""
        return self.dropout(self._placed(self.source_embedding(ids), self.source_position))

    def embed_target(self, ids, first=0):
        """ids (B, T), the tokens from place `first` on -> (B, T, d_model), as `embed_source`."""
        table = self.source_embedding if self.target_embedding is None else self.target_embedding
        return self.dropout(self._placed(table(ids), self.target_position, first))

    def predict_from(self, hidden):
        """Hidden states (B, T, d_model) -> logits (B, T, target_vocab)."""
        if self.out_proj is not None:
            return self.out_proj(hidden)
        table = self.source_embedding if self.target_embedding is None else self.target_embedding
        return to_vocabulary(hidden, table.weight)

    def _placed(self, embedded, position, first=0):
        embedded = embedded * math.sqrt(self.config.d_model)
        return embedded if position is None else position(embedded, first)


def load_translator(name_or_folder="translator-es-en", attention=attention):
    """A trained `Translator`, text in and text out: `load_translator()("Hace frío.")`.

    Its model is that of `Transformer.from_pretrained`, which opens the folder without the tokenizers.

    Parameters
    ----------
    name_or_folder : "translator-es-en", Spanish to English, or a folder that `save_translator` wrote
    attention : the attention function, `attention` or `fused_attention`

    Raises
    ------
    FileNotFoundError : neither a name nor a folder, or a folder that lacks a file.
    CheckpointError : a damaged file, or weights that do not fit the model.
    """
    from course_lib.decoding.translator import open_translator  # here: it needs packages that models do not

    return open_translator(Transformer, name_or_folder, attention)


def _positions(config):
    if config.positions == "sinusoidal":
        return SinusoidalPositions(config.d_model, config.max_len)
    return LearnedPositions(config.d_model, config.max_len) if config.positions == "learned" else None


def _initialise(module):
    if isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(module.bias)
