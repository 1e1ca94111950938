"""Every model in PyTorch, as `nn.Module`s that train.

The course's Jupyter kernels set the environment variable COURSE_DEVICE; new tensors and models then land on
that device, and no lecture names one.
"""

import os

from course_lib._extras import needed as _needed

with _needed("torch"):
    import torch as _torch

from course_lib.torch import _export  # noqa: F401 - gives the outputs their names in an exported program
from course_lib.torch.alignment import AdditiveScore, DotScore, GeneralScore, weighted_mean
from course_lib.torch.attention import MultiHeadAttention, attention, fused_attention, softmax
from course_lib.torch.decoder import Decoder, DecoderLayer
from course_lib.torch.decoding import NextAction, NextLogits
from course_lib.torch.efficient.blockwise import blockwise, blockwise_attention
from course_lib.torch.efficient.linear import linear_attention, linear_attention_step
from course_lib.torch.efficient.windowed import windowed
from course_lib.torch.encoder import Encoder, EncoderLayer, FeedForward
from course_lib.torch.layers import mean_pool
from course_lib.torch.losses import cross_entropy
from course_lib.torch.masks import causal_mask, padding_mask, window_mask
from course_lib.torch.models.albert import (
    AlbertForMaskedLM,
    AlbertForQuestionAnswering,
    AlbertForSequenceClassification,
    AlbertForTokenClassification,
    AlbertModel,
)
from course_lib.torch.models.bert import BertModel
from course_lib.torch.models.bert_heads import (
    BertForMaskedLM,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
)
from course_lib.torch.models.cnn import CNN
from course_lib.torch.models.decision import DecisionTransformer
from course_lib.torch.models.distilbert import (
    DistilBertForMaskedLM,
    DistilBertForQuestionAnswering,
    DistilBertForSequenceClassification,
    DistilBertForTokenClassification,
    DistilBertModel,
)
from course_lib.torch.models.gpt import GPT
from course_lib.torch.models.roberta import (
    RobertaForMaskedLM,
    RobertaForQuestionAnswering,
    RobertaForSequenceClassification,
    RobertaForTokenClassification,
    RobertaModel,
)
from course_lib.torch.models.seq2seq import Seq2Seq
from course_lib.torch.models.t5 import T5
from course_lib.torch.models.transformer import Transformer, load_translator
from course_lib.torch.models.vit import ViT, image_to_patches
from course_lib.torch.models.whisper import Whisper
from course_lib.torch.positions import (
    LearnedPositions,
    RelativePositions,
    SinusoidalPositions,
    TimeModulation,
    rotary,
    rotate,
)
from course_lib.torch.rnn import RNN, GRUCell, LSTMCell, RNNCell, run_fused, run_unrolled
from course_lib.torch.state import get_state, set_state

if os.environ.get("COURSE_DEVICE"):
    _torch.set_default_device(os.environ["COURSE_DEVICE"])

fused, unrolled = run_fused, run_unrolled  # their names of before

__all__ = [
    "AdditiveScore",
    "AlbertForMaskedLM",
    "AlbertForQuestionAnswering",
    "AlbertForSequenceClassification",
    "AlbertForTokenClassification",
    "AlbertModel",
    "BertForMaskedLM",
    "BertForPreTraining",
    "BertForQuestionAnswering",
    "BertForSequenceClassification",
    "BertForTokenClassification",
    "BertModel",
    "CNN",
    "DecisionTransformer",
    "Decoder",
    "DecoderLayer",
    "DistilBertForMaskedLM",
    "DistilBertForQuestionAnswering",
    "DistilBertForSequenceClassification",
    "DistilBertForTokenClassification",
    "DistilBertModel",
    "DotScore",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "GPT",
    "GRUCell",
    "GeneralScore",
    "LSTMCell",
    "LearnedPositions",
    "MultiHeadAttention",
    "NextAction",
    "NextLogits",
    "RNN",
    "RNNCell",
    "RelativePositions",
    "RobertaForMaskedLM",
    "RobertaForQuestionAnswering",
    "RobertaForSequenceClassification",
    "RobertaForTokenClassification",
    "RobertaModel",
    "Seq2Seq",
    "SinusoidalPositions",
    "T5",
    "TimeModulation",
    "Transformer",
    "ViT",
    "Whisper",
    "attention",
    "blockwise",
    "blockwise_attention",
    "causal_mask",
    "cross_entropy",
    "fused",
    "fused_attention",
    "get_state",
    "image_to_patches",
    "linear_attention",
    "linear_attention_step",
    "load_translator",
    "mean_pool",
    "padding_mask",
    "rotary",
    "rotate",
    "run_fused",
    "run_unrolled",
    "set_state",
    "softmax",
    "unrolled",
    "weighted_mean",
    "window_mask",
    "windowed",
]
