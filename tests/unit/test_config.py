"""course_lib.config: BertConfig and the border to config.json."""

import dataclasses

import pytest

from course_lib.config import BertConfig, UnsupportedConfigError

SETTINGS = {
    "model_type": "bert", "vocab_size": 50, "hidden_size": 12, "num_hidden_layers": 3, "num_attention_heads": 4,
    "intermediate_size": 30, "max_position_embeddings": 20, "type_vocab_size": 5, "hidden_dropout_prob": 0.25,
    "attention_probs_dropout_prob": 0.35, "layer_norm_eps": 1e-7, "hidden_act": "relu", "pad_token_id": 2,
    "initializer_range": 0.5, "id2label": {"0": "bad", "1": "so so", "2": "good"},
}  # fmt: skip


def test_every_setting_is_read():
    assert BertConfig.from_hugging_face(SETTINGS) == BertConfig(
        vocab_size=50, d_model=12, n_layers=3, n_heads=4, d_ff=30, max_len=20, n_segments=5, dropout=0.25,
        attention_dropout=0.35, norm_eps=1e-7, activation="relu", pad_id=2, init_std=0.5, n_classes=3,
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
    assert settings["label2id"] == {"LABEL_0": 0, "LABEL_1": 1, "LABEL_2": 2}
    assert {key: settings[key] for key in SETTINGS if key != "id2label"} == {
        key: value for key, value in SETTINGS.items() if key != "id2label"
    }


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
    ({"classifier_dropout": 0.3}, "classifier_dropout=0.3"),
    ({"pruned_heads": {"0": [1]}}, "pruned_heads"),
    ({"chunk_size_feed_forward": 64}, "chunk_size_feed_forward=64"),
    ({"hidden_act": "gelu_new"}, "cannot be used: activation.*'gelu_new'"),
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
