"""Tags of words and answers out of contexts, in both frameworks: what is too long, empty or foreign included."""

import importlib
import math
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from course_lib.batches.spans import SpanBatches, encode_questions
from course_lib.batches.texts import TokenBatches
from course_lib.batches.tokens import encode_words, token_labels
from course_lib.models.bert import BertConfig
from course_lib.numpy import get_state
from course_lib.predictions import Answer, as_answers, find_spans, names_of, tag_words
from course_lib.text.wordpiece import WordPiece
from tests.support.backends import NUMPY, TENSORFLOW, TORCH

NAMES = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
CONTEXT = "Zoë took the violoncello to Merrow on Monday. Nobody knew why; it had stood there for 27 years."


@pytest.fixture(params=[TORCH, TENSORFLOW], ids=repr)
def backend(request):
    return request.param


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(autouse=True)
def seeded():
    """The same random weights whatever ran before."""
    before = np.random.get_state()
    np.random.seed(1)
    torch.manual_seed(1)
    keras.utils.set_random_seed(1)
    yield
    np.random.set_state(before)


@pytest.fixture(scope="module")
def tokenizer():
    return WordPiece.from_pretrained("minilm-l6")


def predictions(backend):
    return importlib.import_module(f"course_lib.{backend.name}.predictions")


def config(**changes):
    sizes = dict(vocab_size=30, d_model=12, n_layers=1, n_heads=3, d_ff=16, max_len=32)
    return BertConfig(**{**sizes, "pad_id": 3, "init_std": 0.5, "dropout": 0.5, **changes})


def pair(backend, name, settings, **options):
    """The same model in NumPy and in a framework."""
    reference = NUMPY.make(name, settings)
    return reference, backend.make(name, settings, state=get_state(reference), **options)


def some_ids(rng, lengths):
    ids = [rng.integers(0, 29, size=length) for length in lengths]
    return [row + (row >= 3) for row in ids]


@pytest.mark.parametrize("batch_size", [2, 64])
def test_token_logits_are_those_of_each_text_alone(backend, rng, batch_size):
    reference, model = pair(backend, "BertForTokenClassification", config(n_classes=5))
    ids = some_ids(rng, (7, 1, 32, 12, 3))
    found = predictions(backend).token_logits(model, ids, batch_size)
    for logits, row in zip(found, ids, strict=True):
        assert logits.shape == (len(row), 5) and logits.dtype == np.float32
        assert_allclose(logits, reference(row[None]).logits[0], atol=1e-5)


@pytest.mark.parametrize("n_segments", [2, 1])
def test_span_logits_are_those_of_each_window_alone(backend, rng, n_segments):
    reference, model = pair(backend, "BertForQuestionAnswering", config(n_segments=n_segments))
    ids = some_ids(rng, (9, 2, 30, 11))
    segments = [np.arange(len(row)) // 2 % 2 for row in ids]
    windows = SimpleNamespace(ids=ids, segments=segments)
    starts, ends = predictions(backend).span_logits(model, windows, batch_size=3)
    for start, end, row, segment in zip(starts, ends, ids, segments, strict=True):
        expected = reference(row[None], segments=segment[None] if n_segments == 2 else None)
        assert_allclose(start, expected.start_logits[0], atol=1e-5)
        assert_allclose(end, expected.end_logits[0], atol=1e-5)
        assert start.dtype == end.dtype == np.float32


def test_tags_and_answers_of_a_framework_are_those_of_its_logits(backend, tokenizer):
    settings = config(vocab_size=30522, pad_id=0, max_len=24, n_classes=5, labels=NAMES)
    reference, model = pair(backend, "BertForTokenClassification", settings)
    sentences = [["Owen", "went", "to", "Merrow"], ["!" * 30, "and", "so", "on"], []]
    alone = lambda model, ids: [model(row[None]).logits[0] for row in ids]  # noqa: E731
    found = predictions(backend).tag(model, sentences, tokenizer, batch_size=2)
    assert found == tag_words(alone, reference, sentences, tokenizer) and len({tag for row in found for tag in row}) > 1
    assert [len(row) for row in found] == [4, 4, 0]
    reference, model = pair(backend, "BertForQuestionAnswering", settings)

    def spans(model, windows):
        outputs = [model(i[None], segments=s[None]) for i, s in zip(windows.ids, windows.segments, strict=True)]
        return [o.start_logits[0] for o in outputs], [o.end_logits[0] for o in outputs]

    questions, contexts = ["Who took it?", "Why?"], [CONTEXT, ""]
    expected = find_spans(spans, reference, questions, contexts, tokenizer, max_answer=3, n_best=2)
    options = {"max_answer": 3, "n_best": 2, "batch_size": 2}
    found = predictions(backend).find_answers(model, questions, contexts, tokenizer, **options)
    for ours, right in zip(found, expected, strict=True):
        assert [span[:2] for span in ours.spans] == [span[:2] for span in right.spans]
        assert_allclose(ours.null, right.null, atol=1e-5)
    answers = predictions(backend).answer(model, questions, contexts, tokenizer, max_answer=3)
    assert answers[0].text == CONTEXT[slice(*expected[0].spans[0][:2])] and answers[1] == Answer("", 0, 0, math.inf)
    assert predictions(backend).answer(model, "Who?", CONTEXT, tokenizer, threshold=-math.inf)[0].text == ""


def test_tags_are_named_and_cut_as_the_caller_says(backend, tokenizer):
    settings = config(vocab_size=30522, pad_id=0, n_classes=5, labels=NAMES)
    _, model = pair(backend, "BertForTokenClassification", settings)
    sentences = [["Owen", "saw", "Merrow", "and", "so", "on"]] * 2
    usual = predictions(backend).tag(model, sentences, tokenizer)
    renamed = predictions(backend).tag(model, sentences, tokenizer, names=[f"X-{name}" for name in NAMES])
    assert renamed == [[f"X-{tag}" for tag in tags] for tags in usual]
    with pytest.raises(ValueError, match="max_len is 33, but the model reads 32"):
        predictions(backend).tag(model, sentences, tokenizer, max_len=33)


def test_a_model_in_training_is_asked_without_dropout_and_goes_on_training(rng):
    reference, model = pair(TORCH, "BertForTokenClassification", config(n_classes=5))
    ids = some_ids(rng, (7, 4))
    model.train()
    found = predictions(TORCH).token_logits(model, ids)
    assert_allclose(found[0], reference(ids[0][None]).logits[0], atol=1e-5)
    assert model.training and all(module.training for module in model.modules())


def test_half_precision_and_compiled(rng):
    reference, model = pair(TORCH, "BertForQuestionAnswering", config())
    windows = SimpleNamespace(ids=some_ids(rng, (7, 4)), segments=[np.zeros(7, int), np.zeros(4, int)])
    expected = predictions(TORCH).span_logits(model, windows)
    compiled = predictions(TORCH).span_logits(torch.compile(model, backend="eager"), windows)
    half = predictions(TORCH).span_logits(model.to(torch.bfloat16), windows)
    for ours, other, right in zip(compiled, half, expected, strict=True):
        for k in range(2):
            assert_allclose(ours[k], right[k], atol=1e-5)
            assert other[k].dtype == np.float32
            assert_allclose(other[k], right[k], atol=0.3, rtol=0.1)
    _, model = pair(TENSORFLOW, "BertForTokenClassification", config(n_classes=5), dtype="mixed_bfloat16")
    found = predictions(TENSORFLOW).token_logits(model, windows.ids)
    assert found[0].dtype == np.float32 and found[0].shape == (7, 5) and np.isfinite(found[0]).all()


def by_id(model, sequences):
    """Token logits that name the class of an id: id % 5."""
    return [np.eye(5)[ids % 5] for ids in sequences]


MODEL = SimpleNamespace(config=SimpleNamespace(labels=NAMES, max_len=16, n_classes=5))
ODD = ["", "a", "\u200b", "x" * 10_000, "!" * 50, "[SEP]", "人工智能", "서울", "été", "\ufffd"]


@pytest.mark.parametrize("max_len", [3, 4, 9, 16, None])
def test_every_word_has_its_tag_however_long_the_sentence(tokenizer, max_len):
    sentences = [ODD * 3, [], ["one"], ["two", "words"] * 40, [""] * 5, ["\u200b"] * 40 + ["end"]]
    longest = []

    def logits(model, sequences):
        longest.extend(map(len, sequences))
        for ids in sequences:
            assert ids[0] == tokenizer.cls_id and ids[-1] == tokenizer.sep_id
        return by_id(model, sequences)

    found = tag_words(logits, MODEL, sentences, tokenizer, max_len=max_len)
    whole = encode_words(sentences, tokenizer)
    for tags, ids, firsts in zip(found, whole.ids, whole.firsts, strict=True):
        assert tags == [NAMES[ids[first] % 5] if first >= 0 else "O" for first in firsts]
    assert max(longest) <= (max_len or 16)
    if max_len == 16:  # no part is shorter than it need be: 80 words in 14 + 14 + 14 + 14 + 14 + 10
        assert sorted(longest).count(16) >= 5


def test_a_part_reads_what_follows_its_words(tokenizer):
    seen = []
    logits = lambda model, sequences: seen.extend(map(tokenizer.tokens, sequences)) or by_id(model, sequences)  # noqa: E731
    tag_words(logits, MODEL, [["a", "b", "snowboarding", "c"]], tokenizer, max_len=5)
    assert seen == [["[CLS]", "a", "b", "snow", "[SEP]"], ["[CLS]", "c", "[SEP]"]]


def at(place):
    """Span logits that point at one token of each window."""

    def logits(model, windows):
        rows = [-np.abs(np.arange(len(ids)) - place).astype(float) for ids in windows.ids]
        return rows, rows

    return logits


@pytest.mark.parametrize("context", ["", " \n", "x" * 10_000, "word " * 400, "人工智能", "[SEP] [CLS]", "\u200b"])
def test_any_context_has_an_answer_or_none(tokenizer, context):
    (found,) = find_spans(at(4), MODEL, "who?", context, tokenizer)
    (answer,) = as_answers([found], context)
    if context.strip(" \n\u200b"):
        assert answer.text and context[answer.start : answer.end] == answer.text
    else:
        assert answer == ("", 0, 0, math.inf)
    assert as_answers([found], context, -math.inf)[0][:3] == ("", 0, 0)


def test_windows_fit_the_model(tokenizer):
    lengths = []

    def logits(model, windows):
        lengths.extend(map(len, windows.ids))
        return at(0)(model, windows)

    find_spans(logits, MODEL, "who?", CONTEXT, tokenizer)
    assert max(lengths) == 16 and len(lengths) > 2
    lengths.clear()
    find_spans(logits, SimpleNamespace(config=None), "who?", CONTEXT, tokenizer, max_len=20, stride=5)
    assert max(lengths) == 20


def test_the_threshold_decides(tokenizer):
    found = find_spans(at(5), MODEL, ["who?"], ["In Hull it rained."], tokenizer)
    (answer,) = as_answers(found, ["In Hull it rained."])
    assert answer == Answer("Hull", 3, 7, -10.0)
    assert as_answers(found, ["In Hull it rained."], -10.0)[0].text == "Hull"
    assert as_answers(found, ["In Hull it rained."], -10.5) == [Answer("", 0, 0, -10.0)]


def test_starts_ends_and_the_settings_of_the_search(tokenizer):
    def logits(model, windows):
        return tuple(at(place)(model, windows)[0] for place in (5, 6))

    context = "In Hull it rained."
    find = lambda **options: find_spans(logits, MODEL, "who?", context, tokenizer, **options)  # noqa: E731
    assert as_answers(find(), context)[0].text == "Hull it" and len(find()[0].spans) == 5
    assert as_answers(find(max_answer=1), context)[0].text in ("Hull", "it") and len(find(n_best=2)[0].spans) == 2


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"sentences": "a b"}, TypeError, "many lists of words, not one str"),
        ({"sentences": ["a b"]}, TypeError, "is one str; give its words"),
        ({"sentences": []}, ValueError, "sentences is empty"),
        ({"names": ["O"]}, ValueError, "there are 1 names of classes, but the model has 5"),
        ({"max_len": 17}, ValueError, "max_len is 17, but the model reads 16 tokens at most"),
        ({"max_len": 2}, ValueError, "max_len must be 3 or more"),
    ],
)
def test_what_tagging_refuses(tokenizer, options, error, message):
    with pytest.raises(error, match=message):
        tag_words(by_id, MODEL, **{"sentences": [["a"]], "tokenizer": tokenizer, **options})


def test_classes_without_names():
    assert names_of(MODEL) == list(NAMES) and names_of(MODEL, ["a"]) == ["a"]
    with pytest.raises(ValueError, match="the classes have no names: give `names`"):
        names_of(SimpleNamespace(config=BertConfig()))


def test_what_answering_refuses(tokenizer):
    for arguments, error, message in (
        ((["a", "b"], ["c"]), ValueError, "2 questions, 1 contexts"),
        (("who " * 20, CONTEXT), ValueError, "the first text of pair 0 and the special tokens take 23 tokens"),
        ((["a\ud83d"], ["c"]), ValueError, "half of a character"),
        (([], []), ValueError, "texts is empty"),
        ((3, "c"), TypeError, "questions must be a str or a sequence"),
    ):
        with pytest.raises(error, match=message):
            find_spans(at(0), MODEL, *arguments, tokenizer)


def test_models_for_other_tasks(backend, tokenizer):
    settings = config(vocab_size=30522, pad_id=0, labels=("a", "b"))
    own = predictions(backend)
    windows = encode_questions("who?", "Hull", tokenizer)
    for name in ("BertModel", "BertForSequenceClassification", "BertForQuestionAnswering"):
        with pytest.raises(TypeError, match="does not label tokens: give a BertForTokenClassification"):
            own.tag(backend.make(name, settings), [["a"]], tokenizer, names=["a", "b"])
    for name in ("BertModel", "BertForTokenClassification"):
        with pytest.raises(TypeError, match="does not find answers: give a BertForQuestionAnswering"):
            own.span_logits(backend.make(name, settings), windows)


def test_what_is_trained_comes_back_as_answers_and_tags(backend, tokenizer):
    """The batches of both tasks feed the one loop, and what it has learned comes back as texts and as tags."""
    parts = (importlib.import_module(f"course_lib.{backend.name}.training.{name}") for name in ("loop", "objectives"))
    loop, objectives = parts
    places = ["Hull", "York", "Leeds", "Bath"]
    contexts = [f"{name} slept in {place}." for name in ("Ann", "Bob") for place in places]
    spans = [(context.index("in ") + 3, len(context) - 1) for context in contexts]
    settings = config(vocab_size=30522, pad_id=0, d_model=24, dropout=0.0, init_std=0.02, n_classes=5, labels=NAMES)
    windows = encode_questions(["where?"] * 8, contexts, tokenizer, spans)
    model = backend.make("BertForQuestionAnswering", settings)
    loop.train(model, SpanBatches(windows, 4), objectives.spans(), rate=1e-2, epochs=12, progress=False)
    found = predictions(backend).answer(model, ["where?"] * 8, contexts, tokenizer)
    assert [(answer.start, answer.end) for answer in found] == spans and found[0].text == "Hull"

    sentences = [context[:-1].split() for context in contexts]
    tags = [["B-PER", "O", "O", "B-LOC"]] * 8
    encoded = encode_words(sentences, tokenizer)
    labels = token_labels(encoded, tags, NAMES)
    model = backend.make("BertForTokenClassification", settings)
    batches = TokenBatches(encoded.ids, labels, 4)
    loop.train(model, batches, objectives.token_labels(), rate=1e-2, epochs=8, progress=False)
    assert predictions(backend).tag(model, sentences, tokenizer) == tags
