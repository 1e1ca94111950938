"""Put back the graded and read-only cells that a submission lacks."""

from course_lib._extras import needed

with needed("lab"):
    import nbformat
    from nbformat.notebooknode import NotebookNode
    from nbformat.v4 import new_code_cell, new_markdown_cell
    from nbgrader.api import Gradebook, MissingEntry
    from nbgrader.preprocessors import OverwriteCells


class RestoreCells(OverwriteCells):
    """nbgrader's OverwriteCells, which here also restores every missing cell that nbgrader knows.

    nbgrader 0.9.6 can add missing graded cells by itself (`add_missing_cells`), but stops with a KeyError, and
    so loses the whole submission, where the cell before the missing one is missing as well. Here the order of
    the released notebook decides the place, and a missing answer comes back as its empty stub, which scores
    zero for that part and leaves the other parts alone.

    Use it in nbgrader_config.py in the place of OverwriteCells, in `Autograde.sanitize_preprocessors`.
    """

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        """Restore what is missing, then overwrite what changed, as nbgrader does."""
        notebook, assignment = resources["nbgrader"]["notebook"], resources["nbgrader"]["assignment"]
        with Gradebook(resources["nbgrader"]["db_url"]) as gradebook:
            try:
                known = gradebook.find_notebook(notebook, assignment)
            except MissingEntry:
                return super().preprocess(nb, resources)
            sources = {cell.name: cell.to_dict() for cell in known.source_cells}
            points = {cell.name: cell.max_score for cell in known.grade_cells}
            answers = {cell.name for cell in known.solution_cells}
        order = [name for name in self._order(resources) if name in sources]
        order += [name for name in sources if name not in order]
        self._restore(nb, [self._cell(sources[name], points.get(name), name in answers) for name in order])
        return super().preprocess(nb, resources)

    def _order(self, resources: dict) -> list[str]:
        """Names of the cells in the order of the source notebook; the gradebook keeps none."""
        course = self.parent.parent.coursedir  # preprocessor -> exporter -> converter
        folder = course.format_path(course.source_directory, ".", resources["nbgrader"]["assignment"])
        try:
            source = nbformat.read(f"{folder}/{resources['nbgrader']['notebook']}.ipynb", as_version=4)
        except (OSError, ValueError):  # the gradebook knows the cells all the same, in nearly this order
            self.log.warning("The source of this notebook cannot be read; missing cells come back where they may")
            return []
        return [name for name in map(_grade_id, source.cells) if name]

    def _restore(self, nb: NotebookNode, wanted: list[NotebookNode]) -> None:
        place = 0
        for cell in wanted:
            name = _grade_id(cell)
            found = [i for i, other in enumerate(nb.cells) if _grade_id(other) == name]
            if found:
                place = found[0] + 1
                continue
            self.log.warning("Cell '%s' is missing from the submission and was put back", name)
            nb.cells.insert(place, cell)
            place += 1

    def _cell(self, source: dict, points: float | None, answer: bool) -> NotebookNode:
        new = new_code_cell if source["cell_type"] == "code" else new_markdown_cell
        cell = new(source["source"])
        cell.metadata["nbgrader"] = {
            "schema_version": 3,
            "grade_id": source["name"],
            "cell_type": source["cell_type"],
            "checksum": source["checksum"],
            "grade": points is not None,
            "solution": answer,
            "locked": source["locked"],
            "task": False,
        }
        if points is not None:
            cell.metadata["nbgrader"]["points"] = points
        return cell


def _grade_id(cell: NotebookNode) -> str | None:
    metadata = cell.metadata.get("nbgrader")
    return metadata.get("grade_id") if isinstance(metadata, dict) else None
