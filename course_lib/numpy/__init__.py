"""The reference: every model in NumPy, forward only, float64, written to be read beside the paper."""

from course_lib.numpy.alignment import AdditiveScore, DotScore, GeneralScore, weighted_mean
from course_lib.numpy.attention import MultiHeadAttention, attention, fused_attention, softmax
from course_lib.numpy.decoder import Decoder, DecoderLayer
from course_lib.numpy.decoding import NextAction, NextLogits
from course_lib.numpy.efficient.blockwise import blockwise, blockwise_attention
from course_lib.numpy.efficient.linear import linear_attention, linear_attention_step
from course_lib.numpy.efficient.windowed import windowed
from course_lib.numpy.encoder import Encoder, EncoderLayer, FeedForward
from course_lib.numpy.layers import mean_pool
from course_lib.numpy.losses import cross_entropy
from course_lib.numpy.masks import causal_mask, padding_mask, window_mask
from course_lib.numpy.models.albert import (
    AlbertForMaskedLM,
    AlbertForQuestionAnswering,
    AlbertForSequenceClassification,
    AlbertForTokenClassification,
    AlbertModel,
)
from course_lib.numpy.models.bert import BertModel
from course_lib.numpy.models.bert_heads import (
    BertForMaskedLM,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
)
from course_lib.numpy.models.cnn import CNN
from course_lib.numpy.models.decision import DecisionTransformer
from course_lib.numpy.models.distilbert import (
    DistilBertForMaskedLM,
    DistilBertForQuestionAnswering,
    DistilBertForSequenceClassification,
    DistilBertForTokenClassification,
    DistilBertModel,
)
from course_lib.numpy.models.gpt import GPT
from course_lib.numpy.models.roberta import (
    RobertaForMaskedLM,
    RobertaForQuestionAnswering,
    RobertaForSequenceClassification,
    RobertaForTokenClassification,
    RobertaModel,
)
from course_lib.numpy.models.seq2seq import Seq2Seq
from course_lib.numpy.models.t5 import T5
from course_lib.numpy.models.transformer import Transformer, load_translator
from course_lib.numpy.models.vit import ViT, image_to_patches
from course_lib.numpy.models.whisper import Whisper
from course_lib.numpy.positions import (
    LearnedPositions,
    RelativePositions,
    SinusoidalPositions,
    TimeModulation,
    rotary,
    rotate,
)
from course_lib.numpy.rnn import RNN, GRUCell, LSTMCell, RNNCell, run_fused, run_unrolled
from course_lib.numpy.state import get_state, set_state

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
