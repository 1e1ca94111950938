"""Draw the picture of the welcome page: what the word "it" attends to in one head of the pretrained BERT.

    python book/draw_welcome.py

writes book/_static/welcome.svg. The page includes the file as it is, so its colours follow light and dark mode.
"""

from html import escape
from pathlib import Path

import numpy as np

from course_lib.numpy import BertModel
from course_lib.text.wordpiece import WordPiece

SENTENCE = "The animal did not cross the street because it was too tired."
WORD, LAYER, HEAD = "it", 4, 2  # layer and head are counted from one
TARGET = Path(__file__).parent / "_static" / "welcome.svg"
CHARACTER, GAP, BASE, HEIGHT = 9.6, 13, 225, 262


def attention_of_word() -> tuple[list[str], int, np.ndarray]:
    """The tokens of the sentence, the place of the word among them, and its attention weights, shape (T,)."""
    tokenizer = WordPiece.from_pretrained("minilm-l6")
    encoded = tokenizer.encode([SENTENCE])
    tokens = tokenizer.tokens(encoded.ids[0])
    outputs = BertModel.from_pretrained("minilm-l6")(encoded.ids, return_layers=True)
    place = tokens.index(WORD)
    return tokens, place, np.asarray(outputs.weights[LAYER - 1])[0, HEAD - 1, place]


def draw(tokens: list[str], place: int, weights: np.ndarray) -> str:
    """The picture as an SVG document without fixed colours for text and ground."""
    widths = [len(token) * CHARACTER for token in tokens]
    lefts = [sum(widths[:i]) + GAP * i + GAP for i in range(len(tokens))]
    centres = [left + width / 2 for left, width in zip(lefts, widths, strict=True)]
    total = lefts[-1] + widths[-1] + GAP
    best = int(weights.argmax())
    arcs, words = [], []
    for i, (token, centre, weight) in enumerate(zip(tokens, centres, weights, strict=True)):
        colour = "var(--welcome-strong)" if i == best else "var(--welcome-weak)"
        reach = abs(centre - centres[place]) / 2
        height = min(0.62 * reach, BASE - 45)
        if i == place:
            path = f"M {centre - 6:.0f} {BASE - 20} c -14 -34 26 -34 12 0"
        else:
            path = f"M {centres[place]:.0f} {BASE - 20} A {reach:.0f} {height:.0f} 0 0 "
            path += f"{int(centre > centres[place])} {centre:.0f} {BASE - 20}"
        # The area of a line is what the eye compares, so the width is in proportion to the weight.
        arcs.append(
            f'  <path d="{path}" fill="none" stroke="{colour}" stroke-width="{max(14 * weight, 0.4):.1f}" '
            f'stroke-linecap="round" opacity="{0.35 + 0.65 * weight:.2f}"/>'
        )
        strong = ' font-weight="700"' if i in (place, best) else ""
        words.append(
            f'  <text x="{centre:.0f}" y="{BASE}" fill="currentColor"{strong}>{escape(token)}</text>\n'
            f'  <text x="{centre:.0f}" y="{BASE + 22}" fill="var(--pst-color-text-muted, #555)" font-size="12.5">'
            f"{weight:.2f}</text>"
        )
    title = (
        f"What “{WORD}” attends to in the sentence “{SENTENCE}”: {weights[best]:.2f} of its attention goes to "
        f"“{tokens[best]}”."
    )
    return (
        f'<svg class="welcome" xmlns="http://www.w3.org/2000/svg" viewBox="0 30 {total:.0f} {HEIGHT - 30}" '
        f'role="img" aria-label="{escape(title)}">\n'
        '<g font-family="inherit" font-size="16" text-anchor="middle">\n'
        + "\n".join(arcs[:best] + arcs[best + 1 :] + [arcs[best]] + words)
        + "\n</g>\n</svg>\n"
    )


if __name__ == "__main__":
    TARGET.write_text(draw(*attention_of_word()), encoding="utf-8")
    print(f"{TARGET} is drawn")
