"""Sphinx extension: neighbouring notebook cells of different frameworks become one set of tabs.

A cell that carries the tag ``numpy``, ``torch`` or ``tensorflow`` belongs to that framework. A run of
neighbouring cells of at least two frameworks becomes a tab set; all tab sets share one sync group, so a
reader who picks a framework once sees it in every set, on every page. In JupyterLab the cells stay ordinary
cells.

- Neighbouring cells of the same framework share a tab.
- A framework that comes back after another one starts a new set (torch, tensorflow, torch, tensorflow: two
  sets).
- A run with one framework only is left as it is.
- A first line that only names the framework (``# PyTorch``), which JupyterLab's readers need, is left out of a tab.
- Any untagged cell, paragraph or heading between two cells ends the run. A cell that shows nothing
  (``remove-cell``) does not.
- Markdown cells may carry the tags too; one that contains a heading cannot go into a tab, which is a
  warning.
- A tag that looks like a framework's name but is not one (``pytorch``, ``Torch``, ``tensorfow``) and a cell
  with two frameworks are warnings, so that a build with ``-W`` fails instead of showing the cell outside
  its tab.
"""

from difflib import get_close_matches

from docutils import nodes
from markdown_it.tree import SyntaxTreeNode
from myst_nb.sphinx_ import SphinxNbRenderer
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx_design.shared import create_component

LABELS = {"numpy": "NumPy", "torch": "PyTorch", "tensorflow": "TensorFlow"}
"""Cell tag to tab label."""

ALIASES = {"np": "numpy", "pytorch": "torch", "tf": "tensorflow", "keras": "tensorflow"}
"""Other names of the frameworks, each a likely slip for the tag on the right."""

GROUP = "framework"
"""The sync group; hand-written ``{tab-set}`` directives with ``:sync-group: framework`` join it."""

logger = logging.getLogger(__name__)


def intended_framework(tag: str) -> str | None:
    """The framework that a tag outside LABELS was probably meant to name, or None for an unrelated tag."""
    name = tag.lower().removeprefix("framework-")
    if name in LABELS:
        return name
    if name in ALIASES:
        return ALIASES[name]
    return next(iter(get_close_matches(name, LABELS, n=1, cutoff=0.8)), None)


def cell_framework(cell: nodes.Element) -> str | None:
    """The framework of a cell, or None; warns about misspelt tags and about two frameworks in one cell."""
    tags = cell["cell_metadata"].get("tags", [])
    for tag in tags:
        if tag not in LABELS and (meant := intended_framework(tag)):
            logger.warning("cell tag %r names no framework; write %r", tag, meant, location=cell, type="framework_tabs")
    named = [tag for tag in tags if tag in LABELS]
    if len(named) > 1:
        logger.warning(
            "a cell belongs to one framework, this one is tagged %s",
            " and ".join(named),
            location=cell,
            type="framework_tabs",
        )
    return named[0] if named else None


class FrameworkTabs(SphinxTransform):
    """Regroup tagged cells into sphinx-design tab sets, once per parsed document."""

    # Gated exercises and proofs are assembled at priority 20 or earlier: their cells are siblings by now.
    default_priority = 400

    def apply(self, **kwargs: object) -> None:
        parents = {id(cell.parent): cell.parent for cell in self.document.findall(is_cell)}
        for parent in parents.values():
            self.regroup(parent)

    def regroup(self, parent: nodes.Element) -> None:
        """Replace each run of tagged cells among the children of ``parent``."""
        children: list[nodes.Node] = []
        run: list[tuple[str, nodes.Element]] = []

        def finish_run() -> None:
            children.extend(build_set(run))
            run.clear()

        for node in parent.children:
            framework = cell_framework(node) if is_cell(node) else None
            if is_empty(node):
                continue
            if framework is None:
                finish_run()
                children.append(node)
                continue
            comes_back = any(name == framework for name, _ in run) and run[-1][0] != framework
            if comes_back:
                finish_run()
            run.append((framework, node))
        finish_run()
        parent.children = []
        parent.extend(children)


def is_cell(node: nodes.Node) -> bool:
    """Whether a node is the container of a code cell or of a tagged Markdown cell."""
    return isinstance(node, nodes.container) and node.get("nb_element") in ("cell_code", "cell_markdown")


def is_empty(node: nodes.Node) -> bool:
    """Whether a cell has nothing to show, as after ``remove-input`` on a cell without output."""
    return is_cell(node) and not node.children


def build_set(run: list[tuple[str, nodes.Element]]) -> list[nodes.Node]:
    """The nodes that replace a run of (framework, cell): one tab set, or the cells of a single framework."""
    cells: dict[str, list[nodes.Element]] = {}
    for framework, cell in run:
        cells.setdefault(framework, []).append(cell)
    if len(cells) < 2:
        return [cell for _, cell in run]
    for framework, cell in run:
        leave_out_label(cell, f"# {LABELS[framework]}")
    tab_set = create_component("tab-set", classes=["sd-tab-set", "framework-tabs"])
    first = run[0][1]
    tab_set.source, tab_set.line = first.source, first.line
    for framework in sorted(cells, key=list(LABELS).index):
        label = nodes.rubric("", LABELS[framework], classes=["sd-tab-label"])
        label["sync_group"], label["sync_id"] = GROUP, framework
        content = create_component("tab-content", classes=["sd-tab-content"], children=cells[framework])
        item = create_component("tab-item", classes=["sd-tab-item"], children=[label, content])
        item.source, item.line = cells[framework][0].source, cells[framework][0].line
        tab_set += item
    return [tab_set]


def leave_out_label(cell: nodes.Element, label: str) -> None:
    """Take the line that the tab's own label says from the beginning of a cell's code."""
    source = cell.next_node(nodes.literal_block)
    if source is not None and source.astext().startswith(f"{label}\n"):
        text = source.astext().removeprefix(f"{label}\n").lstrip("\n")
        source.rawsource = text
        source.children = []
        source += nodes.Text(text)


render_markdown_cell = SphinxNbRenderer.render_nb_cell_markdown
"""MyST-NB's own method, kept once: setup() may run several times in one process."""


def render_tagged_markdown_cell(renderer: SphinxNbRenderer, token: SyntaxTreeNode) -> None:
    """Render a Markdown cell, with a container around it where it carries a framework tag."""
    tags = token.meta["metadata"].get("tags", [])
    if not any(tag in LABELS or intended_framework(tag) for tag in tags):
        return render_markdown_cell(renderer, token)
    cell = nodes.container(nb_element="cell_markdown", cell_metadata=token.meta["metadata"], classes=["cell-markdown"])
    renderer.add_line_and_source_path(cell, token)
    if any(child.type == "heading" for child in token.children):
        logger.warning(
            "a Markdown cell with a heading cannot go into a tab: move the heading to a cell of its own",
            location=cell,
            type="framework_tabs",
        )
        return render_markdown_cell(renderer, token)
    with renderer.current_node_context(cell, append=True):
        renderer.render_children(token)


def setup(app: Sphinx) -> dict[str, object]:
    SphinxNbRenderer.render_nb_cell_markdown = render_tagged_markdown_cell
    app.setup_extension("sphinx_design")
    app.add_transform(FrameworkTabs)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
