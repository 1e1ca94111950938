"""`python -m course_lib.data`: list, fetch and verify the course's data."""

from __future__ import annotations

import argparse
import os
import sys

from course_lib.data import REGISTRY, DataError, cache_folder, fetch, folder_of, is_cached, verify
from course_lib.data.registry import SOURCES, source_or_default


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return 0 if all went well, 1 if data is missing or damaged, 2 for a wrong request."""
    options = _parser().parse_args(arguments)
    try:
        status = options.command(options)
        sys.stdout.flush()
        return status
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted; nothing half-fetched was kept.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of a pipe has seen enough; Python would complain again at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _list(options: argparse.Namespace) -> int:
    source = source_or_default(options.source)
    print(f"Cache: {cache_folder()} (source: {source})")
    for entry in REGISTRY.values():
        if not entry.sources(source):
            state = "from the other source only"
        elif is_cached(entry.name, source):
            state = "fetched"
        elif not folder_of(entry.name, source).is_dir():
            state = "not fetched"
        else:  # files that were touched: only their hashes can tell
            state = "damaged: fetch it again" if verify(entry.name, source) else "fetched"
        sizes = [file.size for file in entry.files(source)]
        size = f"{sum(filter(None, sizes)) / 1e6:.0f} MB" if any(sizes) else "-"
        origin = ", ".join(origin.label for origin in entry.sources(source)) or "-"
        print(f"{entry.name:<18} {state:<27} {size:>7}  {origin}")
        print(f"    {entry.what}.\n    Licence: {entry.licence}.")
    return 0


def _fetch(options: argparse.Namespace) -> int:
    source = source_or_default(options.source)
    for name in options.names or _available(source):
        print(f"{name}: {fetch(name, source)}")
    return 0


def _verify(options: argparse.Namespace) -> int:
    source = source_or_default(options.source)
    status = 0
    for name in options.names or _available(source):
        if not os.path.isdir(folder_of(name, source)):
            print(f"{name}: not fetched")
            status = max(status, 1 if options.names else 0)
            continue
        problems = verify(name, source)
        print(f"{name}: {'damaged' if problems else 'whole'}")
        for problem in problems:
            print(f"    {problem}")
        if problems:
            again = f"python -m course_lib.data fetch {name} --source {source}"
            print(f"    Repair it: {'install the library again' if REGISTRY[name].shipped else again}")
            status = 1
    return status


def _available(source: str) -> list[str]:
    return [entry.name for entry in REGISTRY.values() if entry.sources(source)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m course_lib.data", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, command, summary in (
        ("list", _list, "what there is, whether it is fetched, and its licence"),
        ("fetch", _fetch, "fetch data sets into the cache; all of the source without names"),
        ("verify", _verify, "hash what is in the cache and report damage; everything fetched without names"),
    ):
        sub = commands.add_parser(name, help=summary, description=summary)
        sub.set_defaults(command=command)
        sub.add_argument("--source", choices=SOURCES, help="default: COURSE_DATA_SOURCE, else pypi")
        if command is not _list:
            sub.add_argument("names", nargs="*", metavar="NAME", help="names of the registry")
    return parser


if __name__ == "__main__":
    sys.exit(main())
