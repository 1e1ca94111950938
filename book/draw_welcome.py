"""Draw the picture of the welcome page: what the word "it" attends to in one head of the pretrained BERT.

    python book/draw_welcome.py

writes book/_static/welcome.svg, and welcome-narrow.svg for a telephone, where the sentence runs downwards. The page
includes the files as they are, so their colours follow light and dark mode, and shows the one that it has room for.
"""

from html import escape
from pathlib import Path

import numpy as np

from course_lib.numpy import BertModel
from course_lib.text.wordpiece import WordPiece

SENTENCE = "The animal did not cross the street because it was too tired."
WORD, LAYER, HEAD = "it", 4, 2  # layer and head are counted from one
TARGET = Path(__file__).parent / "_static" / "welcome.svg"
NARROW = TARGET.with_name("welcome-narrow.svg")
CHARACTER, GAP, BASE, HEIGHT = 9.6, 13, 225, 262
LINE, SIDE, WIDTH = 25, 190, 340  # of the narrow picture: from token to token, where they begin, and its width


def attention_of_word() -> tuple[list[str], int, np.ndarray]:
    """The tokens of the sentence, the place of the word among them, and its attention weights, shape (T,)."""
    tokenizer = WordPiece.from_pretrained("minilm-l6")
    encoded = tokenizer.encode([SENTENCE])
    tokens = tokenizer.tokens(encoded.ids[0])
    outputs = BertModel.from_pretrained("minilm-l6")(encoded.ids, return_layers=True)
    place = tokens.index(WORD)
    return tokens, place, np.asarray(outputs.weights[LAYER - 1])[0, HEAD - 1, place]


def said(tokens: list[str], weights: np.ndarray) -> str:
    """The picture in words."""
    return (
        f"What “{WORD}” attends to in the sentence “{SENTENCE}”: {weights.max():.2f} of its attention goes to "
        f"“{tokens[int(weights.argmax())]}”."
    )


def stroke(weight: float, strongest: bool) -> str:
    """How the line of a weight is drawn: the eye compares areas, so its width is in proportion to the weight."""
    return (
        f'fill="none" stroke="var(--welcome-{"strong" if strongest else "weak"})" '
        f'stroke-width="{max(14 * weight, 0.4):.1f}" stroke-linecap="round" opacity="{0.35 + 0.65 * weight:.2f}"'
    )


def draw(tokens: list[str], place: int, weights: np.ndarray) -> str:
    """The picture as an SVG document without fixed colours for text and ground."""
    widths = [len(token) * CHARACTER for token in tokens]
    lefts = [sum(widths[:i]) + GAP * i + GAP for i in range(len(tokens))]
    centres = [left + width / 2 for left, width in zip(lefts, widths, strict=True)]
    total = lefts[-1] + widths[-1] + GAP
    best = int(weights.argmax())
    arcs, words = [], []
    for i, (token, centre, weight) in enumerate(zip(tokens, centres, weights, strict=True)):
        reach = abs(centre - centres[place]) / 2
        height = min(0.62 * reach, BASE - 45)
        if i == place:
            path = f"M {centre - 6:.0f} {BASE - 20} c -14 -34 26 -34 12 0"
        else:
            path = f"M {centres[place]:.0f} {BASE - 20} A {reach:.0f} {height:.0f} 0 0 "
            path += f"{int(centre > centres[place])} {centre:.0f} {BASE - 20}"
        arcs.append(f'  <path d="{path}" {stroke(weight, i == best)}/>')
        strong = ' font-weight="700"' if i in (place, best) else ""
        words.append(
            f'  <text x="{centre:.0f}" y="{BASE}" fill="currentColor"{strong}>{escape(token)}</text>\n'
            f'  <text x="{centre:.0f}" y="{BASE + 22}" fill="var(--pst-color-text-muted, #555)" font-size="12.5">'
            f"{weight:.2f}</text>"
        )
    parts = arcs[:best] + arcs[best + 1 :] + [arcs[best]] + words
    return document(f"0 30 {total:.0f} {HEIGHT - 30}", said(tokens, weights), ' text-anchor="middle"', parts)


def draw_narrow(tokens: list[str], place: int, weights: np.ndarray) -> str:
    """The same picture with a token on each line, its share at the end of it, and the arcs on the left."""
    best = int(weights.argmax())
    lines = [LINE * (i + 0.5) for i in range(len(tokens))]
    arcs, words = [], []
    for i, (token, y, weight) in enumerate(zip(tokens, lines, weights, strict=True)):
        reach = abs(y - lines[place]) / 2
        if i == place:
            path = f"M {SIDE - 12} {y - 5:.0f} c -26 -9 -26 19 0 10"
        else:
            path = f"M {SIDE - 12} {lines[place]:.0f} A {min(1.2 * reach, SIDE - 30):.0f} {reach:.0f} 0 0 "
            path += f"{int(y < lines[place])} {SIDE - 12} {y:.0f}"
        arcs.append(f'  <path d="{path}" {stroke(weight, i == best)}/>')
        strong = ' font-weight="700"' if i in (place, best) else ""
        words.append(
            f'  <text x="{SIDE}" y="{y + 5:.0f}" fill="currentColor"{strong}>{escape(token)}</text>\n'
            f'  <text x="{WIDTH - 10}" y="{y + 5:.0f}" fill="var(--pst-color-text-muted, #555)" text-anchor="end">'
            f"{weight:.2f}</text>"
        )
    parts = arcs[:best] + arcs[best + 1 :] + [arcs[best]] + words
    return document(f"0 0 {WIDTH} {LINE * len(tokens)}", said(tokens, weights), "", parts)


def document(view: str, title: str, anchor: str, parts: list[str]) -> str:
    """Arcs and words as a whole SVG document."""
    return (
        f'<svg class="welcome" xmlns="http://www.w3.org/2000/svg" viewBox="{view}" role="img" '
        f'aria-label="{escape(title)}">\n<g font-family="inherit" font-size="16"{anchor}>\n'
        + "\n".join(parts)
        + "\n</g>\n</svg>\n"
    )


if __name__ == "__main__":
    found = attention_of_word()
    for path, picture in ((TARGET, draw(*found)), (NARROW, draw_narrow(*found))):
        path.write_text(picture, encoding="utf-8")
        print(f"{path} is drawn")
