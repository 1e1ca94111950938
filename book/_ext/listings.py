"""Sphinx extension: the listings of the modules share their contents, the list of all pages at the left.

A page that the contents name is marked there, so each of these has contents of its own. A listing is named nowhere in
them; two of equally many folders show the same. To make them for each of two hundred took half of the time of a build.
"""

from functools import partial

from sphinx.application import Sphinx

FOLDER = "_modules/"  # of sphinx.ext.viewcode


def share(made: dict, app: Sphinx, pagename: str, templatename: str, context: dict, doctree: object) -> None:
    """Let the templates of a listing find its contents in `made`, if another one as deep has put them there."""
    if not pagename.startswith(FOLDER):
        return
    make, depth = context["toctree"], pagename.count("/")

    def toctree(**options: object) -> str:
        key = (depth, *sorted(options.items()))
        if key not in made:
            made[key] = make(**options)
        return made[key]

    context["toctree"] = toctree


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("html-page-context", partial(share, {}), priority=400)  # at 500, the theme renders the page's parts
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
