"""Sphinx extension: what only a published book needs, taken from the environment.

A local build knows no public address, so none is written into the pages. A deployment sets

- ``BOOK_URL``, the address the book is served from: adds canonical links, a sitemap and link previews (Open
  Graph) with the card that ``book/draw_card.py`` draws;
- ``BOOK_REPOSITORY``, the address of the repository, and ``BOOK_BRANCH`` (main): adds the repository and
  issue buttons and "suggest an edit". No "open in Colab": a lecture there would find no course_lib.
- ``BOOK_HUB``, the address of a JupyterHub that has the course and nbgitpuller: each lecture gets a button that opens
  it there. It needs ``BOOK_REPOSITORY``, from which the hub takes the lectures.
"""

import os
from html import escape
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ConfigError

DESCRIPTION = "From the formula of attention to a fine-tuned BERT: a course that runs, in NumPy, PyTorch and TensorFlow"
CARD = "_static/card.png"  # 1200 x 630, drawn by book/draw_card.py
LARGE = [
    '<meta name="twitter:card" content="summary_large_image" />',
    '<meta property="og:image:width" content="1200" />',
    '<meta property="og:image:height" content="630" />',
]


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
        config.ogp_image = CARD  # the extension's own cards cannot show an SVG logo
        config.ogp_image_alt = config.html_title
        config.ogp_social_cards = {"enable": False}
        config.ogp_custom_meta_tags = LARGE
        config.sitemap_url_scheme = "{link}"
        config.sitemap_excludes = ["search.html", "genindex.html", "py-modindex.html", "_modules/*"]
    if repository := address("BOOK_REPOSITORY"):
        options = config.html_theme_options
        options["repository_url"] = repository
        options["repository_branch"] = os.environ.get("BOOK_BRANCH", "main")
        for button in ("repository", "issues", "edit_page"):
            options[f"use_{button}_button"] = True
        hub = {"jupyterhub_url": address("BOOK_HUB"), "notebook_interface": "jupyterlab"}
        options["launch_buttons"] = hub if address("BOOK_HUB") else {}
    elif address("BOOK_HUB"):
        raise ConfigError("BOOK_HUB needs BOOK_REPOSITORY, the address from which the hub takes the lectures")


def write_entrance(app: Sphinx, exception: Exception | None) -> None:
    """Write index.html, which leads to the welcome page; its address is the one that people share."""
    if exception is not None or app.builder.name != "html" or app.config.root_doc == "index":
        return
    title, welcome = escape(app.config.html_title), f"{app.config.root_doc}.html"
    head = ['<meta charset="utf-8" />', f"<title>{title}</title>"]
    head += [f'<meta name="description" content="{DESCRIPTION}" />']
    if icon := app.config.html_favicon:  # a browser would ask for one that is not there
        head += [f'<link rel="icon" href="_static/{Path(icon).name}" />']
    if url := address("BOOK_URL"):
        facts = {"title": title, "type": "website", "url": f"{url}/", "site_name": title, "description": DESCRIPTION}
        facts |= {"image": f"{url}/{CARD}", "image:alt": title}
        head += [f'<meta property="og:{name}" content="{value}" />' for name, value in facts.items()] + LARGE
        head += [f'<link rel="canonical" href="{url}/{welcome}" />']
    head += [f'<meta http-equiv="refresh" content="0; url={welcome}" />']
    page = ["<!doctype html>", '<html lang="en">', "<head>", *head, "</head>"]
    page += [f'<body><a href="{welcome}">{title}</a></body>', "</html>", ""]
    Path(app.outdir, "index.html").write_text("\n".join(page), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, object]:
    if address("BOOK_URL"):
        app.setup_extension("sphinxext.opengraph")
        app.setup_extension("sphinx_sitemap")
    app.connect("config-inited", configure, priority=100)
    app.connect("build-finished", write_entrance, priority=900)  # after sphinx_external_toc, which writes a bare one
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
