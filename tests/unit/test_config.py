"""course_lib.models.bert: BertConfig and the border to config.json."""

import dataclasses
import json

import numpy as np
import pytest

from course_lib.errors import UnsupportedConfigError
from course_lib.models.albert import AlbertConfig
from course_lib.models.bert import BertConfig
from course_lib.models.distilbert import DistilBertConfig
from course_lib.models.roberta import RobertaConfig
from course_lib.models.transformer import TransformerConfig

SETTINGS = {
    "model_type": "bert", "vocab_size": 50, "hidden_size": 12, "num_hidden_layers": 3, "num_attention_heads": 4,
    "intermediate_size": 30, "max_position_embeddings": 20, "type_vocab_size": 5, "hidden_dropout_prob": 0.25,
    "attention_probs_dropout_prob": 0.35, "layer_norm_eps": 1e-7, "hidden_act": "relu", "pad_token_id": 2,
    "initializer_range": 0.5, "id2label": {"0": "bad", "1": "so so", "2": "good"},
    "classifier_dropout": 0.45, "problem_type": "single_label_classification",
}  # fmt: skip


def test_every_setting_is_read():
    assert BertConfig.from_hugging_face(SETTINGS) == BertConfig(
        vocab_size=50, d_model=12, n_layers=3, n_heads=4, d_ff=30, max_len=20, n_segments=5, dropout=0.25,
        attention_dropout=0.35, norm_eps=1e-7, activation="relu", pad_id=2, init_std=0.5, n_classes=3,
        labels=("bad", "so so", "good"), classifier_dropout=0.45, problem_type="single_label_classification",
    )  # fmt: skip


def test_bert_base_by_default():
    config = BertConfig.from_hugging_face({"model_type": "bert"})
    assert config == BertConfig()
    assert (config.d_model, config.n_layers, config.n_heads, config.d_ff) == (768, 12, 12, 3072)
    assert config.norm_eps == pytest.approx(1e-12) and config.activation == "gelu" and config.n_classes == 2


def test_there_and_back():
    config = BertConfig.from_hugging_face(SETTINGS)
    settings = config.to_hugging_face("BertForSequenceClassification")
    assert BertConfig.from_hugging_face(settings) == config
    assert settings["architectures"] == ["BertForSequenceClassification"]
    assert settings["label2id"] == {"bad": 0, "so so": 1, "good": 2}
    assert {key: settings[key] for key in SETTINGS} == SETTINGS


def test_classes_without_names_get_those_of_transformers():
    settings = BertConfig(n_classes=3).to_hugging_face("BertForSequenceClassification")
    assert settings["label2id"] == {"LABEL_0": 0, "LABEL_1": 1, "LABEL_2": 2}
    assert not {"classifier_dropout", "problem_type"} & set(settings), "what is not set is not written"
    assert BertConfig.from_hugging_face(settings).labels is None


@pytest.mark.parametrize("id2label", [{"1": "a", "2": "b"}, {"1": "b", "0": "a"}])
def test_labels_stand_in_the_order_of_their_ids(id2label):
    config = BertConfig.from_hugging_face({"model_type": "bert", "id2label": id2label})
    assert config.n_classes == 2 and config.labels == (("a", "b") if "0" in id2label else None)


def test_a_list_of_labels_will_do():
    config = BertConfig(n_classes=2, labels=["no", "yes"])
    assert config == BertConfig(n_classes=2, labels=("no", "yes")) and hash(config)


def test_the_number_of_classes_has_two_spellings():
    assert BertConfig.from_hugging_face({"model_type": "bert", "num_labels": 7}).n_classes == 7
    assert BertConfig.from_hugging_face({"model_type": "bert", "id2label": {"0": "a"}}).n_classes == 1


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        BertConfig().d_model = 3


@pytest.mark.parametrize(
    "name", ["vocab_size", "d_model", "n_layers", "n_heads", "d_ff", "max_len", "n_segments", "n_classes"]
)
@pytest.mark.parametrize("value", [0, -3, 2.0, True, "12", None])
def test_sizes_are_integers_of_one_or_more(name, value):
    with pytest.raises(ValueError, match=f"{name} must be an integer of 1 or more, got {value!r}"):
        BertConfig(**{name: value})


@pytest.mark.parametrize("changes, message", [
    ({"n_heads": 5}, "d_model=768, n_heads=5"),
    ({"dropout": 1.0}, "dropout is a probability"),
    ({"attention_dropout": -0.1}, "dropout is a probability"),
    ({"activation": "swish"}, "activation must be one of 'gelu', 'relu'"),
    ({"pad_id": 30522}, "pad_id must be an id of the vocabulary, 0 ... 30521 for vocab_size=30522; got 30522"),
    ({"n_classes": 3, "labels": ("no", "yes")}, "there are 2 labels for n_classes=3"),
    ({"labels": "no"}, "labels must be the names of the classes"),
    ({"problem_type": "ranking"}, "problem_type must be one of"),
])  # fmt: skip
def test_values_that_make_no_model(changes, message):
    with pytest.raises(ValueError, match=message):
        BertConfig(**changes)


@pytest.mark.parametrize("changes, message", [
    ({"model_type": "roberta"}, "model_type='roberta'; the course's BERT computes 'bert' only"),
    ({"position_embedding_type": "relative_key_query"}, "position_embedding_type"),
    ({"is_decoder": True}, "is_decoder=True"),
    ({"add_cross_attention": True}, "add_cross_attention=True"),
    ({"tie_word_embeddings": False}, "tie_word_embeddings=False"),
    ({"classifier_dropout": 1.5}, "cannot be used: classifier_dropout is a probability"),
    ({"pruned_heads": {"0": [1]}}, "pruned_heads"),
    ({"pad_token_id": 50}, "cannot be used: pad_id .*vocab_size=50"),
    ({"layer_norm_eps": 0}, "cannot be used: norm_eps"),
    ({"id2label": ["a", "b"]}, "cannot be used"),
    ({"hidden_act": "gelu_fast"}, "cannot be used: activation.*'gelu_fast'"),
    ({"num_attention_heads": 5}, "cannot be used: .*n_heads=5"),
    ({"hidden_size": "12"}, "cannot be used: d_model"),
    ({"hidden_dropout_prob": "much"}, "cannot be used"),
])  # fmt: skip
def test_settings_that_our_bert_does_not_compute(changes, message):
    with pytest.raises(UnsupportedConfigError, match=message):
        BertConfig.from_hugging_face(SETTINGS | changes)


def test_a_config_without_a_model_type():
    with pytest.raises(UnsupportedConfigError, match='names no "model_type"'):
        BertConfig.from_hugging_face({"hidden_size": 12})


def test_null_means_the_default():
    assert BertConfig.from_hugging_face({"model_type": "bert", "pad_token_id": None}).pad_id == 0


def test_chunks_of_the_feed_forward_change_no_value():
    assert BertConfig.from_hugging_face(SETTINGS | {"chunk_size_feed_forward": 64}) == (
        BertConfig.from_hugging_face(SETTINGS)
    )


KINDS = [BertConfig, RobertaConfig, DistilBertConfig, AlbertConfig, TransformerConfig]
NONSENSE = ["12", "much", float("nan"), float("inf"), -1, -0.5, [1], {"a": 1}]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_field_refuses_nonsense(kind):
    """A field that is added later is in here by itself."""
    sizes = {} if issubclass(kind, BertConfig) else {"source_vocab": 7, "target_vocab": 9}
    for field in dataclasses.fields(kind):
        for value in NONSENSE:
            with pytest.raises(ValueError, match=field.name):
                kind(**{**sizes, field.name: value})
                pytest.fail(f"{kind.__name__} takes {field.name}={value!r}")


def test_nonsense_in_a_file_is_an_unsupported_configuration():
    for key in SETTINGS:
        for value in ("much", -1, [1], {"a": 1}):
            with pytest.raises(UnsupportedConfigError):
                BertConfig.from_hugging_face(SETTINGS | {key: value})
                pytest.fail(f"{key}={value!r} is taken")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_numbers_of_numpy_become_pythons(kind):
    """So that what is taken can be saved; a field that is added later is in here by itself."""
    plain = kind() if issubclass(kind, BertConfig) else kind(7, 7)
    values = {name: value for name, value in dataclasses.asdict(plain).items() if isinstance(value, (bool, int, float))}
    config = kind(**{name: np.array(value)[()] for name, value in values.items()})
    assert config == plain and hash(config) == hash(plain)
    assert all(type(getattr(config, name)) is type(value) for name, value in values.items())
    assert json.dumps(dataclasses.asdict(config)) == json.dumps(dataclasses.asdict(plain))
    assert type(dataclasses.replace(plain, dropout=np.float32(0.5)).dropout) is float
    for value in (np.float64(12), np.True_, np.int8(0)):
        with pytest.raises(ValueError, match="n_heads must be an integer of 1 or more"):
            dataclasses.replace(plain, n_heads=value)


def test_null_means_that_a_setting_is_absent():
    for key in ("tie_word_embeddings", "is_decoder", "pruned_heads", "add_cross_attention", "position_embedding_type"):
        assert BertConfig.from_hugging_face(SETTINGS | {key: None}) == BertConfig.from_hugging_face(SETTINGS)
    with pytest.raises(UnsupportedConfigError, match='names no "model_type"'):
        BertConfig.from_hugging_face(SETTINGS | {"model_type": None})


def test_fewer_names_than_classes():
    assert BertConfig.from_hugging_face(SETTINGS | {"num_labels": 3}).n_classes == 3
    with pytest.raises(UnsupportedConfigError, match="id2label names 3 classes, but num_labels is 4"):
        BertConfig.from_hugging_face(SETTINGS | {"num_labels": 4})
