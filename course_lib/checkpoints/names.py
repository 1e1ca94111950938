"""Two names for each weight: those of a family's files on one side, ours on the other, by a table read in both ways.

The tables stand with their models: BERT's in `course_lib.models.bert`.
"""

from collections.abc import Mapping

import numpy as np

from course_lib.errors import CheckpointError, few


class Renames:
    """The names of a family of models: theirs -> ours, and back.

    Parameters
    ----------
    table : their name -> ours; {n} stands for a number, {p} for "weight" or "bias". None drops a weight on purpose:
        a buffer, a copy of a tied weight, the head of a task that is none of ours
    prefix : what both sides put in front of the encoder's names in a model with a head, such as "bert."
    heads : how their names of heads begin, which have no prefix
    ours : what our side puts there, where it is not the same

    Examples
    --------
    >>> names = Renames({"layer.{n}.dense.{p}": "layers.{n}.linear.{p}"})
    >>> names.ours({"layer.3.dense.bias": 0.0})
    {'layers.3.linear.bias': 0.0}
    """

    def __init__(
        self,
        table: Mapping[str, str | None],
        prefix: str = "",
        heads: tuple[str, ...] = (),
        ours: str | None = None,
    ):
        self.table, self.prefix, self.heads = dict(table), prefix, heads
        self.our_prefix = prefix if ours is None else ours
        self._to_ours = _tree(self.table)
        self._to_theirs = _tree({ours: theirs for theirs, ours in table.items() if ours is not None})

    def ours(self, state: Mapping[str, np.ndarray], family: str = "model of this family") -> dict[str, np.ndarray]:
        """Their weights under our names, without the prefix.

        Raises
        ------
        CheckpointError : a name that is not in the table (the first few are listed), or two names of one weight.
        """
        renamed, unknown, origin = {}, [], {}
        for name, value in state.items():
            known, ours = _look_up(self._to_ours, _modern(name.removeprefix(self.prefix)))
            if not known:
                unknown.append(name)
            elif ours in origin:
                raise CheckpointError(f"the checkpoint holds two names for one weight: {origin[ours]} and {name}")
            elif ours is not None:
                renamed[ours], origin[ours] = value, name
        if unknown:
            raise CheckpointError(f"the checkpoint holds weights that are not a {family}'s: {few(unknown)}")
        return renamed

    def theirs(self, state: Mapping[str, np.ndarray], headed: bool = False) -> dict[str, np.ndarray]:
        """Our weights under their names, the inverse of `ours`; with the prefix for a model with a head.

        Raises
        ------
        CheckpointError : a name of ours that the table does not hold.
        """
        renamed, unknown = {}, []
        for name, value in state.items():
            known, theirs = _look_up(self._to_theirs, name.removeprefix(self.our_prefix))
            if not known:
                unknown.append(name)
            else:
                renamed[theirs if not headed or theirs.startswith(self.heads) else self.prefix + theirs] = value
        if unknown:
            raise CheckpointError(f"these weights have no Hugging Face name: {few(unknown)}")
        return renamed


def _modern(name: str) -> str:
    """TensorFlow's old names of a normalisation's weights, gamma and beta, as PyTorch's."""
    for old, new in (("gamma", "weight"), ("beta", "bias")):
        if name.endswith(old):
            return name.removesuffix(old) + new
    return name


def _tree(table):
    """The table as a tree of the parts of its names, so that looking a name up takes as many steps as it has parts."""
    root = {}
    for source, target in table.items():
        *parts, last = source.split(".")
        node = root
        for part in parts:
            node = node.setdefault(part, {})
        node[last] = target
    return root


def _look_up(tree, name):
    """Whether the table holds a name, and its other name."""
    for target, found in _leaves(tree, name.split("."), {}):
        return True, target if target is None else target.format(**found)
    return False, None


def _leaves(node, parts, found):
    """What stands at the ends of the ways that a name can go: by a part as it is written, or by what it stands for."""
    if not parts or not isinstance(node, dict):
        if not parts and not isinstance(node, dict):
            yield node, found
        return
    part, *rest = parts
    ways = [(part, {})]
    if part.isdecimal():
        ways.append(("{n}", {"n": part}))
    if part in ("weight", "bias"):
        ways.append(("{p}", {"p": part}))
    for way, stands_for in ways:
        if way in node:
            yield from _leaves(node[way], rest, {**found, **stands_for})
