"""Our models are PyTorch models: whatever PyTorch does with a module, it does with ours, and the numbers stay.

The models are random ones (`random_models.py`), with padding ids other than 0. Two of each kind are tried in the
ordinary suite; `--configurations 10` tries ten. Compilers run without their code generator, which takes most of the
time and knows nothing of us.
"""

import copy
import importlib
import io
import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import course_lib.numpy
import course_lib.torch as lib
from course_lib.batches.pairs import PairBatch
from course_lib.checkpoints.weights import CheckpointError
from course_lib.models.albert import AlbertConfig
from course_lib.models.bert import BertConfig
from course_lib.models.blocks import BlockConfig, EncoderOutput
from course_lib.models.cnn import CNNConfig
from course_lib.models.decision import DecisionConfig
from course_lib.models.distilbert import DistilBertConfig
from course_lib.models.gpt import GPTConfig
from course_lib.models.roberta import RobertaConfig
from course_lib.models.seq2seq import Seq2SeqConfig
from course_lib.models.t5 import T5Config
from course_lib.models.transformer import TransformerConfig
from course_lib.models.vit import ViTConfig
from course_lib.models.whisper import WhisperConfig
from course_lib.torch.training import classifier as classifier_training
from course_lib.torch.training import translation
from course_lib.torch.training.loader import data_loader
from tests.support.random_models import PUBLIC

BLOCK = BlockConfig(6, 3, 8)
CLASSES = {"encoder": "Encoder", "transformer": "Transformer", "bert": "BertForSequenceClassification"}
CLASSES |= {"roberta": "RobertaForSequenceClassification", "distilbert": "DistilBertForSequenceClassification"}
CLASSES |= {"albert": "AlbertForSequenceClassification", "gpt": "GPT", "t5": "T5", "decision": "DecisionTransformer"}
CLASSES["whisper"] = "Whisper"
ANY, LENGTHS_LAST = torch.export.Dim.DYNAMIC, ("mask", "features")
SEQ2SEQ = Seq2SeqConfig(9, 11, d_model=5, d_hidden=6, pad_id=4)
TRANSLATOR = TransformerConfig(9, 11, d_model=8, n_layers=2, n_heads=2, d_ff=12, max_len=9, pre_norm=True, pad_id=4)
WHISPER = WhisperConfig(9, 5, 6, 1, 1, 3, 2, 8, 9, 4, 7, pad_id=4, start_id=1, end_id=2)
SOURCE, TARGET = torch.tensor([[1, 2, 3], [5, 6, 4]]), torch.tensor([[1, 2], [3, 8]])

# A rounding to a mantissa of p bits errs by 2^-(p+1) of the number at most: 2^-8 in bfloat16, 2^-11 in float16. A layer
# rounds some ten times, its residuals and norms keep the errors from growing, and there are six layers at most; the
# sum of 60 such errors of random sign is about 8 of them, and one output of thousands may get twice that.
BOUND = {torch.bfloat16: 16 * 2**-8, torch.float16: 16 * 2**-11}


def build(case, seed=0, **changes):
    torch.manual_seed(seed)
    return getattr(lib, CLASSES[case.kind])(**case.arguments, **changes).eval()


def inputs(case, dtype=torch.float32):
    tensors = {name: torch.as_tensor(value) for name, value in case.inputs.items()}
    return {name: value.to(dtype) if value.is_floating_point() else value for name, value in tensors.items()}


def resized(case, rows, length):
    """The inputs of a case for another batch and other lengths: what stands there, again and again."""
    found = {}
    for name, value in inputs(case).items():
        axis = value.ndim - 1 if name in LENGTHS_LAST else 1
        take = torch.arange(length + (name == "target_ids")) % value.shape[axis]
        found[name] = value[torch.arange(rows) % len(value)].index_select(axis, take)
    return found


def axes_that_vary(tensors):
    return {name: {0: ANY, (value.ndim - 1 if name in LENGTHS_LAST else 1): ANY} for name, value in tensors.items()}


def output(model, tensors):
    with torch.no_grad():
        return model(**tensors)[0]


def same(actual, expected, rtol=1e-4, atol=2e-6):
    assert_allclose(actual.numpy(), expected.numpy(), rtol=rtol, atol=atol)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # PyTorch's own, from its compiler
def test_compiled_whole_for_any_batch_and_length(random_case):
    """Without a break in the graph; from the second call on, with lengths that it does not know."""
    model = build(random_case, attention=(lib.attention, lib.fused_attention)[random_case.number % 2])
    torch.compiler.reset()
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    for tensors in (inputs(random_case), resized(random_case, 5, 9), resized(random_case, 3, 7)):
        same(output(compiled, tensors), output(model, tensors))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore:The given buffer is not writable")  # torch.export.load's own, before 2.13
def test_exported_for_any_batch_and_length_saved_and_opened(random_case):
    model, example = build(random_case), resized(random_case, 5, 7)
    program = torch.export.export(model, (), example, dynamic_shapes=axes_that_vary(example), strict=False)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    opened = torch.export.load(file).module()
    for tensors in (example, resized(random_case, 3, 9)):
        same(output(opened, tensors), output(model, tensors))
        assert type(opened(**tensors)) is type(model(**tensors))  # with its fields, those without a value included


@pytest.mark.parametrize("way", ["pickle", "torch.save", "deepcopy"])
def test_copied_whole(random_case, way):
    model = build(random_case)
    if way == "pickle":
        copied = pickle.loads(pickle.dumps(model))
    elif way == "deepcopy":
        copied = copy.deepcopy(model)
    else:
        file = io.BytesIO()
        torch.save(model, file)
        file.seek(0)
        copied = torch.load(file, weights_only=False)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1.1)  # a copy stands by itself
    same(output(copied, inputs(random_case)), output(build(random_case), inputs(random_case)))


@pytest.mark.parametrize("library", [course_lib.numpy, lib], ids=["numpy", "torch"])
def test_rotary_attention_is_copied_with_its_base(library):
    turned = library.rotary(library.fused_attention, 500.0)
    q = np.random.default_rng(0).normal(size=(2, 3, 4))
    q = q if library is course_lib.numpy else torch.tensor(q)
    usual = library.rotary(library.fused_attention)(q, q, q).output
    for copied in (pickle.loads(pickle.dumps(turned)), copy.deepcopy(turned)):
        assert_allclose(copied(q, q, q).output, turned(q, q, q).output)
        assert abs(copied(q, q, q).output - usual).max() > 1e-3


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_rotary_attention_is_compiled_and_exported_for_any_length():
    """Also with fewer queries than keys: the queries are the last ones, wherever that is."""
    model = lib.rotary(lib.attention)
    torch.compiler.reset()
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    for n_queries, n_keys in ((5, 5), (3, 7), (4, 9)):
        q, k = torch.randn(2, n_queries, 6), torch.randn(2, n_keys, 6)
        same(compiled(q, k, k).output, model(q, k, k).output)
    encoder = lib.Encoder(1, BlockConfig(6, 1, 8), attention=model).eval()
    program = torch.export.export(encoder, (torch.randn(3, 5, 6),), dynamic_shapes=({0: ANY, 1: ANY},))
    x = torch.randn(2, 8, 6)
    same(program.module()(x).last_hidden.detach(), encoder(x).last_hidden.detach())


@pytest.fixture
def poisoned(monkeypatch):
    """Memory without values holds NaN, so that whatever reads it is seen."""
    real = torch.empty_like
    monkeypatch.setattr(torch, "empty_like", lambda *args, **kwargs: _poison(real(*args, **kwargs)))


def _poison(tensor):
    return tensor.fill_(torch.nan) if tensor.is_floating_point() else tensor


@pytest.mark.parametrize("way", ["to_empty", "assign"])
def test_built_on_the_meta_device(random_case, poisoned, way):
    model, tensors = build(random_case), inputs(random_case)
    with torch.device("meta"):
        empty = build(random_case, seed=1)
    on_meta = {name: value.to("meta") for name, value in tensors.items()}
    assert empty(**on_meta)[0].shape == output(model, tensors).shape
    if way == "to_empty":
        empty.to_empty(device="cpu")
        empty.load_state_dict(model.state_dict())
    else:
        empty.load_state_dict(model.state_dict(), assign=True)
    same(output(empty, tensors), output(model, tensors))


def parts():
    """Every class of the package that is a module: what it is built from, and the inputs of a call."""
    x, times, states = torch.randn(2, 4, 6), torch.rand(2, 4), (torch.randn(2, 5), torch.randn(2, 5))
    sizes = {"vocab_size": 9, "d_model": 6, "n_layers": 1, "n_heads": 3, "d_ff": 8, "max_len": 5}
    config, albert = BertConfig(**sizes), AlbertConfig(**sizes, d_embedding=4)
    distilbert, roberta = DistilBertConfig(**sizes, sinusoidal=True), RobertaConfig(**sizes, pad_id=0)
    return {
        "AdditiveScore": ((6, 6), (x, x)),
        **{name: ((albert,), (SOURCE,)) for name in lib.__all__ if name.startswith("Albert")},
        **{name: ((distilbert,), (SOURCE,)) for name in lib.__all__ if name.startswith("DistilBert")},
        **{name: ((roberta,), (SOURCE,)) for name in lib.__all__ if name.startswith("Roberta")},
        "BertForMaskedLM": ((config,), (SOURCE,)),
        "BertForPreTraining": ((config,), (SOURCE,)),
        "BertForQuestionAnswering": ((config,), (SOURCE,)),
        "BertForSequenceClassification": ((config,), (SOURCE,)),
        "BertForTokenClassification": ((config,), (SOURCE,)),
        "BertModel": ((config,), (SOURCE,)),
        "CNN": ((CNNConfig((6, 9), 2, (4, 5)),), (torch.randn(3, 2, 6, 9),)),
        "DecisionTransformer": ((DecisionConfig(6, 6, 6, 1, 3, 8, 9),), (x, x, x[..., :1], torch.arange(4).tile(2, 1))),
        "Decoder": ((1, BLOCK), (x, x)),
        "DecoderLayer": ((BLOCK,), (x, x)),
        "DotScore": ((6, 6), (x, x)),
        "Encoder": ((1, BLOCK), (x,)),
        "EncoderLayer": ((BLOCK,), (x,)),
        "FeedForward": ((6, 8), (x,)),
        "GPT": ((GPTConfig(**sizes, pad_id=0),), (SOURCE,)),
        "GRUCell": ((6, 5), (x[:, 0], states[:1])),
        "GeneralScore": ((6, 6), (x, x)),
        "LSTMCell": ((6, 5), (x[:, 0], states)),
        "LearnedPositions": ((6, 9), (x,)),
        "MultiHeadAttention": ((6, 3), (x, x, x)),
        "RNN": ((6, 5), (x,)),
        "RNNCell": ((6, 5), (x[:, 0], states[:1])),
        "Seq2Seq": ((SEQ2SEQ,), (SOURCE, TARGET)),
        "RelativePositions": ((3, 8, 5), (x,)),
        "SinusoidalPositions": ((6, 9), (x,)),
        "T5": ((T5Config(9, 6, 1, 1, 3, 4, 8),), (SOURCE, TARGET)),
        "TimeModulation": ((6, 5, 2.0), (x, times)),
        "Transformer": ((TRANSLATOR,), (SOURCE, TARGET)),
        "ViT": ((ViTConfig((6, 9), 3, 2, 12, 1, 3, 10),), (torch.randn(3, 2, 6, 9),)),
        "Whisper": ((WHISPER,), (torch.randn(2, 5, 7), TARGET)),
    }


MODULES = sorted(
    name for name in lib.__all__ if isinstance(getattr(lib, name), type) and issubclass(getattr(lib, name), nn.Module)
)


@pytest.mark.parametrize("name", MODULES)
def test_every_module_may_be_built_on_the_meta_device_and_copied(name, poisoned):
    """A new module without an entry in `parts` fails here."""
    arguments, call = parts()[name]
    model = getattr(lib, name)(*arguments).eval()
    with torch.device("meta"):
        empty = getattr(lib, name)(*arguments).eval()
    empty.to_empty(device="cpu")
    empty.load_state_dict(model.state_dict())
    for other in (empty, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        with torch.no_grad():
            actual, expected = other(*call), model(*call)
        same(*(value[0] if isinstance(value, tuple) else value for value in (actual, expected)))


def test_tables_follow_the_module():
    positions = lib.SinusoidalPositions(6, 9)
    exact = torch.tensor(positions.compute())
    for dtype in (torch.bfloat16, torch.float64, torch.float32):  # not what the rounding before has left
        positions.to(dtype)
        assert positions.table.dtype == dtype
        same(positions.table.double(), exact.to(dtype).double(), rtol=0, atol=0)
    assert positions.to("meta").table.is_meta
    assert list(positions.state_dict()) == []
    assert "table" in dict(positions.named_buffers())


@pytest.mark.parametrize("dtype", BOUND, ids=str)
def test_half_precision(random_case, dtype):
    model, tensors = build(random_case), inputs(random_case)
    expected = output(model, tensors)
    half = copy.deepcopy(model).to(dtype)
    actual = output(half, inputs(random_case, dtype))
    assert actual.dtype == dtype
    with torch.autocast("cpu", dtype=dtype):
        under_autocast = output(model, tensors)
    size = expected.abs().max()
    for found in (actual, under_autocast):
        assert float((found.float() - expected).abs().max() / size) < BOUND[dtype]
    assert float((actual.float() - expected).abs().max()) > 0  # it did compute in less


@pytest.mark.parametrize("dtype", BOUND, ids=str)
def test_weights_of_half_precision_go_out_and_in(random_case, dtype):
    model = build(random_case).to(dtype)
    state = lib.get_state(model)
    assert {value.dtype for value in state.values()} == {np.dtype(np.float16 if dtype == torch.float16 else np.float32)}
    other = build(random_case, seed=1).to(dtype)
    lib.set_state(other, state)
    for name, weight in model.named_parameters():
        assert torch.equal(weight, other.get_parameter(name)), name


def test_set_state_takes_tensors_and_other_libraries_bfloat16():
    import ml_dtypes  # the bfloat16 of TensorFlow's arrays

    source, target = lib.FeedForward(4, 6), lib.FeedForward(4, 6)
    for state in (source.state_dict(), {k: v.astype(ml_dtypes.bfloat16) for k, v in lib.get_state(source).items()}):
        lib.set_state(target, state)
        same(target.linear1.weight.detach(), source.linear1.weight.detach(), rtol=2**-8)


DECODERS = {
    "Transformer": partial(lib.Transformer, TRANSLATOR),
    "additive GRU": partial(lib.Seq2Seq, replace(SEQ2SEQ, score="additive")),
    "general LSTM": partial(lib.Seq2Seq, replace(SEQ2SEQ, cell="lstm", score="general")),
    "plain RNN": partial(lib.Seq2Seq, replace(SEQ2SEQ, cell="rnn")),
}


@pytest.mark.parametrize("dtype", BOUND, ids=str)
@pytest.mark.parametrize("kind", DECODERS)
def test_decoding_in_half_precision(kind, dtype):
    torch.manual_seed(0)
    model = DECODERS[kind]().eval()
    half = copy.deepcopy(model).to(dtype)

    def logits(of):
        next_logits = of.next_logits(SOURCE)
        next_logits(TARGET[:, :1])
        next_logits.reorder([1, 0, 1])
        return next_logits(np.array([[3, 8], [1, 2], [3, 9]]))

    expected = logits(model)
    with torch.autocast("cpu", dtype=dtype):
        found = [logits(half), logits(model)]
    found.append(logits(half))
    for actual in found:
        assert actual.dtype == np.float32
        assert np.abs(actual - expected).max() / np.abs(expected).max() < BOUND[dtype]
    same(model(SOURCE, TARGET).logits.detach(), half(SOURCE, TARGET).logits.detach().float(), rtol=1, atol=0.1)


@pytest.mark.parametrize("dtype", BOUND, ids=str)
def test_the_loss_of_a_large_batch_in_half_precision(dtype):
    """15,000 tokens of a loss near 3 add up to more than float16 reaches, and to more than bfloat16 resolves."""
    torch.manual_seed(0)
    logits, labels = torch.randn(50, 300, 20), torch.randint(1, 20, (50, 300))
    expected = lib.cross_entropy(logits.to(dtype).double(), labels, smoothing=0.1)
    actual = lib.cross_entropy(logits.to(dtype), labels, smoothing=0.1)
    assert actual.loss.dtype == torch.float32
    assert_allclose([float(value) for value in actual], [float(value) for value in expected], rtol=1e-5)


@pytest.mark.parametrize("name, dtype", [("fused_attention", torch.float16), ("attention", torch.bfloat16)])
def test_products_above_the_range_of_float16(name, dtype):
    """What the docstring of `attention` promises of the others."""
    torch.manual_seed(0)
    q, k, v = (scale * torch.randn(2, 4, 16) for scale in (100, 100, 1))
    assert (q @ k.mT).abs().max() > torch.finfo(torch.float16).max
    q, k, v = q.to(dtype), k.to(dtype), v.to(dtype)
    expected = lib.attention(q.double(), k.double(), v.double()).output
    same(getattr(lib, name)(q, k, v).output.double(), expected, rtol=0, atol=2**-6)


@pytest.mark.parametrize("longest", [1.0, 50.0])
def test_times_keep_their_angles_in_half_precision(longest):
    torch.manual_seed(0)
    model = lib.TimeModulation(6, 16, longest).eval()
    x, times = torch.randn(2, 4, 6), 0.9 * longest * torch.rand(2, 4)
    expected = model(x, times).detach()
    actual = copy.deepcopy(model).to(torch.bfloat16)(x.bfloat16(), times).detach().float()
    assert float((actual - expected).abs().max() / expected.abs().max()) < 2**-6


def test_under_vmap(random_case):
    model, tensors = build(random_case), inputs(random_case)

    def of_one(row):
        return model(**{name: value[None] for name, value in row.items()})[0][0]

    with torch.no_grad():
        same(torch.vmap(of_one)(tensors), output(model, tensors))


def test_under_functional_call(random_case):
    model, other, tensors = build(random_case), build(random_case, seed=1), inputs(random_case)
    found = torch.func.functional_call(model, dict(other.named_parameters()), (), tensors)[0].detach()
    same(found, output(other, tensors))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_wrapped_models_keep_the_names_of_their_weights(random_case, tmp_path):
    model = build(random_case)
    state = lib.get_state(model)
    whole = torch.compile(model, backend="eager")
    part = copy.deepcopy(model)
    name, child = next(iter(part.named_children()))
    setattr(part, name, torch.compile(child, backend="eager"))
    for wrapped in (whole, part, nn.DataParallel(copy.deepcopy(model))):
        assert list(lib.get_state(wrapped)) == list(state)
        lib.set_state(wrapped, {name: value + 1 for name, value in state.items()})
        assert_allclose(lib.get_state(wrapped)[name := next(iter(state))], state[name] + 1)
    if random_case.kind in PUBLIC:
        lib.set_state(whole, state)
        opened = type(model).from_pretrained(whole.save_pretrained(tmp_path))
        same(output(opened, inputs(random_case)), output(build(random_case), inputs(random_case)))


def test_saved_and_reopened(random_case, tmp_path):
    model, other = build(random_case), build(random_case, seed=1)
    torch.save(model.state_dict(), tmp_path / "weights.pt")
    other.load_state_dict(torch.load(tmp_path / "weights.pt", weights_only=True))
    same(output(other, inputs(random_case)), output(model, inputs(random_case)))
    if random_case.kind in PUBLIC:
        opened = type(model).from_pretrained(model.save_pretrained(tmp_path / "checkpoint"))
        assert opened.config == model.config
        same(output(opened, inputs(random_case)), output(model, inputs(random_case)))


def test_a_padded_batch_is_its_rows_one_by_one(random_case):
    model, tensors = build(random_case), inputs(random_case)
    whole = output(model, tensors)
    for row in range(len(whole)):
        alone = {name: value[row : row + 1] for name, value in tensors.items()}
        real = slice(None)
        if random_case.kind == "encoder":
            real = alone["mask"][0, 0, 0]
            alone = {"x": alone["x"][:, real]}
        elif random_case.kind == "decision":
            real = alone.pop("real")[0]
            alone = {name: value[:, real] for name, value in alone.items()}
        else:
            pad_id = model.config.pad_id
            lengths = {name: int((ids != pad_id).sum()) for name, ids in alone.items() if name.endswith("ids")}
            if random_case.kind in ("transformer", "t5", "whisper"):  # of Whisper's sounds no part is hidden
                alone = {name: value[:, : lengths.get(name)] for name, value in alone.items()}
                real = slice(lengths["target_ids"])
            else:
                alone = {name: value[:, : lengths["ids"]] for name, value in alone.items() if name != "mask"}
                real = slice(lengths["ids"]) if random_case.kind == "gpt" else real  # logits of each token
        same(output(model, alone)[0], whole[row][real], atol=1e-5)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.filterwarnings("ignore:.torch.jit.trace")  # PyTorch 2.15
def test_traced_by_way_of_its_first_output(random_case):
    """`torch.jit.trace` takes no None among the outputs, which ours have: trace what is wanted of them.

    It keeps the lengths of its example, and warns of that; `torch.export` keeps them free.
    """
    model, tensors = build(random_case), inputs(random_case)

    class First(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *values):
            return self.model(**dict(zip(tensors, values, strict=True)))[0]

    traced = torch.jit.trace(First(), tuple(tensors.values()))
    same(traced(*tensors.values()).detach(), output(model, tensors))


@pytest.mark.parametrize("kind", [np.asarray, np.ndarray.tolist, lambda ids: ids.astype(np.uint8)])
def test_ids_may_be_arrays_and_lists(random_case, kind):
    if random_case.kind == "encoder":
        return
    model, arrays = build(random_case), random_case.inputs
    plain = {name: kind(value) if value.dtype.kind == "i" else value for name, value in arrays.items()}
    same(output(model, plain), output(model, inputs(random_case)))


def test_ids_may_be_read_backwards():
    """PyTorch has no negative strides, so an array such as ids[:, ::-1] has to be copied."""
    model = lib.Transformer(TRANSLATOR).eval()
    recurrent = lib.Seq2Seq(SEQ2SEQ)
    classifier = lib.BertForSequenceClassification(BertConfig(9, 8, 1, 2, 12, max_len=9, pad_id=4))
    source, target = SOURCE.numpy()[:, ::-1], np.array([[1, 2, 3], [3, 8, 1]])[:, ::-1]
    rows = np.array([0, 1])[::-1]
    calls = [
        lambda source, target, rows: model(source, target).logits,
        lambda source, target, rows: recurrent(source, target).logits,
        lambda source, target, rows: lib.cross_entropy(torch.ones(2, 3, 11), target, pad_id=4).loss,
        lambda source, target, rows: lib.padding_mask(source, 4),
        lambda source, target, rows: next(iter(data_loader([PairBatch(source, target, rows)]))).source,
        lambda source, target, rows: torch.tensor(list(translation.evaluate(model, [(source, target)]))),
        lambda source, target, rows: classifier_training.train_step(
            copy.deepcopy(classifier), torch.optim.SGD(classifier.parameters()), source, rows
        ),
    ]
    for of in (model, recurrent):

        def continued(source, target, rows, of=of):
            next_logits = of.next_logits(source)
            next_logits(target[:, :2])
            next_logits.reorder(rows)
            return torch.as_tensor(next_logits(target))

        calls.append(continued)
    for call in calls:
        torch.manual_seed(0)
        expected = call(source.copy(), target.copy(), rows.copy()).detach()
        torch.manual_seed(0)
        same(call(source, target, rows).detach(), expected)


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_batch_of_no_sequences(kind, bidirectional):
    x, mask = torch.zeros(0, 4, 3), torch.ones(0, 4, dtype=torch.bool)
    for given in (None, mask):
        found = [lib.RNN(3, 5, kind, bidirectional, run)(x, given) for run in (lib.run_unrolled, lib.run_fused)]
        shapes = [[part.shape for part in (output.outputs, *output.state)] for output in found]
        assert shapes[0] == shapes[1] and shapes[0][0] == (0, 4, 10 if bidirectional else 5)


@pytest.mark.parametrize("mode", [True, False])
def test_every_part_has_its_mode_again_after_an_evaluation(mode):
    """A part may be frozen, in evaluation mode, while the rest is trained."""
    config = BertConfig(9, 8, 2, 2, 12, max_len=9, pad_id=4)
    classifier, translator, recurrent = (
        lib.BertForSequenceClassification(config), lib.Transformer(TRANSLATOR), lib.Seq2Seq(SEQ2SEQ)
    )  # fmt: skip
    ids, pairs = list(SOURCE.numpy()), [(SOURCE.numpy(), TARGET.numpy())]
    for model, part, use in [
        (classifier, "bert", lambda: classifier_training.predict(classifier, ids)),
        (classifier.bert, "encoder", lambda: classifier_training.embed(classifier.bert, ids)),
        (translator, "encoder", lambda: translation.evaluate(translator, pairs)),
        (translator, "decoder", lambda: translator.next_logits(SOURCE)(TARGET)),
        (recurrent, "encoder", lambda: recurrent.next_logits(SOURCE)(TARGET)),
    ]:
        model.train(mode)
        getattr(model, part).train(not mode)
        before = [module.training for module in model.modules()]
        assert len(set(before)) == 2
        use()
        assert [module.training for module in model.modules()] == before


def test_decoding_does_not_visit_the_modules_of_a_model_in_evaluation_mode(monkeypatch):
    """It would do so for every token."""
    model = lib.Transformer(TRANSLATOR).eval()
    next_logits = model.next_logits(SOURCE)
    monkeypatch.setattr(nn.Module, "modules", None)
    monkeypatch.setattr(nn.Module, "train", None)
    next_logits(TARGET)


def test_a_text_of_padding_alone_is_embedded_as_zeros():
    model = lib.BertModel(BertConfig(9, 8, 1, 2, 12, max_len=9, pad_id=4))
    found = classifier_training.embed(model, [np.array([1, 2, 3]), np.array([4, 4])])
    assert not found[1].any() and found[0].all()


def test_weights_are_not_given_to_a_model_without_room():
    model = lib.FeedForward(4, 6)
    with torch.device("meta"):
        empty = lib.FeedForward(4, 6)
    with pytest.raises(CheckpointError, match=r"on the meta device.*to_empty"):
        lib.set_state(empty, lib.get_state(model))
    lib.set_state(empty.to_empty(device="cpu"), lib.get_state(model))
    same(empty.linear1.weight.detach(), model.linear1.weight.detach())


class Operations(TorchDispatchMode):
    """The names of what PyTorch computes meanwhile."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        self.names.add(function.name())
        return function(*arguments, **(keywords or {}))


def test_ids_are_looked_at_on_the_cpu_alone():
    """Reading them back from a device would make it wait; a graph has no values to look at."""
    model = lib.Transformer(TRANSLATOR, lib.fused_attention)
    with pytest.raises(ValueError, match="source_ids must lie in"):
        model(SOURCE + 9, TARGET)
    source, target = (SOURCE + 9).to("meta"), TARGET.to("meta")
    for call in (model.to("meta"), lib.Seq2Seq(Seq2SeqConfig(9, 11, 4, 6), run=lib.run_unrolled).to("meta")):
        with Operations() as operations:
            assert call(source, target)[0].is_meta
            lib.cross_entropy(torch.zeros(2, 2, 9, device="meta"), target)
        assert "aten::embedding" in operations.names
        assert not {"aten::min", "aten::max", "aten::aminmax", "aten::_local_scalar_dense"} & operations.names


def test_outputs_are_registered_once():
    import importlib

    from course_lib.torch import _export

    importlib.reload(_export)  # a second registration would raise
    leaves, spec = torch.utils._pytree.tree_flatten(EncoderOutput(torch.ones(1), None, None))
    assert torch.utils._pytree.treespec_loads(torch.utils._pytree.treespec_dumps(spec)) == spec


@pytest.mark.parametrize(("device", "found"), [("meta", "meta"), ("", "cpu")])
def test_new_tensors_land_on_the_device_of_the_kernel(monkeypatch, device, found):
    monkeypatch.setenv("COURSE_DEVICE", device)
    try:
        importlib.reload(lib)
        assert torch.empty(1).device.type == found
    finally:
        torch.set_default_device(None)
