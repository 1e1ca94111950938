"""Data sets and checkpoints: a registry, a cache, and one module of loaders for each corpus.

`fetch("minilm-l6")` returns a folder; `python -m course_lib.data` lists, fetches and verifies.
"""

from course_lib.data.cache import cache_folder, fetch, folder_of, is_cached, resolve, verify
from course_lib.data.registry import REGISTRY, DataError, DataSet, UnknownNameError, checkpoints

__all__ = [
    "REGISTRY",
    "DataError",
    "DataSet",
    "UnknownNameError",
    "cache_folder",
    "checkpoints",
    "fetch",
    "folder_of",
    "is_cached",
    "resolve",
    "verify",
]
