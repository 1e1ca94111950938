"""``python -m course_lib.lecture.kernel``: which GPUs it finds, what it registers, and that such a kernel starts."""

import json
import os
import subprocess
import sys

import nbformat
import pytest
from nbclient import NotebookClient

from course_lib.lecture import kernel

ONE = "0, GPU-8c2f1a, NVIDIA H200, 143771"
TWO = ONE + "\n1, GPU-11d0aa, NVIDIA RTX 6000, Ada, [N/A]"


@pytest.fixture
def smi(tmp_path, monkeypatch):
    """Put a fake nvidia-smi on the PATH that prints the given text and exits with the given status."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def say(text, status=0):
        (folder / "answer").write_text(text, encoding="latin-1")
        script = folder / "nvidia-smi"
        script.write_text(f"#!/bin/sh\ncat '{folder}/answer'\nexit {status}\n")
        script.chmod(0o755)

    return say


def test_each_gpu_is_read_with_its_index_name_and_memory(smi):
    smi(TWO + "\n")
    gpus, note = kernel.find_gpus()
    assert gpus == [kernel.Gpu(0, "NVIDIA H200", 143771), kernel.Gpu(1, "NVIDIA RTX 6000, Ada", None)]
    assert note == "nvidia-smi lists 2 GPUs."


@pytest.mark.parametrize(
    ("visible", "indices"),
    [("1", [1]), ("0,1", [0, 1]), ("GPU-11d", [1]), ("", []), ("-1", []), ("0,-1,1", [0]), ("7", [])],
)
def test_cuda_visible_devices_narrows_the_list(smi, monkeypatch, visible, indices):
    smi(TWO)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [gpu.index for gpu in kernel.find_gpus()[0]] == indices


@pytest.mark.parametrize(
    ("text", "status", "reason"),
    [
        ("", 0, "lists 0 GPUs"),
        ("NVIDIA-SMI has failed: no driver is running.\n", 9, "exit status 9: NVIDIA-SMI has failed"),
        ("", 6, "exit status 6: it said nothing"),
        ("No devices were found\n", 0, "something other than a list of GPUs: 'No devices were found'"),
        ("\xff\xfe,,,\n", 0, "something other"),  # not UTF-8
    ],
)
def test_a_machine_without_a_working_gpu_says_why(smi, text, status, reason):
    smi(text, status)
    gpus, note = kernel.find_gpus()
    assert gpus == []
    assert reason in note


def test_no_nvidia_smi_at_all(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    gpus, note = kernel.find_gpus()
    assert gpus == []
    assert "No NVIDIA driver is installed" in note


def test_an_nvidia_smi_that_cannot_start_or_hangs(smi, tmp_path, monkeypatch):
    smi("")
    (tmp_path / "bin" / "nvidia-smi").write_text("#!/no/such/shell\n")
    assert kernel.find_gpus()[0] == []
    (tmp_path / "bin" / "nvidia-smi").write_text("#!/bin/sh\nexec sleep 600\n")
    monkeypatch.setattr(kernel, "SMI_SECONDS", 0.2)
    gpus, note = kernel.find_gpus()
    assert gpus == []
    assert "did not answer" in note


def test_a_gpu_kernel_shows_one_gpu_and_lets_tensorflow_share_it(smi, tmp_path):
    smi(TWO)
    kernel.register(kernel.kernels_for(kernel.find_gpus()[0]), prefix=str(tmp_path))
    specs = kernel.registered(kernel.kernels_folder(prefix=str(tmp_path)))
    assert list(specs) == ["course-cpu", "course-gpu-0", "course-gpu-1"]
    assert specs["course-gpu-1"]["display_name"] == "Course (GPU 1: NVIDIA RTX 6000, Ada)"
    assert specs["course-cpu"]["env"] == {"COURSE_DEVICE": "cpu", "CUDA_VISIBLE_DEVICES": ""}
    assert specs["course-gpu-1"]["env"] == {
        "COURSE_DEVICE": "cuda",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": "1",
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    }


def tree(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_registering_twice_changes_nothing_and_a_gpu_that_went_away_is_removed(smi, tmp_path, capsys):
    prefix = tmp_path / "env"
    other = prefix / "share/jupyter/kernels/course-notes"
    other.mkdir(parents=True)
    (other / "kernel.json").write_text("{}")

    smi(ONE)
    assert kernel.main(["register", "--prefix", str(prefix)]) == 0
    before = tree(prefix)
    assert kernel.main(["register", "--prefix", str(prefix)]) == 0
    assert tree(prefix) == before

    smi("")
    capsys.readouterr()
    assert kernel.main(["list", "--prefix", str(prefix)]) == 0
    assert "course-gpu-0  registered, but its device is gone" in capsys.readouterr().out
    kernel.main(["register", "--prefix", str(prefix)])
    assert list(kernel.registered(other.parent)) == ["course-cpu"]

    assert kernel.main(["unregister", "--prefix", str(prefix)]) == 0
    assert tree(prefix).keys() == {(other / "kernel.json").relative_to(prefix)}  # not ours, so left alone
    assert kernel.main(["unregister", "--prefix", str(prefix)]) == 0


def test_list_tells_a_stale_kernelspec_from_a_good_one(smi, tmp_path, capsys):
    smi("")
    kernel.main(["list", "--prefix", str(tmp_path)])
    kernel.main(["register", "--prefix", str(tmp_path)])
    spec = tmp_path / "share/jupyter/kernels/course-cpu/kernel.json"
    content = json.loads(spec.read_text())
    content["argv"][0] = "/no/such/python"
    spec.write_text(json.dumps(content))
    kernel.main(["list", "--prefix", str(tmp_path)])
    spec.write_text("{ broken")
    kernel.main(["list", "--prefix", str(tmp_path)])
    states = [line.split("): ")[1] for line in capsys.readouterr().out.splitlines() if "course-cpu" in line]
    stale = "registered for another Python or device: register again"
    assert states == ["not registered", "registered", stale, stale]


def test_for_the_user(smi, tmp_path, monkeypatch):
    smi("")
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    assert kernel.main(["register", "--user"]) == 0
    assert list(kernel.registered(tmp_path / "data" / "kernels")) == ["course-cpu"]


def test_a_folder_that_cannot_be_written_ends_in_one_sentence(smi, tmp_path, capsys):
    smi("")
    (tmp_path / "env").write_text("a file where a folder is needed, which stops even root")
    assert kernel.main(["register", "--prefix", str(tmp_path / "env")]) == 1
    said = capsys.readouterr().err.strip()
    assert said.startswith("Cannot write ") and "give --user, or --prefix" in said
    assert "\n" not in said


def test_without_permission(smi, tmp_path, monkeypatch, capsys):
    def refuse(**kwargs):  # root may write anywhere, so the refusal is played
        raise PermissionError(13, "Permission denied", str(tmp_path))

    smi("")
    monkeypatch.setattr("ipykernel.kernelspec.install", refuse)
    assert kernel.main(["register", "--prefix", str(tmp_path)]) == 1
    assert "(Permission denied): give --user, or --prefix" in capsys.readouterr().err


def test_what_is_registered_already_need_not_be_written_again(smi, tmp_path, monkeypatch):
    """`make lab` of a course that an administrator set up on a disk that is read-only for its users."""
    smi("")
    assert kernel.main(["register", "--prefix", str(tmp_path)]) == 0

    def refuse(**kwargs):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("ipykernel.kernelspec.install", refuse)
    assert kernel.main(["register", "--prefix", str(tmp_path)]) == 0
    smi(ONE)
    assert kernel.main(["register", "--prefix", str(tmp_path)]) == 1


def test_the_registered_kernel_starts_and_carries_its_environment(smi, tmp_path, monkeypatch):
    smi(ONE)
    kernel.main(["register", "--prefix", str(tmp_path)])
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share" / "jupyter"))
    monkeypatch.setenv("COURSE_DEVICE", "from outside")
    question = "import os; print(os.environ['COURSE_DEVICE'], repr(os.environ['CUDA_VISIBLE_DEVICES']))"
    for name, answer in {"course-cpu": "cpu ''", "course-gpu-0": "cuda '0'"}.items():
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(question)])
        NotebookClient(notebook, kernel_name=name, timeout=600, startup_timeout=600).execute()
        assert notebook.cells[0].outputs[0].text.strip() == answer


def test_the_command_line_imports_no_framework(tmp_path):
    code = (
        "import sys; from course_lib.lecture.kernel import main; "
        f"main(['register', '--prefix', {str(tmp_path)!r}]); "
        "sys.exit(any(name in sys.modules for name in ('torch', 'tensorflow', 'keras')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
