"""BERT (Devlin et al. 2018): embeddings and the encoder with its pooler; its heads stand in `bert_heads.py`."""

import torch
from torch import nn

from course_lib.checks import check_mask_of_ids, check_segments
from course_lib.models.bert import BERT, BertConfig, BertOutput
from course_lib.models.config_json import check_config
from course_lib.torch.attention import attention
from course_lib.torch.checkpoint import Checkpoint
from course_lib.torch.encoder import Encoder
from course_lib.torch.layers import checked_ids
from course_lib.torch.positions import LearnedPositions


class BertEmbeddings(nn.Module):
    """Token + segment + learned position, then a layer normalisation (section 3, figure 2)."""

    def __init__(self, config: BertConfig):
        super().__init__()
        self.config = config
        self.token = nn.Embedding(config.vocab_size, config.d_embedding)
        self.segment = None
        if config.segment_table:
            self.segment = nn.Embedding(config.n_segments, config.d_embedding)
        self.position = LearnedPositions(config.d_embedding, config.max_len, config.init_std)
        self.norm = nn.LayerNorm(config.d_embedding, config.norm_eps)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, ids, segments=None):
        """ids and segments (B, T) -> (B, T, d_embedding)."""
        ids = checked_ids("ids", ids, self.config.vocab_size, device=self.token.weight.device)
        if segments is None:
            segments = torch.zeros_like(ids)
        else:
            segments = checked_ids("segments", segments, self.config.n_segments, device=ids.device)
        check_segments(segments.shape, ids.shape)
        x = self.token(ids)
        if self.segment is not None:
            x = x + self.segment(segments)
        return self.dropout(self.norm(self.add_positions(x, ids)))

    def add_positions(self, x, ids):
        """x (B, T, d_embedding) of the tokens ids (B, T) -> x + their positions' vectors; ValueError beyond max_len."""
        return self.position(x)


class BertModel(Checkpoint, nn.Module):
    """The encoder with its pooler.

    Parameters
    ----------
    config : sizes
    attention : the attention function, `attention` or `fused_attention`
    pooler : whether to build the pooler, tanh of a linear layer on the first token
    """

    family = BERT
    architecture = "BertModel"
    Embeddings, Encoder = BertEmbeddings, Encoder  # other members of the family have others

    def __init__(self, config: BertConfig, attention=attention, pooler: bool = True):
        super().__init__()
        self.config = check_config(config, self.family)
        self.embeddings = self.Embeddings(config)
        self.encoder = self.Encoder(**config.for_encoder, attention=attention)
        self.pooler = nn.Linear(config.d_model, config.d_model) if pooler else None
        initialise(self, config.init_std)

    def forward(self, ids, mask=None, segments=None, return_layers=False):
        """Encode a batch.

        Parameters
        ----------
        ids : integers, shape (B, T)
        mask : boolean, broadcastable to (B, H, T, T), True = may attend; see `masks.padding_mask`
        segments : 0 for the first sentence and 1 for the second, shape (B, T); all 0 when None
        return_layers : also return every layer's hidden states and attention weights

        Returns
        -------
        BertOutput : last_hidden (B, T, d_model), pooled (B, d_model), hidden, weights.

        Raises
        ------
        ValueError : ids outside the vocabulary (on a CPU and outside a compiled graph; elsewhere nobody looks), a
            sequence over max_len or without a token, wrong shapes.
        TypeError : ids that are not integers, a mask that is not boolean.
        """
        x = self.embeddings(ids, segments=segments)
        check_mask_of_ids(mask, x.shape[:2])
        last_hidden, hidden, weights = self.encoder(x, mask=mask, return_layers=return_layers)
        pooled = None if self.pooler is None else torch.tanh(self.pooler(last_hidden[:, 0]))
        return BertOutput(last_hidden, pooled, hidden, weights)


def initialise(module, std: float):
    """Draw the matrices of a module and of its parts afresh: BERT starts from a narrow normal distribution."""
    for part in module.modules():
        if isinstance(part, (nn.Linear, nn.Embedding)):
            nn.init.normal_(part.weight, std=std)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)
