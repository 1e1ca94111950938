"""What the tests of Keras's ways share: each random case as a model with its inputs and outputs, and two measures."""

import keras
import numpy as np
import tensorflow as tf

from tests.support.backends import TENSORFLOW

CLASSES = {"encoder": "Encoder", "transformer": "Transformer", "bert": "BertForSequenceClassification"}
CLASSES |= {"roberta": "RobertaForSequenceClassification", "distilbert": "DistilBertForSequenceClassification"}
CLASSES |= {"albert": "AlbertForSequenceClassification", "gpt": "GPT", "t5": "T5", "decision": "DecisionTransformer"}
CLASSES["whisper"] = "Whisper"

# Half of the distance between 1 and the next number: the relative error of one rounding. That of float64 is here that
# of the float32 it is compared with.
ROUNDING = {"mixed_float16": 2.0**-11, "mixed_bfloat16": 2.0**-8, "float64": 2.0**-24}


def build(case, **options):
    """The layer or model of a random case, seeded."""
    keras.utils.set_random_seed(case.number)
    return TENSORFLOW.make(CLASSES[case.kind], **case.arguments, **options)


_prepared = {}


def prepared(case):
    """The model of a random case, its inputs as tensors, and its outputs with all layers' states; made once."""
    if repr(case) not in _prepared:
        model = build(case)
        inputs = {name: TENSORFLOW.tensor(value) for name, value in case.inputs.items()}
        _prepared[repr(case)] = model, inputs, model(**inputs, return_layers=True)
    return _prepared[repr(case)]


def error(outputs, expected) -> float:
    """The largest difference of two structures of tensors, relative to the largest number where that is over 1."""
    tf.nest.assert_same_structure(outputs, expected)
    worst = 0.0
    for a, b in zip(tf.nest.flatten(outputs), tf.nest.flatten(expected), strict=True):
        if b is None:
            assert a is None
            continue
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        assert a.shape == b.shape and np.isfinite(a).all()
        worst = max(worst, float(np.abs(a - b).max(initial=0.0) / max(1.0, np.abs(b).max(initial=0.0))))
    return worst
