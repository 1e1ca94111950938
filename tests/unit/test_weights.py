"""course_lib.checkpoints.weights: the rename table in both directions, strict matching, files."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from safetensors import serialize_file
from safetensors.numpy import save_file

import course_lib
from course_lib.checkpoints.weights import CheckpointError, match, read_checkpoint, write_checkpoint
from course_lib.models.bert import BERT, RENAMES

# written out from the names of a real file, not from the table
PAIRS = {
    "bert.embeddings.word_embeddings.weight": "embeddings.token.weight",
    "bert.embeddings.position_embeddings.weight": "embeddings.position.weight",
    "bert.embeddings.token_type_embeddings.weight": "embeddings.segment.weight",
    "bert.embeddings.LayerNorm.weight": "embeddings.norm.weight",
    "bert.embeddings.LayerNorm.bias": "embeddings.norm.bias",
    "bert.encoder.layer.11.attention.self.query.weight": "encoder.layers.11.attention.q_proj.weight",
    "bert.encoder.layer.3.attention.self.key.bias": "encoder.layers.3.attention.k_proj.bias",
    "bert.encoder.layer.0.attention.self.value.weight": "encoder.layers.0.attention.v_proj.weight",
    "bert.encoder.layer.0.attention.output.dense.weight": "encoder.layers.0.attention.out_proj.weight",
    "bert.encoder.layer.0.attention.output.LayerNorm.weight": "encoder.layers.0.norm1.weight",
    "bert.encoder.layer.0.intermediate.dense.bias": "encoder.layers.0.feed_forward.linear1.bias",
    "bert.encoder.layer.0.output.dense.weight": "encoder.layers.0.feed_forward.linear2.weight",
    "bert.encoder.layer.0.output.LayerNorm.bias": "encoder.layers.0.norm2.bias",
    "bert.pooler.dense.weight": "pooler.weight",
    "cls.predictions.transform.dense.weight": "head.transform.weight",
    "cls.predictions.transform.LayerNorm.bias": "head.norm.bias",
    "cls.predictions.bias": "head.bias",
    "cls.seq_relationship.weight": "next_sentence.weight",
    "cls.seq_relationship.bias": "next_sentence.bias",
    "classifier.weight": "classifier.weight",
    "classifier.bias": "classifier.bias",
    "qa_outputs.weight": "qa_outputs.weight",
}


def numbered(names):
    return {name: np.full(2, float(i)) for i, name in enumerate(names)}


def assert_same(one, two):
    assert one.keys() == two.keys()
    for name, value in one.items():
        assert_allclose(two[name], value)


def test_our_names():
    state = numbered(PAIRS)
    assert_same(BERT.names.ours(state), {PAIRS[name]: value for name, value in state.items()})


def test_to_hugging_face_is_the_inverse():
    state = numbered(PAIRS)
    assert_same(BERT.names.theirs(BERT.names.ours(state), headed=True), state)
    ours = {f"bert.{name}": value for name, value in BERT.names.ours(state).items()}
    assert_same(BERT.names.theirs(ours, headed=True), state)


def test_a_bare_encoder_has_no_prefix():
    state = {name.removeprefix("bert."): value for name, value in numbered(PAIRS).items() if name.startswith("bert.")}
    assert_same(BERT.names.theirs(BERT.names.ours(state)), state)


def test_old_names_of_gain_and_shift():
    state = {"bert.embeddings.LayerNorm.gamma": np.ones(2), "bert.embeddings.LayerNorm.beta": np.zeros(2)}
    renamed = BERT.names.ours(state)
    assert_allclose(renamed["embeddings.norm.weight"], 1.0)
    assert_allclose(renamed["embeddings.norm.bias"], 0.0, atol=1e-15)


def test_dropped_on_purpose():
    dropped = [
        "bert.embeddings.position_ids",
        "cls.predictions.decoder.weight",
        "cls.predictions.decoder.bias",
    ]
    assert BERT.names.ours(numbered(dropped)) == {}
    assert sum(ours is None for ours in RENAMES.values()) == 2


def test_no_two_names_become_one():
    targets = [ours for ours in RENAMES.values() if ours is not None]
    assert len(set(targets)) == len(targets)


def test_unknown_names_are_listed_five_at_most():
    with pytest.raises(CheckpointError, match="not a BERT's: wte.weight$"):
        BERT.names.ours(numbered(["wte.weight"]), BERT.name)
    with pytest.raises(CheckpointError, match="h.0.w, h.1.w, h.2.w, h.3.w, h.4.w and 7 more$"):
        BERT.names.ours(numbered(f"h.{i}.w" for i in range(12)))
    with pytest.raises(CheckpointError, match="no Hugging Face name: extra.weight$"):
        BERT.names.theirs(numbered(["extra.weight"]))


@pytest.mark.parametrize("name", [
    "encoder.layer.x.attention.self.query.weight",
    "encoder.layer.0.attention.self.query.weight.scale",
    "encoder.layer.0.attention.self.query",
    "my.encoder.layer.0.attention.self.query.weight",
    "encoder-layer.0.attention.self.query.weight",
])  # fmt: skip
def test_names_must_fit_from_end_to_end(name):
    with pytest.raises(CheckpointError, match="not a BERT's"):
        BERT.names.ours(numbered([name]), BERT.name)


EXPECTED = {"encoder.weight": (2, 3), "encoder.bias": (2,), "pooler.weight": (2, 2)}


def fitting():
    return {name: np.zeros(shape) for name, shape in EXPECTED.items()}


def test_match_gives_the_weights_in_the_models_order():
    chosen = match(EXPECTED, dict(reversed(fitting().items())))
    assert list(chosen) == list(EXPECTED)


def test_match_names_every_kind_of_problem():
    state = fitting() | {"encoder.bias": np.zeros(3), "head.weight": np.zeros(1)}
    del state["pooler.weight"]
    with pytest.raises(CheckpointError) as caught:
        match(EXPECTED, state)
    text = str(caught.value)
    assert "missing: pooler.weight" in text
    assert "not used by the model: head.weight" in text
    assert "of the wrong shape: encoder.bias (is (3,), must be (2,))" in text


def test_match_with_new_and_unused_parts():
    state = fitting() | {"head.weight": np.zeros(1)}
    del state["pooler.weight"]
    assert set(match(EXPECTED, state, new=["pooler"], unused=["head."])) == {"encoder.weight", "encoder.bias"}
    assert set(match(EXPECTED, state, new="pooler", unused="head.")) == {"encoder.weight", "encoder.bias"}


def test_one_name_as_a_string_is_not_a_list_of_its_letters():
    with pytest.raises(CheckpointError, match="missing: encoder.weight, encoder.bias"):
        match(EXPECTED, {"pooler.weight": np.zeros((2, 2))}, new="pooler")  # "pooler" holds an "e"


def test_transposed_weights_are_refused():
    with pytest.raises(CheckpointError, match=r"encoder.weight \(is \(3, 2\), must be \(2, 3\)\)"):
        match(EXPECTED, fitting() | {"encoder.weight": np.zeros((3, 2))})


def test_write_and_read(tmp_path):
    state = {"a.weight": np.arange(6.0).reshape(2, 3).T, "b": np.zeros(0, np.float32)}  # .T: not contiguous
    folder = write_checkpoint(tmp_path / "new" / "folder", {"model_type": "bert"}, state)
    settings, loaded = read_checkpoint(folder)
    assert settings == {"model_type": "bert"}
    assert_same(loaded, state)
    assert loaded["a.weight"].dtype == np.float64 and loaded["b"].dtype == np.float32
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]


def test_the_file_says_whose_layout_it_has(tmp_path):
    folder = write_checkpoint(tmp_path, {}, {"a": np.zeros(1)})
    raw = (folder / "model.safetensors").read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    assert header["__metadata__"] == {"format": "pt"}


def test_a_failed_write_leaves_nothing_behind(tmp_path):
    write_checkpoint(tmp_path, {"version": 1}, {"a": np.zeros(1)})
    with pytest.raises(TypeError):
        write_checkpoint(tmp_path, {"version": {1, 2}}, {"a": np.ones(1)})  # a set is not JSON
    settings, state = read_checkpoint(tmp_path)
    assert settings == {"version": 1}
    assert_allclose(state["a"], 0.0, atol=1e-15)
    assert len(list(tmp_path.iterdir())) == 2


def write_raw(path, dtype, shape, data):
    """One weight "a" of any type that safetensors knows, beside one in float32."""
    header = {"a": {"dtype": dtype, "shape": shape, "data_offsets": [0, len(data)]}}
    header["b"] = {"dtype": "F32", "shape": [2], "data_offsets": [len(data), len(data) + 8]}
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data + np.array([5.0, 6.0], np.float32).tobytes())


ROOT = Path(course_lib.__file__).parents[1]

# of each value the two bytes of bfloat16, written out: 1 sign bit, 8 of the exponent, 7 of the fraction
BFLOAT16 = {
    1.0: 0x3F80, -2.0: 0xC000, 0.15625: 0x3E20, 3.140625: 0x4049, 2.0**-126: 0x0080, 2.0**-133: 0x0001,
    3.3895313892515355e38: 0x7F7F, float("inf"): 0x7F80,
}  # fmt: skip


def test_bfloat16_is_read_where_nothing_knows_the_type(tmp_path):
    """In a process that can import neither TensorFlow nor the package that would teach NumPy the type."""
    halves = np.array(list(BFLOAT16.values()), dtype="<u2")
    write_raw(tmp_path / "model.safetensors", "BF16", [2, 4], halves.tobytes())
    (tmp_path / "config.json").write_text("{}")
    code = (
        "import sys\n"
        "for name in ('ml_dtypes', 'tensorflow', 'torch', 'jax'): sys.modules[name] = None\n"
        "from course_lib.checkpoints.weights import read_checkpoint\n"
        f"state = read_checkpoint({str(tmp_path)!r})[1]\n"
        "print(state['a'].dtype, state['a'].shape, state['a'].ravel().tolist(), state['b'].tolist())\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert run.stdout == f"float32 (2, 4) {[float(value) for value in BFLOAT16]} [5.0, 6.0]\n", run.stderr


@pytest.mark.parametrize(("dtype", "kind"), [("F16", "<f2"), ("F64", "<f8"), ("F32", "<f4"), ("I64", "<i8")])
def test_types_that_are_read_as_they_are(tmp_path, dtype, kind):
    write_raw(tmp_path / "model.safetensors", dtype, [3], np.array([1, 2, 3], kind).tobytes())
    (tmp_path / "config.json").write_text("{}")
    state = read_checkpoint(tmp_path)[1]
    assert list(state) == ["a", "b"] and state["a"].dtype == np.dtype(kind)
    assert_allclose(state["a"], [1, 2, 3])


@pytest.mark.parametrize("dtype", ["I8", "U8", "F8_E4M3", "F8_E5M2"])
def test_quantised_weights_are_refused_by_name(tmp_path, dtype):
    write_raw(tmp_path / "model.safetensors", dtype, [3], bytes([1, 2, 3]))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match=rf"types that are not read: a \({dtype}\); float16, bfloat16, float32"):
        read_checkpoint(tmp_path)


SHARDED = {"a.weight": "model-00001-of-00002.safetensors", "a.bias": "model-00002-of-00002.safetensors"}


def sharded(folder, places=SHARDED):
    """A checkpoint in two files, and an index with these places."""
    (folder / "config.json").write_text("{}")
    for number, (name, file) in enumerate(SHARDED.items()):
        save_file({name: np.full((2, 3), float(number))}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return folder


def test_a_checkpoint_in_several_files(tmp_path):
    state = read_checkpoint(sharded(tmp_path))[1]
    assert set(state) == set(SHARDED)
    assert_allclose(state["a.bias"], 1.0)
    write_checkpoint(tmp_path, {}, {"c": np.zeros(2)})
    assert set(read_checkpoint(tmp_path)[1]) == {"c"}, "what was saved last counts, the old parts are no longer"


@pytest.mark.parametrize(("places", "error", "message"), [
    ({"a.weight": "model-00003-of-00002.safetensors"}, FileNotFoundError, "holds no model-00003-of-00002.safetensors"),
    (SHARDED | {"c": SHARDED["a.bias"]}, CheckpointError, "lack weights: c$"),
    ({"a.weight": "../model.safetensors"}, CheckpointError, "not in its folder"),
    (None, CheckpointError, "does not say which file"),
    ({"a.weight": 3}, CheckpointError, "does not say which file"),
])  # fmt: skip
def test_an_index_that_does_not_fit_its_files(tmp_path, places, error, message):
    with pytest.raises(error, match=message):
        read_checkpoint(sharded(tmp_path, places))


def test_a_part_that_is_damaged_is_named(tmp_path):
    path = sharded(tmp_path) / SHARDED["a.bias"]
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(CheckpointError, match=f"{path.name} is truncated"):
        read_checkpoint(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text("{")
    with pytest.raises(CheckpointError, match="index.json is not a valid JSON file"):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "pytorch_model-00001-of-00002.bin", "model.pt"])
def test_a_pickle_is_not_opened_and_the_reason_given(tmp_path, name):
    marker = tmp_path / "opened"
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / name).write_bytes(f"cposix\nsystem\n(Vtouch {marker}\ntR.".encode())  # what a pickle may do
    with pytest.raises(FileNotFoundError, match=f"holds no model.safetensors.* Its {name} .*runs.*save_pretrained"):
        read_checkpoint(tmp_path)
    assert not marker.exists()


def test_places_that_are_no_checkpoint(tmp_path):
    (tmp_path / "file").touch()
    for place, message in (("file", "is a file; give the folder"), (".", "holds no config.json"), ("x", "config.json")):
        with pytest.raises(FileNotFoundError, match=message):
            read_checkpoint(tmp_path / place)


def test_a_header_that_is_too_long_for_its_file(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    serialize_file({}, tmp_path / "model.safetensors")
    assert read_checkpoint(tmp_path) == ({}, {})
    (tmp_path / "model.safetensors").write_bytes((10**6).to_bytes(8, "little") + b"{}")
    with pytest.raises(CheckpointError, match="is truncated or not a safetensors file"):
        read_checkpoint(tmp_path)


def test_a_part_of_a_name_ends_where_the_name_has_a_dot():
    """Layer 1 is none of the layers 10 and 11, and a letter is no part."""
    expected = {f"encoder.layers.{n}.norm.weight": (1,) for n in (1, 10, 11)}
    with pytest.raises(CheckpointError, match="missing: encoder.layers.10.norm.weight, encoder.layers.11.norm.weight$"):
        match(expected, {}, new=["encoder.layers.1"])
    for part in ("e", "encoder.lay", "encoder.layers.1.norm.weigh"):
        with pytest.raises(CheckpointError, match="missing: encoder.layers.1.norm.weight"):
            match(expected, {}, new=part)
        with pytest.raises(CheckpointError, match="not used by the model: encoder.layers.1.norm.weight"):
            match({}, dict.fromkeys(expected, np.zeros(1)), unused=part)
    for part in ("encoder", "encoder.", "encoder.layers", ""):
        assert match(expected, {}, new=part) == match({}, dict.fromkeys(expected, np.zeros(1)), unused=part) == {}
    assert match({"head": (1,)}, {}, new="head") == {}


def test_two_names_of_one_weight_are_refused():
    for state in (["bert.pooler.dense.weight", "pooler.dense.weight"],
                  ["embeddings.LayerNorm.gamma", "embeddings.LayerNorm.weight"]):  # fmt: skip
        with pytest.raises(CheckpointError, match=f"two names for one weight: {state[0]} and {state[1]}"):
            BERT.names.ours(numbered(state))


def test_a_number_keeps_its_shape(tmp_path):
    write_checkpoint(tmp_path, {}, {"a": np.float32(3), "b": np.zeros((0, 2)), "c": np.ones((2, 3)).T})
    assert {name: value.shape for name, value in read_checkpoint(tmp_path)[1].items()} == {
        "a": (), "b": (0, 2), "c": (3, 2),
    }  # fmt: skip


def test_a_byte_order_mark_is_no_part_of_the_settings(tmp_path):
    write_checkpoint(tmp_path, {}, {})
    (tmp_path / "config.json").write_text('{"a": 1}', encoding="utf-8-sig")
    assert read_checkpoint(tmp_path)[0] == {"a": 1}
