"""The reference: every model in NumPy, forward only, float64, written to be read beside the paper."""

from course_lib.numpy.attention import MultiHeadAttention, attention, fused_attention, softmax
from course_lib.numpy.bert import BertForMaskedLM, BertForSequenceClassification, BertModel
from course_lib.numpy.losses import cross_entropy
from course_lib.numpy.positional import LearnedPositions, SinusoidalPositions
from course_lib.numpy.rnn import RNN, GRUCell, LSTMCell, RNNCell, fused, unrolled
from course_lib.numpy.seq2seq import AdditiveScore, DotScore, GeneralScore, NextLogits, Seq2Seq, weighted_mean
from course_lib.numpy.state import get_state, set_state
from course_lib.numpy.transformer import Encoder, EncoderLayer, FeedForward

__all__ = [
    "AdditiveScore",
    "BertForMaskedLM",
    "BertForSequenceClassification",
    "BertModel",
    "DotScore",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "GRUCell",
    "GeneralScore",
    "LSTMCell",
    "LearnedPositions",
    "MultiHeadAttention",
    "NextLogits",
    "RNN",
    "RNNCell",
    "Seq2Seq",
    "SinusoidalPositions",
    "attention",
    "cross_entropy",
    "fused",
    "fused_attention",
    "get_state",
    "set_state",
    "softmax",
    "unrolled",
    "weighted_mean",
]
