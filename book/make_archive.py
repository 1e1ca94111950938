"""Pack the built book into one file to take along: unpacked, it opens from the file system, without a server.

    python book/make_archive.py        writes dist/attention-and-transformers.zip from _build/html

Everything works from the file system but one thing: results of the search name pages and do not quote them, since a
browser lets no page read another's file.
"""

import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAME = "attention-and-transformers"
MOMENT = (1980, 1, 1, 0, 0, 0)  # of every file, so that two archives of one book are equal
PACKED = {".png", ".jpg", ".woff2", ".gz", ".zip", ".pdf"}  # what does not become smaller


def write(site: Path, archive: Path) -> int:
    """Pack a built site into a zip, in a folder of the archive's name; return how many files it has.

    Raises
    ------
    FileNotFoundError : the folder has no built book.
    """
    if not (site / "index.html").is_file():
        raise FileNotFoundError(f"there is no book in {site}: build it with `make book`")
    archive.parent.mkdir(parents=True, exist_ok=True)
    partial = archive.with_name(f".{archive.name}.part")
    files = sorted(path for path in site.rglob("*") if path.is_file())
    with zipfile.ZipFile(partial, "w") as packed:
        for path in files:
            entry = zipfile.ZipInfo(f"{archive.stem}/{path.relative_to(site).as_posix()}", MOMENT)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_STORED if path.suffix in PACKED else zipfile.ZIP_DEFLATED
            packed.writestr(entry, path.read_bytes())
    partial.replace(archive)
    return len(files)


def main() -> int:
    archive = ROOT / "dist" / f"{NAME}.zip"
    try:
        count = write(ROOT / "_build" / "html", archive)
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{archive.relative_to(ROOT)}: {count} files, {archive.stat().st_size / 1e6:.0f} MB.")
    print(f"Unpack it and open {NAME}/index.html in a browser.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
