"""``.ci/setup``: it makes .venv once, uses our conda environment, and fails in one sentence that helps.

Each test runs the real script in a small checkout of its own, whose package is built by a back-end
that lies in the checkout, so that nothing is fetched from anywhere.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = "sh basename cat cksum dirname grep rm sed tail".split()
FOLDER = "мой курс, übung 注意"  # as people name theirs

PYPROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "attention-course"
version = "0"
dependencies = [{dependencies}]
[project.optional-dependencies]
torch = []
tensorflow = []
lectures = []
lab = []
book = []
test = []
"""

BACKEND = """\
import time
import zipfile
from pathlib import Path

NAME = "attention_course-0"


def build_editable(folder, config_settings=None, metadata_directory=None):
    if Path("wait").exists():
        Path("wait").unlink()
        time.sleep(600)
    if Path("break").exists():
        raise OSError(28, Path("break").read_text())
    wheel = f"{NAME}-py3-none-any.whl"
    requires = [line for line in Path("requires").read_text().splitlines() if line]
    with zipfile.ZipFile(Path(folder) / wheel, "w") as file:
        info = NAME + ".dist-info/"
        header = ["Metadata-Version: 2.1", "Name: attention-course", "Version: 0"]
        header += [f"Provides-Extra: {extra}" for extra in ("torch", "tensorflow", "lectures", "lab", "book", "test")]
        header += ["Requires-Dist: " + line for line in requires]
        file.writestr(info + "METADATA", "\\n".join(header) + "\\n")
        file.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        file.writestr("attention_course.pth", str(Path.cwd()))
        file.writestr(info + "RECORD", "")
    return wheel
"""


class Checkout:
    def __init__(self, folder):
        self.folder = folder
        self.environ = {
            "PATH": str(folder.parent / "bin"),
            "HOME": str(folder.parent),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_NO_CACHE_DIR": "1",
        }
        (folder / ".ci").mkdir(parents=True)
        (folder / "course_lib").mkdir()
        shutil.copy(ROOT / ".ci" / "setup", folder / ".ci")
        (folder / "course_lib" / "__init__.py").touch()
        (folder / "constraints.txt").touch()
        (folder / "backend.py").write_text(BACKEND)
        self.require()
        (folder.parent / "bin").mkdir()
        for tool in TOOLS:
            (folder.parent / "bin" / tool).symlink_to(shutil.which(tool))
        self.program("uname", "echo Linux")

    def require(self, *requirements):
        (self.folder / "requires").write_text("\n".join(requirements))
        quoted = ", ".join(f'"{requirement}"' for requirement in requirements)
        (self.folder / "pyproject.toml").write_text(PYPROJECT.format(dependencies=quoted))

    def program(self, name, text):
        path = self.folder.parent / "bin" / name
        path.write_text("#!/bin/sh\n" + text + "\n")
        path.chmod(0o755)

    def setup(self, *arguments, **environ):
        return subprocess.run(
            ["sh", ".ci/setup", *arguments],
            cwd=self.folder,
            env=self.environ | environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=3600,
        )

    def installs(self):
        """Run set-up with this Python and say whether it installed anything."""
        done = self.setup(PYTHON=sys.executable)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stderr == ""
        return "Installing the course" in done.stdout


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path / FOLDER)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A checkout whose .venv is there; making one takes seconds."""
    checkout = Checkout(tmp_path_factory.mktemp("shared") / FOLDER)
    assert checkout.installs()
    return checkout


@pytest.fixture
def prepared(shared):
    """The shared checkout just before its packages are installed."""
    shared.require()
    (shared.folder / "break").unlink(missing_ok=True)
    (shared.folder / ".venv" / ".installed").unlink(missing_ok=True)
    return shared


def advice(done):
    """Return the one sentence that a failed set-up ends in."""
    assert done.returncode == 1, done.stdout + done.stderr
    (sentence,) = done.stderr.strip().splitlines()
    assert sentence.endswith(".") and "Traceback" not in done.stdout + done.stderr
    return sentence


def test_no_python(checkout):
    needs = "This course needs Python 3.11, 3.12 or 3.13 (no Python was found): install one"
    assert advice(checkout.setup()).startswith(needs)


def test_pythons_that_are_too_old_or_too_new(checkout):
    checkout.program("python3.13", "echo 'pyenv: python3.13: command not found' >&2; exit 127")
    for name, version in {"python3": "3.8.18", "python": "3.14.0"}.items():
        checkout.program(name, f'case "$2" in *version_info*) exit 1 ;; *) echo {version} ;; esac')
    sentence = advice(checkout.setup())
    shim = f'{checkout.environ["PATH"]}/python3.13 does not run and says "pyenv: python3.13: command not found"'
    assert f"({shim}, python3 is 3.8.18, python is 3.14.0)" in sentence
    assert not (checkout.folder / ".venv").exists()


def test_a_chosen_python_that_is_a_shim_of_nothing_is_quoted(checkout):
    checkout.program("python3.12", "exit 0")  # there, but not asked for
    words = "\\npyenv: python3.13: command not found\\n\\nIt exists in: 3.13.1\\n"
    checkout.program("python3.13", f"printf '{words}' >&2; exit 127")
    sentence = advice(checkout.setup(PYTHON="python3.13"))
    assert 'python3.13 does not run and says "pyenv: python3.13: command not found"' in sentence
    assert "choose another with PYTHON=" in sentence and "`pyenv local VERSION`" in sentence


def test_a_chosen_python_that_is_not_there(checkout):
    checkout.program("python3.12", "exit 0")
    for wrong in ("python3.99", "cd"):
        assert advice(checkout.setup(PYTHON=wrong)).startswith(f"There is no program {wrong}: give PYTHON= ")


def test_a_chosen_python_that_is_a_folder(checkout):
    for wrong in ("/etc", ".", str(checkout.folder)):
        assert advice(checkout.setup(PYTHON=wrong)).startswith(f"{wrong} is a folder: give PYTHON= the path of")


def test_a_chosen_python_that_comes_too_late(shared):
    """.venv is there, made with another one."""
    shared.program("another", "echo /another/installation")
    done = shared.setup(PYTHON="another")
    assert done.returncode == 0 and "keeps its Python 3." in done.stderr
    assert "delete it to have it made with another." in done.stderr
    assert shared.setup(PYTHON=sys.executable).stderr == ""


def test_a_chosen_python_in_a_folder_with_a_space(checkout):
    (checkout.folder / "my pythons").mkdir()
    python = checkout.folder / "my pythons" / "python"
    python.write_text('#!/bin/sh\ncase "$2" in *version_info*) exit 1 ;; *) echo 3.8.18 ;; esac\n')
    python.chmod(0o755)
    assert f"({python} is 3.8.18)" in advice(checkout.setup(PYTHON=str(python)))


def test_a_python_without_venv(checkout):
    checkout.program("python3", 'case "$2" in *ensurepip*) exit 1 ;; *venv*) echo python3.11-venv ;; esac')
    assert "`sudo apt-get install python3.11-venv`" in advice(checkout.setup())


def test_an_environment_is_made_once_and_renewed_when_what_it_was_made_from_changes(checkout):
    assert checkout.installs()
    assert not checkout.installs()
    os.utime(checkout.folder / "pyproject.toml", (0, 0))  # as a checkout of another branch and back does
    assert not checkout.installs()
    (checkout.folder / "constraints.txt").write_text("torch==9.9\n")
    assert checkout.installs()
    assert checkout.setup("--bin").stdout == f"{checkout.folder}/.venv/bin\n"
    code = "import course_lib; print(course_lib.__file__)"
    command = [f"{checkout.folder}/.venv/bin/python", "-c", code]
    imported = subprocess.check_output(command, cwd="/", env=checkout.environ, text=True).strip()
    assert imported == f"{checkout.folder}/course_lib/__init__.py"

    (checkout.folder / ".venv" / "bin" / "python").unlink()  # its Python was uninstalled
    assert checkout.installs()


def test_a_moved_checkout_is_installed_again(prepared, tmp_path):
    prepared.installs()
    home = prepared.folder
    try:
        prepared.folder = home.rename(tmp_path / "elsewhere")
        assert prepared.installs()
        subprocess.check_call([prepared.folder / ".venv" / "bin" / "pip", "--version"])  # named the old path
    finally:
        prepared.folder = (tmp_path / "elsewhere").rename(home)


def test_an_environment_that_was_left_half_made_is_made_anew(checkout):
    (checkout.folder / ".venv").mkdir()
    (checkout.folder / ".venv" / "pyvenv.cfg").write_text("half made")
    assert checkout.installs()


def test_an_install_that_fails_leaves_no_stamp_and_is_taken_up_again(prepared):
    prepared.require("a-package-that-is-nowhere>=1")
    sentence = advice(prepared.setup(PYTHON=sys.executable))
    assert re.search(r"could not install the packages \(.*a-package-that-is-nowhere", sentence)
    assert "network" not in sentence
    assert not (prepared.folder / ".venv" / ".installed").exists()
    assert "a-package-that-is-nowhere" in (prepared.folder / ".venv" / "install.log").read_text()
    prepared.require()
    assert prepared.installs()


def with_index(checkout, url, **environ):
    """Run set-up in need of one package, against this index and no other."""
    checkout.require("hatchling")
    wanted = {"PYTHON": sys.executable, "PIP_NO_INDEX": "0", "PIP_INDEX_URL": url, "PIP_DEFAULT_TIMEOUT": "2"}
    return checkout.setup(**wanted, **environ)


@pytest.mark.parametrize("retries", ["0", "1"])
@pytest.mark.parametrize("index", ["http://127.0.0.1:9/simple", "https://index.invalid/simple"])
def test_no_network(prepared, index, retries):
    assert "could not reach the package index" in advice(with_index(prepared, index, PIP_RETRIES=retries))
    assert not (prepared.folder / ".venv" / ".installed").exists()


def test_an_index_that_lacks_a_package_is_not_blamed_on_the_network(prepared, tmp_path):
    done = with_index(prepared, tmp_path.as_uri())
    assert "could not install the packages (Could not find a version that satisfies" in advice(done)


@pytest.mark.parametrize("words", ["No space left on device", "Disk quota exceeded"])
def test_a_full_disk(prepared, words):
    (prepared.folder / "break").write_text(words)
    sentence = advice(prepared.setup(PYTHON=sys.executable, TMPDIR=str(prepared.folder)))
    assert sentence.startswith("The disk is full: make room")
    assert re.search(rf"takes about 5 GB .*: {re.escape(str(prepared.folder))} has [\d.]+ GB left\.$", sentence)


def test_a_full_disk_of_temporary_files_is_named(prepared):
    (prepared.folder / "break").write_text("No space left on device")
    elsewhere = "/proc" if Path("/proc/self").exists() else "/dev"  # never on the disk of the checkout
    sentence = advice(prepared.setup(PYTHON=sys.executable, TMPDIR=elsewhere))
    here = re.escape(str(prepared.folder))
    assert re.search(rf"{here} has [\d.]+ GB left, {elsewhere} has [\d.]+ GB left", sentence)
    assert "TMPDIR=/another/folder" in sentence


@pytest.mark.parametrize(
    ("error", "start"),
    [
        ("[Errno 28] No space left on device", "The disk is full: make room"),
        ("[Errno 30] Read-only file system: 'x'", "Python could not make "),
    ],
)
def test_where_not_even_a_venv_can_be_made(checkout, error, start):
    checkout.program("python3.11", f"""[ "$2" != venv ] || {{ echo "Error: {error}"; exit 1; }}""")
    sentence = advice(checkout.setup())
    assert sentence.startswith(start) and (error in sentence or "5 GB" in sentence)
    assert not (checkout.folder / ".venv.log").exists()


def test_an_interrupted_set_up_says_so_and_is_taken_up_again(prepared):
    (prepared.folder / "wait").touch()
    running = subprocess.Popen(
        ["sh", ".ci/setup"],
        cwd=prepared.folder,
        env=prepared.environ | {"PYTHON": sys.executable},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C reaches every process of the terminal, and only this one's here
    )
    while (prepared.folder / "wait").exists():
        assert running.poll() is None
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=600)
    assert running.returncode == 130
    assert said.strip().splitlines()[-1].startswith("Interrupted: run the same command again")
    assert not (prepared.folder / ".venv" / ".installed").exists()
    assert prepared.installs()


def offer_torch(index, version):
    """Lay a tiny torch into a package index of files."""
    folder = index / "torch"
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"torch-{version}-py3-none-any.whl"
    info = f"torch-{version}.dist-info/"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr(info + "METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
        file.writestr(info + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(info + "RECORD", "")
    (folder / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')


def torch_installed(checkout, **environ):
    checkout.require("torch")
    (checkout.folder / "constraints.txt").write_text("torch==9.9\n")
    pip = [checkout.folder / ".venv" / "bin" / "python", "-m", "pip"]
    subprocess.run([*pip, "uninstall", "--quiet", "--yes", "torch"], check=True, capture_output=True)
    done = checkout.setup(PYTHON=sys.executable, PIP_NO_INDEX="0", PIP_RETRIES="0", **environ)
    assert done.returncode == 0, done.stdout + done.stderr
    listed = subprocess.check_output([*pip, "list", "--format", "freeze"], text=True)
    return re.search("^torch==(.*)$", listed, flags=re.M)[1]


def test_without_a_gpu_torch_comes_without_cuda(prepared, tmp_path):
    offer_torch(tmp_path / "registry", "9.9")
    offer_torch(tmp_path / "small", "9.9+cpu")
    registry = (tmp_path / "registry").as_uri()
    small = (tmp_path / "small").as_uri()
    try:
        assert torch_installed(prepared, PIP_INDEX_URL=registry, COURSE_TORCH_INDEX=small) == "9.9+cpu"
        for nothing in ("", "http://127.0.0.1:9/simple"):
            (prepared.folder / ".venv" / ".installed").unlink()
            assert torch_installed(prepared, PIP_INDEX_URL=registry, COURSE_TORCH_INDEX=nothing) == "9.9"
        prepared.program("nvidia-smi", "exit 0")
        (prepared.folder / ".venv" / ".installed").unlink()
        assert torch_installed(prepared, PIP_INDEX_URL=registry, COURSE_TORCH_INDEX=small) == "9.9"
    finally:
        (prepared.folder.parent / "bin" / "nvidia-smi").unlink(missing_ok=True)
        (prepared.folder / "constraints.txt").write_text("")


def conda(checkout, name, has_course=True, base=False, folder="conda"):
    """Make a fake conda environment and activate it."""
    prefix = checkout.folder.parent / f"{folder} envs" / name
    (prefix / "conda-meta").mkdir(parents=True)
    (prefix / "bin").mkdir()
    if base:
        (prefix / "condabin").mkdir()
    python = prefix / "bin" / "python"
    path = checkout.folder if has_course else "/nowhere"
    python.write_text(f"#!/bin/sh\nPYTHONPATH='{path}' exec '{sys.executable}' -S \"$@\"\n")
    python.chmod(0o755)
    checkout.environ["CONDA_PREFIX"] = str(prefix)
    return prefix


@pytest.mark.parametrize("name", ["attention-course", "attention-course-gpu", "a-name-of-my-own"])
def test_the_active_conda_environment_of_the_course_is_used_as_it_is(checkout, name):
    prefix = conda(checkout, name)
    assert checkout.setup("--bin").stdout == f"{prefix}/bin\n"
    done = checkout.setup()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (checkout.folder / ".venv").exists()


def test_an_unfinished_conda_environment_says_how_to_finish_it(checkout):
    conda(checkout, "attention-course", has_course=False)
    assert "`conda env update --file environment.yml`" in advice(checkout.setup())


@pytest.mark.parametrize(
    ("name", "has_course", "base"),
    [("base", True, True), ("other-work", False, False), ("base", False, True)],
)
def test_the_base_environment_and_others_are_left_alone(checkout, name, has_course, base):
    conda(checkout, name, has_course, base)
    assert checkout.setup("--bin").stdout == f"{checkout.folder}/.venv/bin\n"


@pytest.mark.parametrize("target", ["lint", "lab ARGS=--no-browser", "bench"])
def test_make_runs_in_such_a_folder(checkout, target):
    shutil.copy(ROOT / "Makefile", checkout.folder)
    prefix = conda(checkout, "attention-course", folder=FOLDER)
    (prefix / "bin" / "python").write_text("#!/bin/sh\n[ \"$1\" = -c ] || printf '%s\\n' \"$0\" \"$@\"\n")
    make = [shutil.which("make"), "--no-print-directory", *target.split()]
    said = subprocess.check_output(make, cwd=checkout.folder, env=checkout.environ, text=True).splitlines()
    kernel, lab = "course_lib.lecture.kernel", ".ci/lab.py"
    wanted = {"lint": {"ruff"}, "bench": {"tests/benchmarks/run.py"}, "lab": {kernel, lab}}
    script = wanted[target.split()[0]]
    assert said.count(str(prefix / "bin" / "python")) == len(script)
    assert script < set(said)
