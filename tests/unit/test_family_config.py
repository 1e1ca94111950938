"""course_lib.models: the configurations of RoBERTa, DistilBERT and ALBERT, and their border to config.json."""

import dataclasses

import pytest

from course_lib.errors import UnsupportedConfigError
from course_lib.models.albert import AlbertConfig
from course_lib.models.bert import BertConfig
from course_lib.models.distilbert import DistilBertConfig
from course_lib.models.roberta import RobertaConfig

COMMON = {"vocab_size": 50, "max_position_embeddings": 20, "pad_token_id": 2, "initializer_range": 0.5,
          "id2label": {"0": "bad", "1": "so so", "2": "good"}, "problem_type": "regression"}  # fmt: skip
AS_BERT = {"hidden_size": 12, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 30,
           "type_vocab_size": 5, "hidden_dropout_prob": 0.25, "attention_probs_dropout_prob": 0.35,
           "layer_norm_eps": 1e-7, "hidden_act": "silu"}  # fmt: skip
SETTINGS = {
    RobertaConfig: {"model_type": "roberta", **COMMON, **AS_BERT, "classifier_dropout": 0.45},
    DistilBertConfig: {
        "model_type": "distilbert", **COMMON, "dim": 12, "n_layers": 3, "n_heads": 4, "hidden_dim": 30, "dropout": 0.25,
        "attention_dropout": 0.35, "activation": "silu", "seq_classif_dropout": 0.45, "qa_dropout": 0.15,
        "sinusoidal_pos_embds": True,
    },
    AlbertConfig: {
        "model_type": "albert", **COMMON, **AS_BERT, "classifier_dropout_prob": 0.45, "embedding_size": 7,
        "num_hidden_groups": 2,
    },
}  # fmt: skip
READ = {"vocab_size": 50, "d_model": 12, "n_layers": 3, "n_heads": 4, "d_ff": 30, "max_len": 20, "dropout": 0.25,
        "attention_dropout": 0.35, "activation": "silu", "pad_id": 2, "init_std": 0.5, "n_classes": 3,
        "labels": ("bad", "so so", "good"), "classifier_dropout": 0.45, "problem_type": "regression"}  # fmt: skip
EXPECTED = {
    RobertaConfig: RobertaConfig(**READ, n_segments=5, norm_eps=1e-7),
    DistilBertConfig: DistilBertConfig(**READ, answer_dropout=0.15, sinusoidal=True),
    AlbertConfig: AlbertConfig(**READ, n_segments=5, norm_eps=1e-7, d_embedding=7, n_groups=2),
}
each = pytest.mark.parametrize("kind", SETTINGS, ids=lambda kind: kind.__name__)


@each
def test_every_setting_is_read_and_written(kind):
    assert kind.from_hugging_face(SETTINGS[kind]) == EXPECTED[kind]
    written = EXPECTED[kind].to_hugging_face("X")
    assert {key: written[key] for key in SETTINGS[kind]} == SETTINGS[kind]
    assert written["label2id"] == {"bad": 0, "so so": 1, "good": 2}


@each
def test_nonsense_in_a_file_is_an_unsupported_configuration(kind):
    for key in SETTINGS[kind]:
        for value in ("much", -1, [1], {"a": 1}):
            with pytest.raises(UnsupportedConfigError):
                kind.from_hugging_face(SETTINGS[kind] | {key: value})
                pytest.fail(f"{key}={value!r} is taken")


@each
def test_another_kind_of_model_is_refused_by_the_name_of_what_opens_it(kind):
    for other, settings in SETTINGS.items():
        if other is not kind:
            name = other.__name__.replace("Config", "Model")
            with pytest.raises(UnsupportedConfigError, match=f"computes '{kind.border.model_type}' only; {name} and"):
                kind.from_hugging_face(settings)
    with pytest.raises(UnsupportedConfigError, match="model_type='gpt2'.*only$"):
        kind.from_hugging_face(SETTINGS[kind] | {"model_type": "gpt2"})
    with pytest.raises(UnsupportedConfigError, match=f'names no "model_type"; a {kind.border.name}\'s says'):
        kind.from_hugging_face({"vocab_size": 50})


@pytest.mark.parametrize("kind, changes, message", [
    (RobertaConfig, {"max_len": 4, "pad_id": 3}, "max_len must be 5 or more for pad_id=3"),
    (DistilBertConfig, {"n_segments": 2}, "n_segments of a DistilBERT is 1, got 2"),
    (DistilBertConfig, {"norm_eps": 1e-5}, "norm_eps of a DistilBERT is 1e-12, got 1e-05"),
    (DistilBertConfig, {"d_model": 9, "n_heads": 3, "sinusoidal": True}, "d_model of sinusoidal positions must be an"),
    (DistilBertConfig, {"classifier_dropout": None}, "classifier_dropout is a probability"),
    (AlbertConfig, {"n_groups": 13}, "n_groups=13 is more than there are layers, n_layers=12"),
    (AlbertConfig, {"classifier_dropout": None}, "classifier_dropout is a probability"),
    (AlbertConfig, {"d_embedding": 0}, "d_embedding must be an integer of 1 or more"),
])  # fmt: skip
def test_values_that_make_no_model(kind, changes, message):
    with pytest.raises(ValueError, match=message):
        kind(**changes)


@pytest.mark.parametrize("kind, changes", [
    (RobertaConfig, {"is_decoder": True}),
    (RobertaConfig, {"position_embedding_type": "relative_key"}),
    (RobertaConfig, {"tie_word_embeddings": False}),
    (DistilBertConfig, {"tie_word_embeddings": False}),
    (DistilBertConfig, {"pruned_heads": {"0": [1]}}),
    (AlbertConfig, {"inner_group_num": 2}),
    (AlbertConfig, {"num_hidden_groups": 4}),
])  # fmt: skip
def test_settings_that_ours_do_not_compute(kind, changes):
    with pytest.raises(UnsupportedConfigError):
        kind.from_hugging_face(SETTINGS[kind] | changes)


def test_the_dropouts_before_the_heads():
    found = {kind: (c.head_dropout, c.token_dropout, c.answer_dropout) for kind, c in EXPECTED.items()}
    assert found == {
        RobertaConfig: (0.45, 0.45, 0.0), DistilBertConfig: (0.45, 0.25, 0.15), AlbertConfig: (0.45, 0.45, 0.0)
    }  # fmt: skip
    assert dataclasses.replace(EXPECTED[RobertaConfig], classifier_dropout=None).token_dropout == 0.25


def test_the_longest_text():
    assert (BertConfig().longest, RobertaConfig().longest, AlbertConfig().longest) == (512, 512, 512)
