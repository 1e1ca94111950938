"""Diagrams of mechanisms: boxes, arrows with shapes on them, matrices and masks, as SVG with real text in it.

One visual language for every lecture: queries are blue, keys orange, values green, what comes out purple, and what is
learned has a thick edge. Text and ground take the page's colours where the picture stands inside a page, and dark on
white where it stands alone.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

# Okabe and Ito's, as in `course_lib.lecture.plotting`. A page may set the variables: book/_static/custom.css does.
COLOURS = {
    "query": "var(--diagram-query, #0072B2)",
    "key": "var(--diagram-key, #E69F00)",
    "value": "var(--diagram-value, #009E73)",
    "out": "var(--diagram-out, #CC79A7)",
    "warn": "var(--diagram-warn, #D55E00)",
    "plain": "var(--diagram-plain, #6b7280)",
}
INK, MUTED, GROUND = "var(--diagram-ink, #1f2328)", "var(--diagram-muted, #57606a)", "var(--diagram-ground, #ffffff)"
WIDEST = 520  # units; a phone of 360 pixels shows the text of 15 units at 10 pixels and more
SMALLEST = 12  # units of text


class Box(NamedTuple):
    """A rectangle, and the points that arrows start from and lead to."""

    x: float
    y: float
    width: float
    height: float

    @property
    def left(self) -> tuple[float, float]:
        """The middle of the left edge."""
        return self.x, self.y + self.height / 2

    @property
    def right(self) -> tuple[float, float]:
        """The middle of the right edge."""
        return self.x + self.width, self.y + self.height / 2

    @property
    def top(self) -> tuple[float, float]:
        """The middle of the upper edge."""
        return self.x + self.width / 2, self.y

    @property
    def bottom(self) -> tuple[float, float]:
        """The middle of the lower edge."""
        return self.x + self.width / 2, self.y + self.height


class Diagram:
    """A picture that is drawn part by part and shown by a notebook.

    Parameters
    ----------
    width, height : of the picture, in units; text is 15 of them high, and a page shows at most 520
    alt : what it shows, in a sentence or two, for those who cannot see it

    Raises
    ------
    ValueError : too wide for a phone, or without a description.
    """

    def __init__(self, width: float, height: float, alt: str):
        if width > WIDEST:
            raise ValueError(f"a diagram is at most {WIDEST} wide, so that a phone shows its text; got {width}")
        if not alt.strip():
            raise ValueError("a diagram needs a description for those who cannot see it: give `alt`")
        self.width, self.height, self.alt = width, height, " ".join(alt.split())
        self.parts: list[str] = []
        self._used: set[str] = set()
        self._name = f"d{zlib.crc32(self.alt.encode()):08x}"  # several pictures of a page share its ids

    def text(
        self, x: float, y: float, text: str, size: float = 15, anchor: str = "middle", bold: bool = False,
        italic: bool = False, muted: bool = False,
    ) -> None:  # fmt: skip
        """Words at (x, y), the middle of their height; `x_1_` lowers the 1, `W^Q^` raises the Q.

        Raises
        ------
        ValueError : text smaller than a phone can show, or words that would leave the picture.
        """
        if size < SMALLEST:
            raise ValueError(f"text is at least {SMALLEST} high, so that a phone shows it; got {size}")
        half = width_of(text, size) * (1.1 if bold else 1) / 2
        middle = {"start": x + half, "middle": x, "end": x - half}[anchor]
        if middle - half < -1 or middle + half > self.width + 1:
            raise ValueError(f"{text!r} at {x:g} leaves the picture, which is {self.width:g} wide")
        style = (' font-weight="700"' if bold else "") + (' font-style="italic"' if italic else "")
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" text-anchor="{anchor}" '
            f'fill="{MUTED if muted else INK}"{style} dominant-baseline="central">{_marked(text)}</text>'
        )

    def box(
        self, x: float, y: float, width: float, height: float, text: str = "", shape: str = "", colour: str = "plain",
        learned: bool = False, dashed: bool = False, size: float = 15,
    ) -> Box:  # fmt: skip
        """A rectangle with its name and, in small, the shape of what it makes; a thick edge says that it is learned.

        Raises
        ------
        ValueError : a name or a shape that is wider than the box.
        """
        for said, high in ((text, size), (shape, 12.5)):
            if width_of(said, high) > width:
                raise ValueError(f"{said!r} is wider than its box of {width:g}")
        self._shape(
            "rect", f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5"', colour,
            stroke=2.6 if learned else 1.3, dashed=dashed,
        )  # fmt: skip
        middle = y + height / 2
        if text:
            self.text(x + width / 2, middle - (8 if shape else 0), text, size)
        if shape:
            self.text(x + width / 2, middle + (9 if text else 0), shape, 12.5, muted=True)
        return Box(x, y, width, height)

    def circle(self, x: float, y: float, radius: float, text: str = "", colour: str = "plain", size: float = 15) -> Box:
        """A circle around (x, y), such as a sum; its box is the square around it."""
        self._shape("circle", f'cx="{x:g}" cy="{y:g}" r="{radius:g}"', colour)
        if text:
            self.text(x, y, text, size)
        return Box(x - radius, y - radius, 2 * radius, 2 * radius)

    def arrow(
        self, *points: tuple[float, float], text: str = "", colour: str = "plain", dashed: bool = False,
        head: bool = True, side: float = 1, width: float = 1.6, at: float = 0.5,
    ) -> None:  # fmt: skip
        """A line through two points or more, with an arrowhead, and beside it the shape of what it carries.

        Parameters
        ----------
        points : (x, y) each; corners are rounded
        text : beside the line
        side : 1 puts the text above a level line and to the right of an upright one, -1 on the other side
        at : where along the longest part of the line the text stands, 0 ... 1
        """
        path = f"M {points[0][0]:g} {points[0][1]:g}"
        for before, corner, after in zip(points, points[1:], points[2:], strict=False):
            bend = min(8.0, math.dist(before, corner) / 2, math.dist(corner, after) / 2)
            enter, leave = _towards(corner, before, bend), _towards(corner, after, bend)
            path += f" L {enter[0]:g} {enter[1]:g} Q {corner[0]:g} {corner[1]:g} {leave[0]:g} {leave[1]:g}"
        path += f" L {points[-1][0]:g} {points[-1][1]:g}"
        self.curve(path, colour, dashed, head, width)
        if text:
            (x0, y0), (x1, y1) = max(zip(points, points[1:], strict=False), key=lambda ends: math.dist(*ends))
            x, y = x0 + at * (x1 - x0), y0 + at * (y1 - y0)
            if abs(x1 - x0) >= abs(y1 - y0):
                self.text(x, y - 10 * side, text, 12.5, muted=True)
            else:
                self.text(x + 6 * side, y, text, 12.5, anchor="start" if side > 0 else "end", muted=True)

    def curve(
        self, path: str, colour: str = "plain", dashed: bool = False, head: bool = False, width: float = 1.6
    ) -> None:
        """A line along an SVG path, such as "M 0 0 L 10 10"."""
        self._used.add(colour)
        marker = f' marker-end="url(#{self._name}-{colour})"' if head else ""
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(
            f'<path d="{path}" fill="none" stroke="{COLOURS[colour]}" stroke-width="{width:g}"{dashes}{marker}/>'
        )

    def cells(
        self, x: float, y: float, rows: Sequence[Sequence[float | None]], size: float = 20, colour: str = "plain",
        rows_named: Sequence[str] = (), columns_named: Sequence[str] = (), numbers: bool = False,
    ) -> Box:  # fmt: skip
        """A matrix as squares: 0 is empty, 1 is full, None is crossed out, as what a mask hides.

        Parameters
        ----------
        x, y : the upper left corner
        rows : the values in 0 ... 1
        size : of a square
        rows_named, columns_named : beside the rows and above the columns
        numbers : whether to write each value into its square
        """
        for i, row in enumerate(rows):
            for j, value in enumerate(row):
                left, top = x + j * size, y + i * size
                self._shape(
                    "rect", f'x="{left:g}" y="{top:g}" width="{size:g}" height="{size:g}"',
                    "plain" if value is None else colour, filled=(0.45 if numbers else 0.85) * (value or 0), stroke=0.8,
                )  # fmt: skip
                if value is None:
                    ends = f"M {left + 5:g} {top + 5:g} l {size - 10:g} {size - 10:g}"
                    self.curve(f"{ends} m 0 {10 - size:g} l {10 - size:g} {size - 10:g}", width=1)
                elif numbers:
                    self.text(left + size / 2, top + size / 2, f"{value:.2f}".removeprefix("0"), 12)
        for i, name in enumerate(rows_named):
            self.text(x - 6, y + (i + 0.5) * size, name, 13, anchor="end")
        for j, name in enumerate(columns_named):
            self.text(x + (j + 0.5) * size, y - 10, name, 13)
        return Box(x, y, size * max(map(len, rows)), size * len(rows))

    def svg(self) -> str:
        """The picture as a document of its own, which is also a part of a page as it stands."""
        heads = "".join(
            f'<marker id="{self._name}-{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            f'orient="auto-start-reverse"><path d="M 0 0.6 L 8 4 L 0 7.4 z" fill="{COLOURS[name]}"/></marker>'
            for name in sorted(self._used)
        )
        return (
            f'<svg class="diagram" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}" '
            f'width="{self.width:g}" role="img" aria-label="{escape(self.alt)}" '
            'font-family="system-ui, Segoe UI, Roboto, Helvetica, Arial, sans-serif">\n'
            f"<defs>{heads}</defs>\n"
            f'<rect width="{self.width:g}" height="{self.height:g}" fill="{GROUND}"/>\n'
            + "\n".join(self.parts)
            + "\n</svg>\n"
        )

    def _repr_svg_(self) -> str:
        return self.svg()

    def _shape(self, tag, place, colour, filled: float = 0.14, stroke: float = 1.3, dashed: bool = False) -> None:
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(
            f'<{tag} {place} fill="{COLOURS[colour]}" fill-opacity="{filled:.3g}" stroke="{COLOURS[colour]}" '
            f'stroke-width="{stroke:g}"{dashes}/>'
        )


def width_of(text: str, size: float) -> float:
    """About how wide a text is, in units: a little more than fonts without serifs need."""
    narrow = sum(letter in "iljtfrI.,:;'|()[] _" for letter in text)
    wide = sum(letter in "mwMWQ—∑√" for letter in text)
    return size * (0.56 * len(text) - 0.22 * narrow + 0.26 * wide)


def _marked(text: str) -> str:
    """Escaped, with what stands between underscores lowered, and what stands between carets raised."""
    parts = re.split(r"([_^])(.+?)\1", escape(text))
    plain, signs, small = parts[::3], parts[1::3], parts[2::3]
    marked = plain[0]
    for sign, part, after in zip(signs, small, plain[1:], strict=True):
        down, back = ("0.28em", "-0.2em") if sign == "_" else ("-0.5em", "0.36em")
        marked += f'<tspan dy="{down}" font-size="72%">{part}</tspan><tspan dy="{back}">&#8203;</tspan>{after}'
    return marked


def _towards(start, end, distance) -> tuple[float, float]:
    share = distance / max(math.dist(start, end), 1e-9)
    return start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])
