"""The library on a CUDA GPU: the numbers of the processor, in training, decoding, half precision and compiled.

Skipped where there is no such GPU; needs no TensorFlow: `pytest tests/gpu`.
"""

import copy

import numpy as np
import pytest
import torch

import course_lib.torch as lib
from course_lib.batches.images import ImageBatch
from course_lib.batches.sounds import SoundBatch
from course_lib.batches.texts import Batch, TextBatch
from course_lib.decoding.search import beam_search, greedy
from course_lib.models.blocks import BlockConfig
from course_lib.models.vit import ViTConfig
from course_lib.torch import lora
from course_lib.torch.training import loop, objectives, transcription
from course_lib.torch.training.precision import mixed_precision
from tests.support.random_models import cases

DEVICE = "cuda"
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU is here")
CLASSES = {
    "encoder": lambda n_layers, config: lib.Encoder(n_layers, config),
    "transformer": lib.Transformer,
    "bert": lib.BertForSequenceClassification,
    "roberta": lib.RobertaForSequenceClassification,
    "distilbert": lib.DistilBertForSequenceClassification,
    "albert": lib.AlbertForSequenceClassification,
    "gpt": lib.GPT,
    "t5": lib.T5,
    "decision": lib.DecisionTransformer,
    "whisper": lib.Whisper,
}


@pytest.fixture(autouse=True)
def whole_float32():
    """Convolutions and recurrences take a shorter float32 (TF32) on a GPU otherwise."""
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield


CASES = pytest.mark.parametrize("case", cases(2), ids=repr)


def model_of(case):
    torch.manual_seed(case.number)
    return CLASSES[case.kind](**case.arguments).eval()


def inputs_of(case, device, dtype=torch.float32):
    tensors = {name: torch.from_numpy(np.asarray(value)).to(device) for name, value in case.inputs.items()}
    return {name: value.to(dtype) if value.is_floating_point() else value for name, value in tensors.items()}


def first(output):
    """The first array of an output."""
    if isinstance(output, torch.Tensor):
        return output
    return next(value for value in output if isinstance(value, torch.Tensor))


def results(model, inputs):
    """The output of a call, and the gradients of its squares, on the processor."""
    output = first(model(**inputs))
    model.zero_grad()
    output.float().square().mean().backward()
    slopes = {name: p.grad.float().cpu() for name, p in model.named_parameters() if p.grad is not None}
    return output.detach().float().cpu(), slopes


def assert_near(found, wanted, tolerance):
    assert torch.isfinite(found).all()
    assert (found - wanted).norm() <= tolerance * (wanted.norm() + 1e-3), float((found - wanted).norm())


@CASES
def test_outputs_and_gradients_are_those_of_the_processor(case):
    here = model_of(case)
    there = copy.deepcopy(here).to(DEVICE)
    (wanted, slopes), (found, others) = results(here, inputs_of(case, "cpu")), results(there, inputs_of(case, DEVICE))
    assert_near(found, wanted, 1e-4)
    assert others.keys() == slopes.keys()
    for name, value in slopes.items():
        assert_near(others[name], value, 1e-3)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@CASES
def test_half_precision(case, dtype):
    model = model_of(case)
    wanted = first(model(**inputs_of(case, "cpu")))
    found = first(copy.deepcopy(model).to(DEVICE).to(dtype)(**inputs_of(case, DEVICE, dtype)))
    assert found.dtype == dtype
    assert_near(found.detach().float().cpu(), wanted.detach(), 0.1)


@pytest.mark.parametrize("case", [case for case in cases(1) if case.kind in ("gpt", "t5", "whisper")], ids=repr)
def test_compiled(case):
    model = model_of(case).to(DEVICE)
    wanted, slopes = results(model, inputs_of(case, DEVICE))
    found, others = results(torch.compile(model), inputs_of(case, DEVICE))
    assert_near(found, wanted, 1e-4)
    for name, value in slopes.items():
        assert_near(others["_orig_mod." + name] if name not in others else others[name], value, 1e-3)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", ["fused_attention", "blockwise_attention"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_exact_attention(name, dtype, causal):
    torch.manual_seed(0)
    q, k, v, slope = (torch.randn(2, 4, 300, 32, device=DEVICE) for _ in range(4))
    mask = torch.rand(2, 1, 300, 300, device=DEVICE) < 0.9
    mask[..., 0] = True
    values = {}
    for function, kind in ((lib.attention, torch.float64), (getattr(lib, name), dtype)):
        inputs = [x.to(dtype).to(kind).requires_grad_() for x in (q, k, v)]
        output = function(*inputs, mask=mask, causal=causal).output
        values[function] = [output, *torch.autograd.grad(output, inputs, slope.to(kind))]
    for wanted, found in zip(*values.values(), strict=True):
        assert_near(found.double(), wanted, 2e-5 if dtype == torch.float32 else 2e-2)


def test_the_flash_kernel_takes_causal_attention_of_the_library():
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = (torch.randn(2, 4, 256, 64, device=DEVICE, dtype=torch.bfloat16) for _ in range(3))
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):  # which refuses what it cannot do
        found = lib.fused_attention(q, k, v, causal=True).output
    assert_near(found.float(), lib.attention(q.float(), k.float(), v.float(), causal=True).output, 2e-2)


def test_weights_that_fall_are_the_same_in_both_passes():
    """The slope of attention by blocks with dropout is that of the function which it computed: checked along a line."""
    torch.manual_seed(1)
    q, k, v = (torch.randn(1, 2, 200, 16, device=DEVICE, dtype=torch.float64) for _ in range(3))
    direction = torch.randn_like(v)

    def value(v):
        torch.manual_seed(7)
        return lib.blockwise_attention(q, k, v, dropout=0.3).output.square().sum()

    v.requires_grad_()
    (slope,) = torch.autograd.grad(value(v), v)
    step = 1e-5
    with torch.no_grad():
        numeric = (value(v + step * direction) - value(v - step * direction)) / (2 * step)
    assert float((slope * direction).sum()) == pytest.approx(float(numeric), rel=1e-5)


def texts(n=8, length=10):
    rng = np.random.default_rng(3)
    ids = rng.integers(2, 12, size=(n, length))
    ids[1, 6:] = 0
    return ids


def trainings():
    """name -> a model, its objective, and a batch of it."""
    by_kind = {case.kind: case for case in cases(1)}
    gpt, bert, whisper = (by_kind[kind].arguments["config"] for kind in ("gpt", "bert", "whisper"))
    sounds = np.random.default_rng(4).normal(size=(4, whisper.n_mels, 20)).astype(np.float32)
    targets = np.random.default_rng(5).integers(1, whisper.vocab_size, size=(4, 6))
    targets[targets == whisper.pad_id] = whisper.pad_id + 1
    ids = texts()
    vit = ViTConfig(8, 4, d_model=12, n_layers=1, n_heads=3, d_ff=20, n_classes=3)
    images = np.random.default_rng(6).normal(size=(8, 3, 8, 8)).astype(np.float32)
    return {
        "next_token": (lambda: lib.GPT(gpt), objectives.next_token(), Batch(ids, np.arange(8))),
        "classification": (
            lambda: lib.BertForSequenceClassification(bert),
            objectives.classification(),
            TextBatch(ids, np.zeros_like(ids), ids[:, 0] % 3),
        ),
        "transcription": (lambda: lib.Whisper(whisper), transcription.transcription(), SoundBatch(sounds, targets)),
        "images": (lambda: lib.ViT(vit), objectives.image_classification(), ImageBatch(images, ids[:, 0] % 3)),
    }


def train(name, device, **settings):
    build, objective, batch = trainings()[name]
    torch.manual_seed(2)
    model = build().to(device)
    settings = {"rate": 1e-3, "steps": 20, "progress": False, "checkpoint": None} | settings
    return loop.train(model, lambda epoch: [batch], objective, **settings), model


NAMES = ("next_token", "classification", "transcription", "images")


@pytest.mark.parametrize("name", NAMES)
def test_a_training_goes_as_on_the_processor(name):
    build, _, _ = trainings()[name]
    dropped = getattr(build().config, "dropout", 0.0)
    (here, _), (there, model) = train(name, "cpu"), train(name, DEVICE)
    assert next(model.parameters()).device.type == DEVICE and there.loss[-1] < there.loss[0] * 1.05
    if not dropped:
        np.testing.assert_allclose(there.loss, here.loss, atol=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_a_training_in_mixed_precision_learns(name):
    with mixed_precision(DEVICE):
        history, _ = train(name, DEVICE, steps=60, rate=3e-3)
    assert np.mean(history.loss[-5:]) < np.mean(history.loss[:5])


def test_a_saved_training_goes_on_and_opens_on_the_processor(tmp_path):
    whole, model = train("images", DEVICE)
    train("images", DEVICE, steps=8, checkpoint=tmp_path)
    again, resumed = train("images", DEVICE, steps=20, checkpoint=tmp_path)
    np.testing.assert_allclose(again.loss, whole.loss, rtol=1e-3)
    for value, other in zip(lib.get_state(model).values(), lib.get_state(resumed).values(), strict=True):
        np.testing.assert_allclose(other, value, atol=1e-3)
    further, _ = train("images", "cpu", steps=22, checkpoint=tmp_path)
    assert len(further.loss) == 22


def test_search_finds_the_tokens_of_the_processor():
    case = next(case for case in cases(1) if case.kind == "t5")
    here, source = model_of(case), case.inputs["source_ids"]
    there, start = copy.deepcopy(here).to(DEVICE), np.full((len(source), 1), case.arguments["config"].start_id)
    for find in (
        lambda model: greedy(model.next_logits(source), start, None, 12),
        lambda model: beam_search(model.next_logits(source), start, None, 8, 3)[0],
    ):
        np.testing.assert_array_equal(np.asarray(find(there)), np.asarray(find(here)))


def test_the_translator_translates_as_on_the_processor():
    sentences = ["Hola, ¿cómo estás?", "Me gusta leer libros por la noche."]
    here, there = lib.load_translator(), lib.load_translator()
    there.model.to(DEVICE)
    assert there(sentences) == here(sentences)


@pytest.mark.parametrize("cell", [lib.GRUCell, lib.LSTMCell, lib.RNNCell])
def test_recurrence_by_the_cards_own_kernel(cell):
    torch.manual_seed(3)
    one, x = cell(5, 7), torch.randn(4, 9, 5)
    mask = torch.arange(9) < torch.tensor([9, 4, 1, 6])[:, None]
    wanted = lib.run_unrolled(one, x, mask)
    found = lib.run_fused(copy.deepcopy(one).to(DEVICE), x.to(DEVICE), mask.to(DEVICE))
    assert_near(first(found).detach().cpu(), first(wanted).detach(), 1e-4)


def test_linear_and_windowed_attention():
    torch.manual_seed(4)
    tensors = [torch.randn(1, 2, 130, 16) for _ in range(3)]
    for function in (lib.linear_attention, lib.windowed(32, (0,))):
        wanted = function(*tensors, causal=True).output
        found = function(*(x.to(DEVICE) for x in tensors), causal=True).output
        assert_near(found.cpu(), wanted, 1e-4)


def test_what_lora_adds_is_on_the_card_and_is_merged_there():
    torch.manual_seed(5)
    encoder = lib.Encoder(1, BlockConfig(12, 3, 20)).to(DEVICE)
    x = torch.randn(2, 5, 12, device=DEVICE)
    before = first(encoder(x)).detach()
    lora.add_lora(encoder, rank=2)
    for name, value in encoder.named_parameters():
        if "lora" in name:
            torch.nn.init.normal_(value)
    adapted = first(encoder(x)).detach()
    assert (adapted - before).abs().max() > 1e-2
    lora.merge_lora(encoder)
    assert_near(first(encoder(x)).detach(), adapted, 1e-5)
