"""A BERT small enough to train in a second, the same random weights in PyTorch and TensorFlow."""

from types import SimpleNamespace

import torch

import course_lib.tensorflow
import course_lib.tensorflow.training.classifier
import course_lib.torch
import course_lib.torch.training.classifier
from course_lib.models.bert import BertConfig

CONFIG = BertConfig(
    vocab_size=40,
    d_model=12,
    n_layers=1,
    n_heads=3,
    d_ff=20,
    max_len=16,
    dropout=0.0,
    attention_dropout=0.0,
    init_std=0.3,  # with BERT's 0.02 so small a model has gradients as small as AdamW's epsilon
)
FRAMEWORKS = {"torch": course_lib.torch, "tensorflow": course_lib.tensorflow}


def build(name: str, config: BertConfig = CONFIG):
    """A classifier whose weights are the same in both frameworks, and its framework's training module."""
    torch.manual_seed(7)
    state = course_lib.torch.get_state(course_lib.torch.BertForSequenceClassification(config))
    library = FRAMEWORKS[name]
    model = library.BertForSequenceClassification(config)
    library.set_state(model, state)
    return SimpleNamespace(name=name, model=model, training=library.training.classifier, get_state=library.get_state)
