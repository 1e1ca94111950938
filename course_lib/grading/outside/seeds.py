"""Inputs for hidden tests that no student can know, and that come again when the same work is graded again."""

import contextlib
import hashlib
import hmac
import os
import secrets
from pathlib import Path

SECRET = ".grading-secret"


def secret_of(course: Path) -> bytes:
    """The secret of the course in this folder; drawn where there is none yet, and readable by its owner alone.

    Raises
    ------
    ValueError : it is too short to be one.
    """
    path = course / SECRET
    if not path.exists():
        _draw(path)
    found = path.read_bytes().strip()
    if len(found) < 32:
        raise ValueError(f"{path} is no secret: remove it, and a new one is drawn. Marks may then be of other inputs.")
    return found


def _draw(path: Path) -> None:
    """Write a secret, unless somebody else has done so meanwhile."""
    with contextlib.suppress(FileExistsError):
        part = path.with_name(f"{SECRET}.{os.getpid()}")
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(secrets.token_hex(32))
        try:
            os.link(part, path)  # whole, or not there: two that grade at once agree
        finally:
            part.unlink()


def what_lies_in(folder: Path) -> list[str]:
    """Names and digests of all that a kernel finds in the folder of its notebook; notebooks there it does not see."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.parent == folder and path.suffix == ".ipynb":
            continue
        found.append(path.relative_to(folder).as_posix())
        if path.is_symlink():
            found.append(os.readlink(path))
        elif path.is_file():
            with path.open("rb") as file:
                found.append(hashlib.file_digest(file, "sha256").hexdigest())
    return found


def seed_for(secret: bytes, *of: str) -> int:
    """A seed that depends on all of these texts, and that nobody can compute without the secret."""
    digest = hmac.new(secret, digestmod="sha256")
    for text in of:
        data = text.encode("utf-8", errors="surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return int.from_bytes(digest.digest()[:8], "big")
