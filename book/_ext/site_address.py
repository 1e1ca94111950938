"""Sphinx extension: what only a published book needs, taken from the environment.

A local build knows no public address, so none is written into the pages. A deployment sets

- ``BOOK_URL``, the address the book is served from: adds canonical links, a sitemap and link previews (Open
  Graph);
- ``BOOK_REPOSITORY``, the address of the repository, and ``BOOK_BRANCH`` (main): adds the repository and
  issue buttons, "suggest an edit" and, for a repository on GitHub, "open in Colab".
"""

import os

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ConfigError


def address(variable: str) -> str:
    """The address in an environment variable, without its last slash; "" when unset. Raises ConfigError."""
    value = os.environ.get(variable, "").strip().rstrip("/")
    if value and not value.startswith(("https://", "http://")):
        raise ConfigError(f"{variable}={value!r} is no web address: write https://host/path, or unset it")
    return value


def configure(app: Sphinx, config: Config) -> None:
    """Fill in the configuration that depends on the two addresses."""
    if url := address("BOOK_URL"):
        config.html_baseurl = config.ogp_site_url = f"{url}/"
        config.ogp_site_name = config.html_title
        config.sitemap_url_scheme = "{link}"
        config.sitemap_excludes = ["search.html", "genindex.html", "py-modindex.html", "_modules/*"]
    if repository := address("BOOK_REPOSITORY"):
        options = config.html_theme_options
        options["repository_url"] = repository
        options["repository_branch"] = os.environ.get("BOOK_BRANCH", "main")
        for button in ("repository", "issues", "edit_page"):
            options[f"use_{button}_button"] = True
        if repository.startswith("https://github.com/"):
            options["launch_buttons"] = {"colab_url": "https://colab.research.google.com"}


def setup(app: Sphinx) -> dict[str, object]:
    if address("BOOK_URL"):
        app.setup_extension("sphinxext.opengraph")
        app.setup_extension("sphinx_sitemap")
    app.connect("config-inited", configure, priority=100)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
