"""Whisper (Radford et al. 2023, section 2.2): an encoder of sound and a decoder that writes down what was said."""

import torch
from torch import nn
from torch.nn import functional as F

from course_lib.checks import check_pairs
from course_lib.models.whisper import (
    KERNEL,
    WHISPER,
    WhisperConfig,
    WhisperMemory,
    WhisperOutput,
    WhisperState,
    check_config,
    check_sounds,
)
from course_lib.torch.attention import attention
from course_lib.torch.checkpoint import Checkpoint
from course_lib.torch.decoder import Decoder
from course_lib.torch.decoding import NextLogits
from course_lib.torch.encoder import Encoder
from course_lib.torch.kernels import to_vocabulary
from course_lib.torch.layers import checked_ids, tensor_of
from course_lib.torch.models.bert import initialise
from course_lib.torch.positions import LearnedPositions, SinusoidalPositions


class SoundConvolution(nn.Module):
    """A sum over a window of 3 frames and all features, at every frame or at every second; beyond the ends are zeros.

    Fresh weights are normal with the standard deviation `std`.
    """

    def __init__(self, d_in: int, d_out: int, stride: int = 1, std: float = 0.02):
        super().__init__()
        self.stride = stride
        self.weight = nn.Parameter(std * torch.randn(d_out, d_in, KERNEL))
        self.bias = nn.Parameter(torch.zeros(d_out))

    def forward(self, x):
        """(B, F, d_in) -> (B, ceil(F / stride), d_out)."""
        return F.conv1d(x.transpose(1, 2), self.weight, self.bias, self.stride, padding=1).transpose(1, 2)


class Whisper(Checkpoint, nn.Module):
    """Two convolutions, an encoder that reads the whole sound, a decoder that attends to it, the token table as output.

    The second convolution halves the number of frames. The encoder adds sinusoids of the place, the decoder learned
    positions; both normalise before each sub-layer and at their end; keys have no bias. The output matrix is the token
    table.

    No part of a sound is hidden: whoever puts sounds of several lengths into a batch fills up with silence, which is
    read too. A target's padding stands at its end, where no real token sees it.

    Parameters
    ----------
    config : sizes
    attention : the attention function, `attention` or `fused_attention`
    """

    family, architecture = WHISPER, "WhisperForConditionalGeneration"

    def __init__(self, config: WhisperConfig, attention=attention):
        super().__init__()
        self.config = check_config(config)
        self.conv1 = SoundConvolution(config.n_mels, config.d_model, 1, config.init_std)
        self.conv2 = SoundConvolution(config.d_model, config.d_model, 2, config.init_std)
        self.sound_position = SinusoidalPositions(config.d_model, config.max_source_len, halves=True)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = Encoder(config.n_layers, config.block, attention)
        self.token = nn.Embedding(config.vocab_size, config.d_model)
        self.position = LearnedPositions(config.d_model, config.max_len, config.init_std)
        self.decoder = Decoder(config.n_decoder_layers, config.decoder_block, attention)
        initialise(self, config.init_std)

    def forward(self, features, target_ids, return_layers=False):
        """Predict each target token from the sound and the true tokens before it (teacher forcing).

        Parameters
        ----------
        features : log-mel spectrograms, shape (B, n_mels, F), as `course_lib.audio.log_mel` makes them
        target_ids : integers, shape (B, T): `config.start_id`, then the target without its last token
        return_layers : also return every layer's hidden states and attention weights

        Returns
        -------
        WhisperOutput : logits (B, T, vocab_size), of the token after each; the rest None unless return_layers.

        Raises
        ------
        ValueError : ids outside the vocabulary (on a CPU and outside a compiled graph; elsewhere nobody looks), wrong
            shapes, sounds over max_frames, targets over max_len.
        TypeError : ids that are not integers, features that are not floating point.
        """
        features = self._checked(features)
        target_ids = checked_ids("target_ids", target_ids, self.config.vocab_size, device=self.token.weight.device)
        check_pairs(features.shape, target_ids.shape)
        encoded = self.encoder(self.embed_source(features), return_layers=return_layers)
        x = self.embed_target(target_ids)
        decoded = self.decoder(x, encoded.last_hidden, return_layers=return_layers, causal=True)
        return WhisperOutput(self.predict_from(decoded.last_hidden), *encoded[1:], *decoded[1:])

    def next_logits(self, features, cached: bool = True):
        """The logits of the next target token, for decoding: a `NextLogits` for the sounds (B, n_mels, F)."""
        return NextLogits(self, features, cached)

    def encode(self, features):
        """Read the sound: (B, n_mels, F) -> WhisperMemory; errors as for the call."""
        return WhisperMemory(self.encoder(self.embed_source(self._checked(features))).last_hidden)

    def start(self, memory):
        """The state before the first target token, for a WhisperMemory."""
        return WhisperState(self.decoder.start(memory.hidden))

    def step(self, ids, state):
        """Read new target tokens, integers (B, n) -> logits (B, vocab_size) of the one after them, the next state."""
        ids = checked_ids("ids", ids, self.config.vocab_size, device=self.token.weight.device)
        x = self.embed_target(ids, state.caches[0].keys.shape[2])
        hidden, caches = self.decoder.step(x, state.caches, causal=True)
        return self.predict_from(hidden[:, -1]), WhisperState(caches)

    def embed_source(self, features):
        """The input of the encoder: (B, n_mels, F) -> (B, ceil(F / 2), d_model), with dropout."""
        x = F.gelu(self.conv1(features.transpose(1, 2)))
        x = self.conv2(x).contiguous()  # frame after frame in memory: the layers read it faster
        return self.dropout(self.sound_position(F.gelu(x)))

    def embed_target(self, ids, first=0):
        """Tokens with their positions, from place `first` on: ids (B, T) -> (B, T, d_model), with dropout."""
        return self.dropout(self.position(self.token(ids), first))

    def predict_from(self, hidden):
        """Hidden states (B, T, d_model) -> logits (B, T, vocab_size)."""
        return to_vocabulary(hidden, self.token.weight)

    def _checked(self, features):
        features = tensor_of(features)
        check_sounds(self.config, features.shape, features.dtype)
        return features.to(self.conv1.weight)
