"""The archive of the book is the book, in one folder, the same whenever it is made."""

import sys
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "book"))
import make_archive


@pytest.fixture
def site(tmp_path):
    (tmp_path / "html" / "notebooks").mkdir(parents=True)
    (tmp_path / "html" / "index.html").write_text("<p>welcome</p>" * 99)
    (tmp_path / "html" / "notebooks" / "ä.png").write_bytes(b"\x89PNG")
    return tmp_path / "html"


def test_an_archive_unpacks_to_the_book_in_one_folder(site, tmp_path):
    assert make_archive.write(site, tmp_path / "dist" / "course.zip") == 2
    with zipfile.ZipFile(tmp_path / "dist" / "course.zip") as packed:
        assert packed.testzip() is None
        assert packed.getinfo("course/index.html").compress_size < 99
        packed.extractall(tmp_path / "out")
    unpacked = {path.relative_to(tmp_path / "out" / "course"): path for path in (tmp_path / "out").rglob("*.*")}
    assert {name: path.read_bytes() for name, path in unpacked.items()} == {
        path.relative_to(site): path.read_bytes() for path in site.rglob("*.*")
    }
    assert [path.name for path in (tmp_path / "dist").iterdir()] == ["course.zip"]


def test_two_archives_of_one_book_are_equal(site, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        make_archive.write(site, tmp_path / name / "course.zip")
        (site / "index.html").touch()
    assert (tmp_path / "a" / "course.zip").read_bytes() == (tmp_path / "b" / "course.zip").read_bytes()


def test_without_a_book_the_error_says_how_to_build_it(tmp_path):
    with pytest.raises(FileNotFoundError, match="make book"):
        make_archive.write(tmp_path, tmp_path / "course.zip")
    assert not (tmp_path / "course.zip").exists()
