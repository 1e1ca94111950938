"""BERT's heads: against `transformers` on random models, logits of some tokens alone, and what a folder opens as."""

import dataclasses
import json

import numpy as np
import pytest
import torch
import transformers
from numpy.testing import assert_allclose
from safetensors.numpy import load_file, save_file

from course_lib.checkpoints.weights import CheckpointError
from course_lib.masks import padding_mask
from course_lib.models.bert import BertConfig
from tests.support import specification, states
from tests.support.backends import NUMPY, TENSORFLOW, TORCH
from tests.support.random_models import cases

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

PAD = 5
CONFIG = BertConfig(vocab_size=13, d_model=6, n_layers=2, n_heads=3, d_ff=10, max_len=7, pad_id=PAD, n_classes=4)
SIZES = (CONFIG.n_layers, CONFIG.n_heads)
IDS = np.array([[2, 0, 12, 1, 7], [9, 4, 4, PAD, PAD]])
MASK = padding_mask(IDS, PAD)
SEGMENTS = np.array([[0, 0, 1, 1, 1], [1, 1, 0, 0, 0]])
AT = np.array([[False, True, False, False, True], [True, False, False, False, False]])
# our field -> that of `transformers`
FIELDS = {
    "last_hidden": "last_hidden_state", "pooled": "pooler_output", "logits": "logits",
    "masked_logits": "prediction_logits", "next_logits": "seq_relationship_logits",
    "start_logits": "start_logits", "end_logits": "end_logits",
}  # fmt: skip
MASKED = ("BertForMaskedLM", "BertForPreTraining")


def build(backend, name, config=CONFIG, seed=0):
    return backend.make(name, config, state=states.random_state(states.BERTS[name](config), seed))


def pytest_generate_tests(metafunc):
    if "bert_case" in metafunc.fixturenames:
        found = cases(metafunc.config.getoption("--configurations"), ["bert"])
        metafunc.parametrize("bert_case", found, ids=map(repr, found))


def compare(backend, ours, theirs, inputs):
    """Every output, hidden states and weights too; in float64 against NumPy."""
    theirs = theirs.double() if backend is NUMPY else theirs.float()
    with torch.no_grad():
        expected = theirs(
            input_ids=torch.from_numpy(inputs["ids"]),
            attention_mask=torch.from_numpy(inputs["mask"][:, 0, 0].astype(np.int64)),
            token_type_ids=torch.from_numpy(inputs["segments"]),
            output_hidden_states=True,
            output_attentions=True,
        )
    output = backend.call(ours, **inputs, return_layers=True)
    tolerance = 1e-9 if backend is NUMPY else 1e-5
    pairs = [(getattr(output, a), getattr(expected, b)) for a, b in FIELDS.items() if hasattr(output, a)]
    assert len(pairs) == len(output) - 2
    pairs += [*zip(output.hidden, expected.hidden_states, strict=True)]
    for result, reference in [*pairs, *zip(output.weights, expected.attentions, strict=True)]:
        assert_allclose(result, reference, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", states.BERTS)
def test_random_models_and_transformers_open_each_others_files_with_equal_outputs(backend, name, bert_case, tmp_path):
    config = dataclasses.replace(bert_case.arguments["config"], pooling="first", pre_norm=False)
    torch.manual_seed(bert_case.number)
    settings = transformers.BertConfig(**config.to_hugging_face(name), attn_implementation="eager")
    theirs = getattr(transformers, name)(settings).eval()
    with torch.no_grad():
        for weight in theirs.parameters():
            weight.add_(0.2 * torch.randn_like(weight))
    theirs.save_pretrained(tmp_path / "theirs")
    ours = getattr(backend.lib, name).from_pretrained(tmp_path / "theirs")
    compare(backend, ours, theirs, bert_case.inputs)
    alone = {key: value[:1] for key, value in bert_case.inputs.items()}
    compare(backend, ours, theirs, alone)
    ours.save_pretrained(tmp_path / "ours")
    opened, report = getattr(transformers, name).from_pretrained(
        tmp_path / "ours", attn_implementation="eager", output_loading_info=True
    )
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), report
    compare(backend, ours, opened.eval(), bert_case.inputs)
    names = [set(load_file(tmp_path / part / "model.safetensors")) for part in ("ours", "theirs")]
    assert names[0] == names[1]


def test_both_pretraining_tasks(backend):
    state = states.random_state(states.pretraining(CONFIG))
    output = backend.call(build(backend, "BertForPreTraining"), IDS, mask=MASK, segments=SEGMENTS)
    expected = specification.masked_lm(state, IDS, MASK, SEGMENTS, *SIZES)
    assert_allclose(output.masked_logits, expected, **backend.tolerance)
    _, pooled, *_ = specification.bert(state, "bert.", IDS, MASK, SEGMENTS, *SIZES)
    assert_allclose(output.next_logits, specification.linear(state, "next_sentence", pooled), **backend.tolerance)


def test_a_label_for_each_token(backend):
    state = states.random_state(states.token_classifier(CONFIG))
    last, *_ = specification.bert(state, "bert.", IDS, MASK, SEGMENTS, *SIZES)
    logits = backend.call(build(backend, "BertForTokenClassification"), IDS, mask=MASK, segments=SEGMENTS).logits
    assert_allclose(logits, specification.linear(state, "classifier", last), **backend.tolerance)


def test_starts_and_ends_of_answers(backend):
    state = states.random_state(states.answers(CONFIG))
    last, *_ = specification.bert(state, "bert.", IDS, MASK, SEGMENTS, *SIZES)
    output = backend.call(build(backend, "BertForQuestionAnswering"), IDS, mask=MASK, segments=SEGMENTS)
    expected = specification.linear(state, "qa_outputs", last)
    assert_allclose(output.start_logits, expected[..., 0], **backend.tolerance)
    assert_allclose(output.end_logits, expected[..., 1], **backend.tolerance)


def test_dropout_before_the_label_of_each_token(training_backend):
    """Of `classifier_dropout` alone, when it is set; the encoder has none, nor has what finds answers."""
    for name, dropout, varies in (
        ("BertForTokenClassification", 0.9, True),
        ("BertForTokenClassification", 0.0, False),
        ("BertForQuestionAnswering", 0.9, False),
    ):
        config = dataclasses.replace(CONFIG, dropout=0.0, attention_dropout=0.0, classifier_dropout=dropout)
        model = build(training_backend, name, config)
        found = [training_backend.call(model, IDS, training=True)[0] for _ in range(3)]
        assert (len({logits.tobytes() for logits in found}) > 1) == varies


@pytest.mark.parametrize("name", MASKED)
@pytest.mark.parametrize("at", [AT, AT & False, AT[:1]], ids=["some", "none", "one row"])
def test_the_logits_of_some_tokens_alone(backend, name, at):
    model, rows = build(backend, name), len(at)
    inputs = {"mask": MASK[:rows], "segments": SEGMENTS[:rows]}
    whole = backend.call(model, IDS[:rows], **inputs)
    some = backend.call(model, IDS[:rows], **inputs, at=at)
    assert_allclose(some[0], whole[0][at], **backend.tolerance)
    assert some[0].shape == (at.sum(), CONFIG.vocab_size)
    if name == "BertForPreTraining":
        assert_allclose(some.next_logits, whole.next_logits, **backend.tolerance)


@pytest.mark.parametrize("name", MASKED)
def test_what_says_nothing_of_each_token_is_refused(backend, name):
    model = build(backend, name)
    for at, error, message in (
        (AT.astype(np.int64), TypeError, "at must be boolean, True at the tokens that count, got .*int64"),
        (AT[:, :3], ValueError, r"at must say True or False of each token, \(2, 5\); got \(2, 3\)"),
        (AT[0], ValueError, r"of each token, \(2, 5\); got \(5\)"),
        (AT[:, None, None], ValueError, r"of each token, \(2, 5\); got \(2, 1, 1, 5\)"),
    ):
        with pytest.raises(error, match=message):
            backend.call(model, IDS, at=at)


def joint_gradients(backend, at):
    """Of the joint loss of the pretraining, with all weights: sums of the two logits' log-softmax."""
    model = build(backend, "BertForPreTraining", dataclasses.replace(CONFIG, dropout=0.0, attention_dropout=0.0))
    if backend is TORCH:
        output = model(torch.from_numpy(IDS), mask=torch.from_numpy(MASK), at=at)
        kept = output.masked_logits if at is not None else output.masked_logits[torch.from_numpy(AT)]
        loss = -kept.log_softmax(-1)[:, 3].sum() - output.next_logits.log_softmax(-1)[:, 0].sum()
        loss.backward()
        for weight in model.parameters():
            weight.data = weight.grad
    else:
        import tensorflow as tf

        with tf.GradientTape() as tape:
            output = model(tf.constant(IDS), mask=tf.constant(MASK), at=at)
            kept = output.masked_logits if at is not None else tf.boolean_mask(output.masked_logits, AT)
            both = tf.nn.log_softmax(kept)[:, 3], tf.nn.log_softmax(output.next_logits)[:, 0]
            loss = -tf.reduce_sum(both[0]) - tf.reduce_sum(both[1])
        for weight, slope in zip(
            model.trainable_variables, tape.gradient(loss, model.trainable_variables), strict=True
        ):
            weight.assign(tf.convert_to_tensor(slope))
    return backend.lib.get_state(model)


def test_the_joint_gradient_is_the_same_in_both_frameworks_and_of_some_tokens_alone():
    expected = joint_gradients(TORCH, None)
    assert all(np.abs(slope).max() > 1e-4 for name, slope in expected.items() if "k_proj.bias" not in name)
    for backend in (TORCH, TENSORFLOW):
        for at in (None, AT):
            for name, slope in joint_gradients(backend, at).items():
                assert_allclose(slope, expected[name], rtol=1e-4, atol=2e-5, err_msg=f"{backend} {name}")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # PyTorch's own, from its compiler
def test_some_tokens_in_a_compiled_graph_of_pytorch():
    """How many they are is known when they are counted: the graph breaks there, unless PyTorch is told to go on."""
    model = build(TORCH, "BertForMaskedLM").eval()
    inputs = {"ids": torch.from_numpy(IDS), "mask": torch.from_numpy(MASK)}
    torch.compiler.reset()
    with torch.no_grad():
        expected = model(**inputs).logits
        compiled = torch.compile(model, backend="eager")
        for at in (AT, ~AT, AT & False):
            found = compiled(**inputs, at=torch.from_numpy(at)).logits
            assert_allclose(found, expected[torch.from_numpy(at)], rtol=1e-4, atol=1e-5)
        torch.compiler.reset()
        with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
            whole = torch.compile(model, backend="eager", fullgraph=True)
            for at in (AT, ~AT):
                found = whole(**inputs, at=torch.from_numpy(at)).logits
                assert_allclose(found, expected[torch.from_numpy(at)], rtol=1e-4, atol=1e-5)
    torch.compiler.reset()


@pytest.mark.parametrize("xla", [False, True], ids=["graph", "xla"])
def test_some_tokens_in_a_compiled_graph_of_tensorflow(xla):
    import tensorflow as tf

    model = build(TENSORFLOW, "BertForPreTraining")
    signature = [tf.TensorSpec((None, None), tf.int64), tf.TensorSpec((None, None), tf.bool)]

    def total(ids, at):
        with tf.GradientTape() as tape:
            logits = model(ids, mask=TENSORFLOW.lib.padding_mask(ids, PAD), at=at).masked_logits  # (N, V)
            loss = tf.reduce_sum(tf.nn.log_softmax(logits)[:, 3])
        return loss, tape.gradient(loss, model.head.transform.kernel.value)

    compiled = tf.function(total, input_signature=signature, jit_compile=xla, autograph=False)
    log_probabilities = tf.nn.log_softmax(model(IDS, mask=MASK).masked_logits)[..., 3].numpy()
    for at in (AT, ~AT, AT & False):
        loss, slope = compiled(IDS, at)
        assert_allclose(loss, log_probabilities[at].sum(), rtol=1e-4, atol=1e-5)
        assert_allclose(slope, total(tf.constant(IDS), at)[1], rtol=1e-4, atol=1e-5)


def test_some_tokens_of_symbols(backend):
    """In Keras's functional models, which alone have any."""
    if backend is not TENSORFLOW:
        return
    import keras

    model = build(backend, "BertForMaskedLM")
    ids, at = keras.Input((5,), dtype="int64"), keras.Input((5,), dtype="bool")
    symbol = model(ids, at=at).logits
    assert symbol.shape == (None, 13)
    found = keras.Model([ids, at], symbol)([IDS, AT])
    assert_allclose(found, model(IDS).logits.numpy()[AT], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", states.BERTS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_in_pytorch(name, dtype):
    """Of the weights, and in autocast; TensorFlow's is in test_keras_layers."""
    model, at = build(TORCH, name).eval(), {"at": AT} if name in MASKED else {}
    inputs = {"mask": torch.from_numpy(MASK), "segments": torch.from_numpy(SEGMENTS), **at}
    with torch.no_grad():
        expected = model(torch.from_numpy(IDS), **inputs)
        with torch.autocast("cpu", dtype=dtype):
            found = [model(torch.from_numpy(IDS), **inputs)]
        found.append(model.to(dtype)(torch.from_numpy(IDS), **inputs))
    rounding = 2.0**-8 if dtype == torch.bfloat16 else 2.0**-11
    for outputs in found:
        for value, exact in zip(outputs[:-2], expected[:-2], strict=True):
            if exact is not None:
                assert float((value.float() - exact).abs().max() / exact.abs().max()) < 40 * rounding
    assert found[1][0].dtype == dtype


def test_outputs_have_names_in_programs_that_pytorch_exports():
    from torch.utils import _pytree

    for name in states.BERTS:
        with torch.no_grad():
            _, spec = _pytree.tree_flatten(build(TORCH, name)(torch.from_numpy(IDS)))
        assert _pytree.treespec_loads(_pytree.treespec_dumps(spec)) == spec


# What is missing where a folder that `transformers` wrote opens as one of ours.
MISSING = {
    "BertModel": {"BertForMaskedLM": ["pooler"], "BertForTokenClassification": ["pooler"],
                  "BertForQuestionAnswering": ["pooler"]},
    "BertForMaskedLM": dict.fromkeys(states.BERTS, ["head"]) | {"BertForMaskedLM": [], "BertForPreTraining": []},
    "BertForPreTraining": {
        "BertModel": ["head", "next_sentence"], "BertForMaskedLM": ["pooler", "next_sentence"],
        "BertForSequenceClassification": ["head", "next_sentence"],
        "BertForTokenClassification": ["pooler", "head", "next_sentence"],
        "BertForQuestionAnswering": ["pooler", "head", "next_sentence"],
    },
    "BertForSequenceClassification": {
        "BertModel": ["classifier"], "BertForMaskedLM": ["pooler", "classifier"], "BertForPreTraining": ["classifier"],
        "BertForTokenClassification": ["pooler", "classifier"], "BertForQuestionAnswering": ["pooler", "classifier"],
    },
    "BertForTokenClassification": dict.fromkeys(states.BERTS, ["classifier"]) | {"BertForTokenClassification": []},
    "BertForQuestionAnswering": dict.fromkeys(states.BERTS, ["qa_outputs"]) | {"BertForQuestionAnswering": []},
}  # fmt: skip


@pytest.mark.parametrize("saved", states.BERTS)
def test_what_a_folder_opens_as(backend, saved, tmp_path):
    """Parts that are not used are left out; those that are missing are named, and what to do."""
    settings = transformers.BertConfig(**CONFIG.to_hugging_face(saved))
    getattr(transformers, saved)(settings).save_pretrained(tmp_path)
    weights = {name.removeprefix("bert."): value for name, value in load_file(tmp_path / "model.safetensors").items()}
    for name in states.BERTS:
        cls, missing = getattr(backend.lib, name), MISSING[name].get(saved, [])
        if missing:
            parts = ", ".join(map(repr, missing))
            with pytest.raises(CheckpointError, match=rf"missing: .*pass new=\[{parts}\]; .* saved from a {saved}$"):
                cls.from_pretrained(tmp_path)
        model = cls.from_pretrained(tmp_path, new=missing)
        state = backend.lib.get_state(model)
        table = next(value for key, value in state.items() if key.endswith("embeddings.token.weight"))
        assert_allclose(table, weights["embeddings.word_embeddings.weight"], rtol=1e-6)


@pytest.mark.parametrize("name, other", [
    ("BertForTokenClassification", "BertForSequenceClassification"),
    ("BertForSequenceClassification", "BertForTokenClassification"),
    ("BertForSequenceClassification", "BertForMultipleChoice"),
])  # fmt: skip
def test_a_classifier_of_another_task_is_not_taken(backend, name, other, tmp_path):
    """It has the same name and may have the same shape."""
    config = dataclasses.replace(CONFIG, pooling="mean")  # so that no pooler is missing
    model = build(backend, name, config)
    model.save_pretrained(tmp_path)
    settings = json.loads((tmp_path / "config.json").read_text())
    cls = getattr(backend.lib, name)
    for architectures in ([name], ["MyOwnForSequenceClassification2"], None, []):
        (tmp_path / "config.json").write_text(json.dumps({**settings, "architectures": architectures}))
        found = backend.lib.get_state(cls.from_pretrained(tmp_path))
        assert_allclose(found["classifier.bias"], backend.lib.get_state(model)["classifier.bias"], rtol=1e-6)
    (tmp_path / "config.json").write_text(json.dumps({**settings, "architectures": [other]}))
    with pytest.raises(CheckpointError, match=rf"missing: classifier.*new=\['classifier'\]; .* from a {other}"):
        cls.from_pretrained(tmp_path)
    assert cls.from_pretrained(tmp_path, new=["classifier"])


def test_the_labels_of_answers_are_a_start_and_an_end(backend, tmp_path):
    """Whatever the encoder classified before: `transformers` builds as many outputs as there are labels."""
    config = dataclasses.replace(CONFIG, labels=("a", "b", "c", "d"))
    build(backend, "BertForQuestionAnswering", config).save_pretrained(tmp_path)
    assert transformers.BertForQuestionAnswering.from_pretrained(tmp_path).config.num_labels == 2
    build(backend, "BertForSequenceClassification", config).save_pretrained(tmp_path)
    opened = backend.lib.BertForQuestionAnswering.from_pretrained(tmp_path, new=["qa_outputs"])
    assert (opened.config.n_classes, opened.config.labels) == (2, None)


@pytest.mark.parametrize("name", MASKED)
def test_the_output_matrix_is_the_token_table(backend, name, tmp_path):
    """A second copy in the file stands in for the first, and is refused where it differs."""
    model = build(backend, name)
    model.save_pretrained(tmp_path)
    theirs = load_file(tmp_path / "model.safetensors")
    table = theirs["bert.embeddings.word_embeddings.weight"]
    for second, fits in ((table, True), (-table, False)):
        save_file({**theirs, "cls.predictions.decoder.weight": second}, tmp_path / "model.safetensors")
        if fits:
            assert getattr(backend.lib, name).from_pretrained(tmp_path)
            continue
        with pytest.raises(CheckpointError, match="the output matrix is not the token table"):
            getattr(backend.lib, name).from_pretrained(tmp_path)
    settings = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**settings, "tie_word_embeddings": False}))
    with pytest.raises(ValueError, match="tie_word_embeddings"):
        getattr(backend.lib, name).from_pretrained(tmp_path)
