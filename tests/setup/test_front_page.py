"""README, set-up page and the files beside them say what is there."""

import importlib.util
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

import course_lib

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", "CONTRIBUTING.md", "book/set-up.md"]


def targets():
    """Return the targets that `make help` lists."""
    listed = subprocess.check_output(["make", "--no-print-directory", "help"], cwd=ROOT, text=True)
    return [line.split()[0] for line in listed.splitlines()[1:]]


def test_make_help_lists_the_targets():
    expected = "help book archive pdf test mutation lab notebooks release grade bench lint clean"
    assert targets() == expected.split()


@pytest.mark.parametrize("page", PAGES)
def test_every_target_that_is_named_exists(page):
    named = re.findall(r"(?:^|`|\d )make ([a-z]+)", (ROOT / page).read_text(), flags=re.M)
    assert named
    assert set(named) <= set(targets())


@pytest.mark.parametrize("page", PAGES)
def test_every_link_to_a_file_leads_to_one(page):
    links = re.findall(r"\]\(([^)#\s]+)\)", (ROOT / page).read_text())
    missing = [link for link in links if "://" not in link and not (ROOT / page).parent.joinpath(link).exists()]
    assert missing == []


def test_the_picture_of_the_readme_is_that_of_the_welcome_page():
    spec = importlib.util.spec_from_file_location("draw_readme", ROOT / "book" / "draw_readme.py")
    drawing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(drawing)
    svg = drawing.README.read_text()
    assert svg == drawing.standalone(drawing.WELCOME.read_text()), "run python book/draw_readme.py"
    assert not re.search(r"var\(|currentColor", svg)  # as an image, it has no style sheet to ask


def test_version_and_licences_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == course_lib.__version__
    assert citation["license"][0] == "BSD-3-Clause"
    assert project["license"] == "BSD-3-Clause AND CC-BY-SA-3.0"  # of the code; of bert-en, which is in the package
    assert (ROOT / "LICENSE").read_text().startswith("BSD 3-Clause License")
    assert "Creative Commons Attribution 4.0 International Public License" in (ROOT / "LICENSE-text").read_text()
    assert project["license-files"] == ["LICENSE", "LICENSE-text"]
