"""The small BERT that comes with the library: whole, alike in three frameworks, and as good as the page beside it."""

import shutil

import numpy as np
import pytest

import course_lib.torch
from course_lib.batches.next_sentence import encode_documents
from course_lib.data import DataError, cache, fetch, is_cached, verify, wikitext
from course_lib.data import __main__ as command
from course_lib.masks import padding_mask
from course_lib.pretrained import SHIPPED
from course_lib.text.sentences import sentences
from course_lib.text.wordpiece import WordPiece
from course_lib.torch.training import loop, objectives
from notebooks.experiments import _pretraining, pretrain_bert
from tests.support.backends import NUMPY, TENSORFLOW, TORCH

NAME = pretrain_bert.NAME


@pytest.fixture(scope="module")
def figures():
    """What was measured when it was made."""
    return pretrain_bert.EXPERIMENT.record.read()["free shipped 0"]


@pytest.fixture(scope="module")
def texts():
    """The articles that it never saw, as it reads them."""
    tokenizer = WordPiece.from_pretrained(NAME)
    documents = ["\n".join(article.paragraphs) for article in wikitext.load("test")]
    return _pretraining.Texts(tokenizer, [], [], encode_documents([sentences(text) for text in documents], tokenizer))


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A copy of what ships, which may be damaged."""
    monkeypatch.setattr(cache, "SHIPPED", tmp_path / "pretrained")
    return shutil.copytree(SHIPPED / NAME, tmp_path / "pretrained" / NAME)


@pytest.mark.parametrize("source", ["pypi", "canonical"])
def test_it_is_read_where_it_lies(tmp_path, monkeypatch, source):
    monkeypatch.setenv("COURSE_DATA_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("COURSE_DATA_SOURCE", source)
    assert is_cached(NAME) and fetch(NAME) == SHIPPED / NAME and verify(NAME) == []
    assert not (tmp_path / "cache").exists()


def test_it_fills_blanks_alike_in_every_framework(figures):
    tokenizer = WordPiece.from_pretrained(NAME)
    ids = tokenizer.encode(list(pretrain_bert.EXAMPLES)).ids
    found = []
    for backend in (NUMPY, TORCH, TENSORFLOW):
        model = backend.lib.BertForMaskedLM.from_pretrained(NAME)
        found.append(backend.call(model, ids, mask=padding_mask(ids)).logits)
    for logits in found[1:]:
        np.testing.assert_allclose(logits, found[0], atol=1e-3)
    for logits in found:
        best = tokenizer.tokens(logits[ids == tokenizer.mask_id].argmax(-1))
        assert list(best) == [said[0][0] for said in figures["examples"].values()]
    assert best[1] == "by", "... was directed by ..."


def test_its_loss_is_the_recorded_one_and_below_those_of_counts(figures, texts):
    model = course_lib.torch.BertForMaskedLM.from_pretrained(NAME, attention=course_lib.torch.fused_attention)
    found = loop.evaluate(model, _pretraining.measured_on(texts, texts.held_out), objectives.masked_lm())
    assert found.n_tokens == figures["blanks"]
    np.testing.assert_allclose([found.nll, found.accuracy], [figures["loss"], figures["right"]], atol=2e-3)
    assert found.nll < figures["neighbours"] < figures["unigram"] - 2


def test_the_page_beside_it_quotes_the_record(figures):
    page = (SHIPPED / NAME / "README.md").read_text(encoding="utf-8")
    assert page == pretrain_bert.README.format(name=NAME, **figures)


def test_it_stays_small():
    assert (SHIPPED / NAME / "model.safetensors").stat().st_size < 4e6


def test_what_is_not_whole_is_refused(copied):
    model = copied / "model.safetensors"
    model.write_bytes(model.read_bytes()[:-1])
    assert not is_cached(NAME)
    with pytest.raises(DataError, match=r"bert-en comes with the library, and not all .*; install the library again"):
        fetch(NAME)
    model.unlink()
    with pytest.raises(DataError, match="install the library again"):
        course_lib.torch.BertForMaskedLM.from_pretrained(NAME)


def test_what_was_changed_is_found_by_its_hash(copied, capsys):
    model = copied / "model.safetensors"
    model.write_bytes(model.read_bytes()[:-1] + b"?")
    assert command.main(["verify", NAME]) == 1
    said = capsys.readouterr().out
    assert "bert-en: damaged" in said and "Repair it: install the library again" in said
    assert command.main(["list"]) == 0
    assert "the library itself" in capsys.readouterr().out
