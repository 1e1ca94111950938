"""`transformers`' BERT on random small configurations and on the real checkpoint: equal within 1e-5.

The reference runs in float64 against NumPy and in float32 against PyTorch and TensorFlow. Every comparison
goes through files: what `transformers` saves, `from_pretrained` opens, and the other way round.
"""

import numpy as np
import pytest
import torch
import transformers
from numpy.testing import assert_allclose
from safetensors.torch import load_file
from transformers import BertConfig as TheirConfig

from course_lib import data
from course_lib.masks import padding_mask
from course_lib.models.bert import BertConfig
from course_lib.text.wordpiece import WordPiece
from tests.support import states
from tests.support.backends import NUMPY

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

ARCHITECTURES = ["BertModel", "BertForMaskedLM", "BertForSequenceClassification"]
# odd sizes on purpose: one layer and three, one head and five, one segment and three
CONFIGS = {
    "small": {"vocab_size": 37, "hidden_size": 20, "num_hidden_layers": 3, "num_attention_heads": 5,
              "intermediate_size": 33, "max_position_embeddings": 11, "type_vocab_size": 3},
    "one of each": {"vocab_size": 53, "hidden_size": 7, "num_hidden_layers": 1, "num_attention_heads": 1,
                    "intermediate_size": 5, "max_position_embeddings": 9, "type_vocab_size": 1},
    "relu, large eps": {"vocab_size": 41, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3,
                        "intermediate_size": 50, "max_position_embeddings": 16, "type_vocab_size": 2,
                        "hidden_act": "relu", "layer_norm_eps": 1e-3},
}  # fmt: skip

SENTENCES = [
    "The film is a quiet, beautifully acted story about two brothers.",
    "Dreadful.",
    "I wanted to like it, but after forty minutes of explosions I had forgotten who was chasing whom, and why.",
]
PAIRS = ["It made me call my own brother.", "Avoid it!", "The ending did not help."]


def their_model(name, seed=0, **settings):
    """A random model of `transformers`, with weights large enough to matter everywhere."""
    torch.manual_seed(seed)
    model = getattr(transformers, name)(TheirConfig(attn_implementation="eager", num_labels=4, **settings)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.3 * torch.randn_like(weight) if weight.dim() == 1 else 0.2 * torch.randn_like(weight))
    return model


def random_batch(seed, settings):
    """ids with 0 as padding, a padding mask and segments, of an odd shape."""
    rng = np.random.default_rng(seed)
    n_batch, length = 3, settings["max_position_embeddings"] - seed % 3
    ids = rng.integers(1, settings["vocab_size"], size=(n_batch, length))
    for row in range(1, n_batch):
        ids[row, length - 2 * row - 1 :] = 0
    return ids, rng.integers(0, settings["type_vocab_size"], size=ids.shape)


def run_theirs(model, ids, segments):
    with torch.no_grad():
        return model(
            input_ids=torch.from_numpy(ids),
            attention_mask=torch.from_numpy((ids != 0).astype(np.int64)),
            token_type_ids=torch.from_numpy(segments),
            output_hidden_states=True,
            output_attentions=True,
        )


def compare(backend, ours, theirs, ids, segments):
    """Every output of the two models; padding is compared too, since both compute it alike."""
    theirs = theirs.double() if backend is NUMPY else theirs.float()
    expected = run_theirs(theirs, ids, segments)
    output = backend.call(ours, ids, mask=padding_mask(ids), segments=segments, return_layers=True)
    tolerance = {"rtol": 1e-9, "atol": 1e-9} if backend is NUMPY else {"rtol": 1e-5, "atol": 1e-5}
    assert len(output.hidden) == len(expected.hidden_states) and len(output.weights) == len(expected.attentions)
    for result, reference in zip(output.hidden, expected.hidden_states, strict=True):
        assert_allclose(result, reference, **tolerance)
    for result, reference in zip(output.weights, expected.attentions, strict=True):
        assert_allclose(result, reference, **tolerance)
    if hasattr(output, "logits"):
        assert_allclose(output.logits, expected.logits, **tolerance)
    else:
        assert_allclose(output.last_hidden, expected.last_hidden_state, **tolerance)
        assert_allclose(output.pooled, expected.pooler_output, **tolerance)


@pytest.mark.parametrize("settings", CONFIGS)
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_random_model_opens_with_equal_outputs(backend, name, settings, tmp_path):
    settings = CONFIGS[settings]
    for seed in (1, 2):
        theirs = their_model(name, seed, **settings)
        theirs.save_pretrained(tmp_path / str(seed))
        ours = getattr(backend.lib, name).from_pretrained(tmp_path / str(seed))
        compare(backend, ours, theirs, *random_batch(seed, settings))


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_our_saved_model_opens_in_transformers_with_equal_outputs(backend, name, tmp_path):
    config = BertConfig(
        vocab_size=37, d_model=20, n_layers=2, n_heads=5, d_ff=33, max_len=11, n_segments=3, n_classes=4, norm_eps=1e-3
    )
    shapes = {"BertModel": states.bert, "BertForMaskedLM": states.masked_lm}.get(name, states.classifier)(config)
    ours = backend.make(name, config, state=states.random_state(shapes, seed=5))
    ours.save_pretrained(tmp_path / "model")
    theirs, report = getattr(transformers, name).from_pretrained(
        tmp_path / "model", attn_implementation="eager", output_loading_info=True
    )
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), report
    compare(backend, ours, theirs.eval(), *random_batch(4, CONFIGS["small"]))
    theirs.save_pretrained(tmp_path / "theirs")  # and the two files hold the same names
    names = [set(load_file(tmp_path / part / "model.safetensors")) for part in ("model", "theirs")]
    assert names[0] == names[1]
    automatic = transformers.AutoModel if name == "BertModel" else None
    if automatic is not None:
        assert type(automatic.from_pretrained(tmp_path / "model")).__name__ == name


def test_config_goes_to_transformers_and_back(tmp_path):
    config = BertConfig(
        vocab_size=37, d_model=20, n_layers=3, n_heads=5, d_ff=33, max_len=11, n_segments=3, dropout=0.2,
        attention_dropout=0.3, norm_eps=1e-3, activation="relu", pad_id=1, init_std=0.5, n_classes=4,
    )  # fmt: skip
    theirs = TheirConfig(**config.to_hugging_face("BertModel"))
    assert theirs.num_labels == 4 and theirs.hidden_size == 20 and theirs.pad_token_id == 1
    assert BertConfig.from_hugging_face(theirs.to_dict()) == config


@pytest.fixture(scope="module")
def checkpoint():
    return data.fetch("minilm-l6")


@pytest.fixture(scope="module")
def sentences(checkpoint):
    """A real padded batch: three pairs of sentences of very different lengths."""
    ids, segments = WordPiece.from_pretrained(checkpoint).encode(SENTENCES, pairs=PAIRS)
    assert ids.shape[0] == 3 and (ids == 0).any() and (segments == 1).any()
    return ids, segments


@pytest.fixture(scope="module")
def minilm(checkpoint):
    return transformers.BertModel.from_pretrained(checkpoint, attn_implementation="eager", dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def minilm_with_a_head(checkpoint, tmp_path_factory):
    """The checkpoint holds no head for masked tokens; a random one goes to both sides, by way of a file."""
    torch.manual_seed(3)
    model = transformers.BertForMaskedLM.from_pretrained(
        checkpoint, attn_implementation="eager", dtype=torch.float32
    ).eval()
    with torch.no_grad():
        model.cls.predictions.bias.normal_(std=0.1)
        model.cls.predictions.transform.dense.weight.normal_(std=0.05)
        model.cls.predictions.transform.LayerNorm.weight.normal_(mean=1.0, std=0.1)
    folder = tmp_path_factory.mktemp("minilm-mlm")
    model.save_pretrained(folder)
    return model, folder


def test_real_checkpoint(backend, checkpoint, minilm, sentences):
    ours = backend.lib.BertModel.from_pretrained("minilm-l6")
    compare(backend, ours, minilm, *sentences)
    fused = backend.lib.BertModel.from_pretrained(checkpoint, attention=backend.function("fused_attention"))
    ids, segments = sentences
    plain = backend.call(ours, ids, mask=padding_mask(ids), segments=segments)
    other = backend.call(fused, ids, mask=padding_mask(ids), segments=segments)
    assert_allclose(other.last_hidden, plain.last_hidden, rtol=1e-5, atol=1e-5)


def test_real_checkpoint_with_a_masked_lm_head(backend, minilm_with_a_head, sentences):
    theirs, folder = minilm_with_a_head
    compare(backend, backend.lib.BertForMaskedLM.from_pretrained(folder), theirs, *sentences)


def test_a_padded_real_batch_equals_its_sentences_one_by_one(backend, checkpoint, sentences):
    model = backend.lib.BertModel.from_pretrained(checkpoint)
    ids, segments = sentences
    batch = backend.call(model, ids, mask=padding_mask(ids), segments=segments)
    for b in range(len(ids)):
        part = (slice(b, b + 1), slice(0, int((ids[b] != 0).sum())))
        alone = backend.call(model, ids[part], segments=segments[part])
        assert_allclose(batch.pooled[b : b + 1], alone.pooled, rtol=1e-5, atol=1e-5)
        assert_allclose(batch.last_hidden[part], alone.last_hidden, rtol=1e-5, atol=1e-5)
