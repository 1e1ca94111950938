"""Draw the picture of the README: the one of the welcome page, with a ground and colours of its own.

    python book/draw_readme.py

reads book/_static/welcome.svg and writes book/_static/readme.svg. A repository page shows an SVG file as an
image, which sees neither the page's style sheet nor its dark mode; on its own light ground it reads in both.
"""

from pathlib import Path

STATIC = Path(__file__).parent / "_static"
WELCOME, README = STATIC / "welcome.svg", STATIC / "readme.svg"
COLOURS = {
    "var(--welcome-strong)": "#c4661f",
    "var(--welcome-weak)": "#1f6b7e",
    "var(--pst-color-text-muted, #555)": "#555",
    "currentColor": "#1b1b1b",
    'font-family="inherit"': 'font-family="system-ui, sans-serif"',
    'class="welcome" ': "",
}
GROUND = '<rect x="0" y="30" width="100%" height="100%" rx="14" fill="#fdfcf8" stroke="#d8d4c8"/>\n'


def standalone(svg: str) -> str:
    """Return the drawing with fixed colours on a light ground."""
    for name, value in COLOURS.items():
        svg = svg.replace(name, value)
    head, body = svg.split("\n", 1)
    return f"{head}\n{GROUND}{body}"


if __name__ == "__main__":
    README.write_text(standalone(WELCOME.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"{README} is drawn")
