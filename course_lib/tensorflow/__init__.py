"""Every model in TensorFlow, as Keras 3 layers and models that train.

Each takes Keras's own `name`, `dtype` and `trainable` besides its arguments, and is saved, cloned and called on a
`keras.Input` as any other; the models have `compile`, `fit`, `evaluate`, `predict` and `export`.

What Keras marks as padding, by `Embedding(mask_zero=True)` or `Masking`, is hidden, and marked for the next layer too.
Arithmetic loses the mark: `x * 2.0` has none, `keras.layers.Rescaling(2.0)(x)` has.

Five limits are Keras's own:

- `tf.train.Checkpoint` leaves out layers that stand in lists, as those of an encoder do: save a `.keras` file, a
  `.weights.h5` file or a SavedModel.
- A `Sequential` takes layers with one output: an `EncoderLayer` returns its weights too, so put it into a layer of
  your own whose `call` returns the first output.
- `TimeDistributed` hands its mask (B, T) to the `call` of the layer in it, where ours is (..., T, S): in that layer of
  your own, give ours `mask[:, None, None, :]`. As it comes, it would be read as (T, S) where B is T.
- A quantized model is not opened from a `.keras` file: `save_weights`, and `load_weights` into a fresh model that is
  quantized in the same way.
- Within the scope of a `tf.distribute` strategy, which trains in threads of its own, `attention_dropout` must be 0.
"""

from course_lib.tensorflow import _quiet  # noqa: F401 - first: it imports TensorFlow without the banner
from course_lib.tensorflow.alignment import AdditiveScore, DotScore, GeneralScore, weighted_mean
from course_lib.tensorflow.attention import MultiHeadAttention, attention, fused_attention, softmax
from course_lib.tensorflow.decoder import Decoder, DecoderLayer
from course_lib.tensorflow.decoding import NextAction, NextLogits
from course_lib.tensorflow.efficient.blockwise import blockwise, blockwise_attention
from course_lib.tensorflow.efficient.linear import linear_attention, linear_attention_step
from course_lib.tensorflow.efficient.windowed import windowed
from course_lib.tensorflow.encoder import Encoder, EncoderLayer, FeedForward
from course_lib.tensorflow.layers import mean_pool
from course_lib.tensorflow.losses import cross_entropy
from course_lib.tensorflow.masks import causal_mask, padding_mask, window_mask
from course_lib.tensorflow.models.albert import (
    AlbertForMaskedLM,
    AlbertForQuestionAnswering,
    AlbertForSequenceClassification,
    AlbertForTokenClassification,
    AlbertModel,
)
from course_lib.tensorflow.models.bert import BertModel
from course_lib.tensorflow.models.bert_heads import (
    BertForMaskedLM,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
)
from course_lib.tensorflow.models.cnn import CNN
from course_lib.tensorflow.models.decision import DecisionTransformer
from course_lib.tensorflow.models.distilbert import (
    DistilBertForMaskedLM,
    DistilBertForQuestionAnswering,
    DistilBertForSequenceClassification,
    DistilBertForTokenClassification,
    DistilBertModel,
)
from course_lib.tensorflow.models.gpt import GPT
from course_lib.tensorflow.models.roberta import (
    RobertaForMaskedLM,
    RobertaForQuestionAnswering,
    RobertaForSequenceClassification,
    RobertaForTokenClassification,
    RobertaModel,
)
from course_lib.tensorflow.models.seq2seq import Seq2Seq
from course_lib.tensorflow.models.t5 import T5
from course_lib.tensorflow.models.transformer import Transformer, load_translator
from course_lib.tensorflow.models.vit import ViT, image_to_patches
from course_lib.tensorflow.models.whisper import Whisper
from course_lib.tensorflow.positions import (
    LearnedPositions,
    RelativePositions,
    SinusoidalPositions,
    TimeModulation,
    rotary,
    rotate,
)
from course_lib.tensorflow.rnn import RNN, GRUCell, LSTMCell, RNNCell, run_fused, run_unrolled
from course_lib.tensorflow.state import get_state, set_state

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
