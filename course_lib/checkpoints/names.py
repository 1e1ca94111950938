"""Two names for each weight: those of a family's files on one side, ours on the other, by a table read in both ways.

The tables stand with their models: BERT's in `course_lib.models.bert`.
"""

from collections.abc import Mapping

import numpy as np

from course_lib.errors import CheckpointError, few


class Joined:
    """One weight of theirs that is several of ours, below each other, or one that stands otherwise than ours.

    Parameters
    ----------
    names : ours, in their order; each has an equal share of the rows
    transposed : whether their matrices are (d_in, d_out), as those of GPT-2's `Conv1D`; vectors are as they are
    in_front : how many axes of length 1 theirs has before those of ours
    """

    def __init__(self, *names: str, transposed: bool = False, in_front: int = 0):
        self.names, self.transposed, self.in_front = names, transposed, in_front

    def split(self, value: np.ndarray) -> list[np.ndarray]:
        """Theirs into ours; ValueError for rows that cannot be shared equally, and for an axis that is not 1."""
        value = self._turned(value.reshape(value.shape[self.in_front :]) if self.in_front else value)
        return [value] if len(self.names) == 1 else np.split(value, len(self.names))

    def join(self, values: list[np.ndarray]) -> np.ndarray:
        """Ours into theirs, the inverse of `split`."""
        value = self._turned(values[0] if len(values) == 1 else np.concatenate(values))
        return value[(None,) * self.in_front] if self.in_front else value

    def _turned(self, value):
        return value.T if self.transposed and value.ndim == 2 else value


class Renames:
    """The names of a family of models: theirs -> ours, and back.

    Parameters
    ----------
    table : their name -> ours; {n} stands for a number, {p} for "weight" or "bias". None drops a weight on purpose:
        a buffer, a copy of a tied weight, the head of a task that is none of ours; `Joined` splits or transposes it
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
        table: Mapping[str, str | Joined | None],
        prefix: str = "",
        heads: tuple[str, ...] = (),
        ours: str | None = None,
    ):
        self.table, self.prefix, self.heads = dict(table), prefix, heads
        self.our_prefix = prefix if ours is None else ours
        joined = {theirs: Joined(ours) if isinstance(ours, str) else ours for theirs, ours in table.items()}
        self._to_ours = _tree(joined)
        self._to_theirs = _tree(
            {name: (theirs, ours) for theirs, ours in joined.items() if ours is not None for name in ours.names}
        )

    def ours(self, state: Mapping[str, np.ndarray], family: str = "model of this family") -> dict[str, np.ndarray]:
        """Their weights under our names, without the prefix.

        Raises
        ------
        CheckpointError : a name that is not in the table (the first few are listed), two names of one weight, or one
            that cannot be split.
        """
        renamed, unknown, origin = {}, [], {}
        for name, value in state.items():
            known, joined, found = _look_up(self._to_ours, _modern(name.removeprefix(self.prefix)))
            if not known:
                unknown.append(name)
            elif joined is not None:
                for ours, part in zip(_filled(joined, found), _split(joined, name, value), strict=True):
                    if ours in origin:
                        raise CheckpointError(
                            f"the checkpoint holds two names for one weight: {origin[ours]} and {name}"
                        )
                    renamed[ours], origin[ours] = part, name
        if unknown:
            raise CheckpointError(f"the checkpoint holds weights that are not a {family}'s: {few(unknown)}")
        return renamed

    def theirs(self, state: Mapping[str, np.ndarray], headed: bool = False) -> dict[str, np.ndarray]:
        """Our weights under their names, the inverse of `ours`; with the prefix for a model with a head.

        Raises
        ------
        CheckpointError : a name of ours that the table does not hold, or a part of one of theirs without the others.
        """
        parts, unknown = {}, []  # of each of theirs: how it is joined, of which names, and those that are there
        for name, value in state.items():
            ours = name.removeprefix(self.our_prefix)
            known, target, found = _look_up(self._to_theirs, ours)
            if not known:
                unknown.append(name)
                continue
            theirs, joined = target
            theirs = theirs.format(**found)
            theirs = theirs if not headed or theirs.startswith(self.heads) else self.prefix + theirs
            parts.setdefault(theirs, (joined, _filled(joined, found), {}))[2][ours] = value
        if unknown:
            raise CheckpointError(f"these weights have no Hugging Face name: {few(unknown)}")
        renamed = {}
        for theirs, (joined, names, values) in parts.items():
            if lost := [name for name in names if name not in values]:
                raise CheckpointError(f"{theirs} would lack {few(lost)}")
            renamed[theirs] = joined.join([values[name] for name in names])
        return renamed


def _filled(joined: Joined, found: dict) -> list[str]:
    return [name.format(**found) for name in joined.names]


def _split(joined: Joined, name: str, value) -> list[np.ndarray]:
    try:
        return joined.split(value)
    except ValueError:
        raise CheckpointError(
            f"{name} {tuple(value.shape)} is no {len(joined.names)} weights of ours below each other"
        ) from None


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
    """Whether the table holds a name, what stands there, and what {n} and {p} stand for."""
    for target, found in _leaves(tree, name.split("."), {}):
        return True, target, found
    return False, None, {}


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
