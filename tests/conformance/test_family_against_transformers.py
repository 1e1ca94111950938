"""RoBERTa, DistilBERT and ALBERT equal `transformers`' within 1e-5 on random configurations, by files both ways."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers
from numpy.testing import assert_allclose
from safetensors.numpy import load_file, save_file

from course_lib.checkpoints.weights import CheckpointError
from course_lib.masks import padding_mask
from tests.support.backends import NUMPY
from tests.support.random_models import FAMILY, MAKERS

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

PREFIXES = {"roberta": "Roberta", "distilbert": "DistilBert", "albert": "Albert"}
TASKS = ["Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"]


def pytest_generate_tests(metafunc):
    """Each random configuration of each member of the family, as many as `--configurations` says."""
    if "number" in metafunc.fixturenames:
        metafunc.parametrize("number", range(metafunc.config.getoption("--configurations")))


def family_case(kind, number):
    """A configuration and the inputs of a call; in every second row of a RoBERTa's, padding stands on the left."""
    case = MAKERS[kind](number, np.random.default_rng([20190726, number]))
    config, inputs = case.arguments["config"], dict(case.inputs)
    if kind == "roberta":
        ids = inputs["ids"].copy()
        for row in ids[1::2]:
            row[:] = np.roll(row, (row == config.pad_id).sum())
        inputs |= {"ids": ids, "mask": padding_mask(ids, config.pad_id)}
    return config, inputs


def their_model(name, config, seed):
    """A random model of `transformers`, with weights large enough to matter everywhere."""
    torch.manual_seed(seed)
    settings = config.to_hugging_face(name) | {"attn_implementation": "eager"}
    model = getattr(transformers, name)(transformers.AutoConfig.for_model(**settings)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.3 * torch.randn_like(weight) if weight.dim() == 1 else 0.2 * torch.randn_like(weight))
    return model


def compare(backend, ours, theirs, config, inputs):
    """Every output of the two models, those of padding included."""
    theirs = theirs.double() if backend is NUMPY else theirs.float()
    ids = inputs["ids"]
    given = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy((ids != config.pad_id) * 1)}
    if "segments" in inputs:
        given["token_type_ids"] = torch.from_numpy(inputs["segments"])
    with torch.no_grad():
        expected = theirs(**given, output_hidden_states=True, output_attentions=True)
    output = backend.call(ours, **inputs, return_layers=True)
    tolerance = {"rtol": 1e-9, "atol": 1e-9} if backend is NUMPY else {"rtol": 1e-5, "atol": 1e-5}
    pairs = [(output.hidden, expected.hidden_states), (output.weights, expected.attentions)]
    names = {"last_hidden": "last_hidden_state", "pooled": "pooler_output"}
    for name in ("logits", "start_logits", "end_logits", "last_hidden", "pooled"):
        if getattr(output, name, None) is not None:
            pairs.append(([getattr(output, name)], [getattr(expected, names.get(name, name))]))
    assert len(pairs) > 2
    for results, references in pairs:
        for result, reference in zip(results, references, strict=True):
            assert_allclose(result, reference, **tolerance)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", FAMILY)
def test_equal_and_opened_both_ways(backend, kind, task, number, tmp_path):
    name, (config, inputs) = PREFIXES[kind] + task, family_case(kind, number)
    if task == "ForQuestionAnswering":  # a start and an end
        config = replace(config, n_classes=2)
    theirs = their_model(name, config, number)
    theirs.save_pretrained(tmp_path / "theirs")
    ours = getattr(backend.lib, name).from_pretrained(tmp_path / "theirs")
    assert ours.config == config
    compare(backend, ours, theirs, config, inputs)
    ours.save_pretrained(tmp_path / "ours")
    opened, report = getattr(transformers, name).from_pretrained(
        tmp_path / "ours", attn_implementation="eager", output_loading_info=True
    )
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), report
    compare(backend, ours, opened.eval(), config, inputs)
    states = [load_file(tmp_path / side / "model.safetensors") for side in ("ours", "theirs")]
    assert states[0].keys() == states[1].keys()
    for key in states[0]:
        assert_allclose(states[0][key], states[1][key], rtol=1e-6, err_msg=key)


@pytest.mark.parametrize("kind", FAMILY)
def test_defaults_of_an_absent_key_are_those_of_transformers(kind):
    """What a config.json says is what both read; where it is silent, too."""
    from tests.support.backends import TORCH

    reader = getattr(TORCH.lib, PREFIXES[kind] + "Model").family.config
    theirs = type(transformers.AutoConfig.for_model(kind))
    assert reader.from_hugging_face({"model_type": kind}) == reader.from_hugging_face(theirs().to_dict())
    config = family_case(kind, 1)[0]
    assert reader.from_hugging_face(theirs(**config.to_hugging_face("X")).to_dict()) == config


def test_the_head_for_the_order_of_sentences_is_left_out(backend, tmp_path):
    config, inputs = family_case("albert", 0)
    theirs = their_model("AlbertForPreTraining", config, 0)
    theirs.save_pretrained(tmp_path)
    alone, _ = transformers.AlbertForMaskedLM.from_pretrained(
        tmp_path, attn_implementation="eager", output_loading_info=True
    )
    compare(backend, backend.lib.AlbertForMaskedLM.from_pretrained(tmp_path), alone.eval(), config, inputs)
    compare(backend, backend.lib.AlbertModel.from_pretrained(tmp_path), theirs.albert, config, inputs)


def test_fresh_sinusoidal_positions_are_those_of_transformers(backend):
    from course_lib.models.distilbert import DistilBertConfig

    config = DistilBertConfig(13, 8, 1, 2, 9, max_len=11, sinusoidal=True)
    theirs = transformers.DistilBertModel(transformers.AutoConfig.for_model(**config.to_hugging_face("X")))
    fresh = backend.lib.get_state(backend.make("DistilBertModel", config))["embeddings.position.weight"]
    assert_allclose(fresh, theirs.embeddings.position_embeddings.weight.detach(), rtol=1e-5, atol=1e-6)


SECOND = {
    "roberta": ("lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight", "lm_head.decoder.bias"),
    "distilbert": ("vocab_projector.weight", "distilbert.embeddings.word_embeddings.weight", None),
    "albert": ("predictions.decoder.weight", "albert.embeddings.word_embeddings.weight", "predictions.decoder.bias"),
}


@pytest.mark.parametrize("kind", FAMILY)
def test_the_second_copy_of_a_tied_weight(kind, tmp_path):
    """It may repeat the first, stand in for it, or be refused where it differs."""
    config, name = family_case(kind, 0)[0], PREFIXES[kind] + "ForMaskedLM"
    cls = getattr(NUMPY.lib, name)
    state = NUMPY.lib.get_state(model := cls(config))
    folder = model.save_pretrained(tmp_path)
    second, first, bias = SECOND[kind]
    theirs = load_file(folder / "model.safetensors")
    both = theirs | {second: theirs[first]} | ({bias: theirs[bias.replace("decoder.", "")]} if bias else {})
    without = {key: value for key, value in both.items() if key != first}
    for copies in (both, without):
        save_file(copies, folder / "model.safetensors")
        opened = NUMPY.lib.get_state(cls.from_pretrained(folder))
        assert opened.keys() == state.keys()
        assert_allclose(opened["bert.embeddings.token.weight"], state["bert.embeddings.token.weight"])
    save_file(both | {second: 2 * theirs[first]}, folder / "model.safetensors")
    with pytest.raises(CheckpointError, match="the output matrix is not the token table"):
        cls.from_pretrained(folder)
