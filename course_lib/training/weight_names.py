"""Parts of a model by the names of its weights: which are frozen, and at what share of the rate each layer learns."""

import itertools
import re
from collections.abc import Iterable, Sequence

from course_lib.errors import few
from course_lib.training.arguments import number

# "embeddings.token.weight", "source_position.table"; in "composition.weight" and "position_head.weight" it is no part
BELOW = re.compile(r"(^|[._])(embeddings?|positions?|positional_encodings?)(\.|$)")
LAYER = re.compile(r"^(.*?)layers\.(\d+)\.")  # "bert.encoder.layers.3.": the layer 3 of "bert.encoder."


def matching(names: Sequence[str], parts: str | Iterable[str]) -> list[str]:
    """Those of the names that belong to one of the parts.

    Parameters
    ----------
    names : of a model's weights, as `get_state` has them
    parts : names of weights or of what holds them, such as "bert.embeddings" or "bert.encoder.layers.0"; "" is all

    Raises
    ------
    ValueError : a part that the model has not.
    TypeError : a part that is no text.
    """
    parts = [parts] if isinstance(parts, str) else list(parts)
    found = set()
    for part in parts:
        if not isinstance(part, str):
            raise TypeError(f'a part is the name of weights, such as "bert.embeddings"; got {type(part).__name__}')
        own = {name for name in names if not part or name == part or name.startswith(f"{part}.")}
        if not own:
            known = sorted({name.rpartition(".")[0] or name for name in names}, key=names_order(names))
            raise ValueError(f"the model has no part {part!r}; it has {few(known)}")
        found |= own
    return [name for name in names if name in found]


def names_order(names: Sequence[str]):
    """A key that sorts parts as the names come."""
    first = {}
    for i, name in enumerate(names):
        first.setdefault(name.rpartition(".")[0] or name, i)
    return first.get


def scales_of(names: Sequence[str], layer_decay: float = 1.0) -> list[float]:
    """At what share of the rate each weight learns, when each layer learns more slowly than the one above it.

    Howard and Ruder (2018, section 3.2) and Clark et al. (2020, appendix B): what stands above the layers learns at the
    rate itself, the uppermost of n layers at `layer_decay` times it, the lowest at layer_decay^n, and what stands
    below, tokens and positions, at layer_decay^(n + 1). Below is what comes before the first layer among the names, and
    all that is called so, "embeddings" or "target_position", as those of a decoder come behind the layers of its
    encoder.

    Parameters
    ----------
    names : of a model's weights; "layers.3." is in the name of those of the fourth layer, and what comes before it is
        the stack of layers, which a decoder has besides an encoder
    layer_decay : 1 has all learn alike; the papers take 1 / 2.6 (ULMFiT), and 0.8 or 0.9 (ELECTRA)

    Raises
    ------
    ValueError : a layer_decay outside (0, 1], or one below 1 for a model without layers.
    """
    if not 0 < number("layer_decay", layer_decay) <= 1:
        raise ValueError(f"layer_decay must lie in (0, 1], got {layer_decay}")
    if layer_decay == 1:
        return [1.0] * len(names)
    places = {name: found.groups() for name in names if (found := LAYER.match(name))}
    heights = {stack: 1 + max(int(i) for other, i in places.values() if other == stack) for stack, _ in places.values()}
    if not heights:
        raise ValueError('layer_decay needs layers, and no weight of this model has "layers.0." in its name')

    first = set(itertools.takewhile(lambda name: name not in places, names))

    def below(name: str) -> int:
        """How many steps down from what stands above the layers."""
        if name in places:
            stack, i = places[name]
            return heights[stack] - int(i)
        return max(heights.values()) + 1 if name in first or BELOW.search(name) else 0

    return [float(layer_decay) ** below(name) for name in names]
