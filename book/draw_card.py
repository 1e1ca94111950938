"""Draw the card that stands for a link to the book where people share it: title, subject, the welcome page's arcs.

    python book/draw_card.py

reads book/_static/welcome.svg and writes book/_static/card.png, 1200 x 630 pixels. Needs Chromium; set with the font
Inter where it is installed. The services that show such cards take no SVG.
"""

import base64
import shutil
from pathlib import Path

from draw_readme import GROUND, WELCOME, standalone
from playwright.sync_api import sync_playwright

CARD = WELCOME.with_name("card.png")
WIDTH, HEIGHT = 1200, 630
PAGE = """<!doctype html><meta charset="utf-8"><style>
  body {{ margin: 0; width: {width}px; height: {height}px; box-sizing: border-box; padding: 58px 72px; color: #1b1b1b;
         background: #fdfcf8; border-top: 14px solid #1f6b7e; font-family: Inter, system-ui, sans-serif; }}
  header {{ display: flex; align-items: center; gap: 30px; }}
  header img {{ width: 104px; height: 104px; }}
  h1 {{ margin: 0; font-size: 65px; font-weight: 700; letter-spacing: -.02em; white-space: nowrap; }}
  p {{ margin: 22px 0 0; font-size: 29.5px; color: #444; white-space: nowrap; }}
  .arcs {{ position: absolute; left: 72px; bottom: 36px; width: 1056px; }}
</style>
<header><img src="data:image/svg+xml;base64,{logo}" alt=""><h1>Attention and Transformers</h1></header>
<p>From the formula to a fine-tuned BERT, in NumPy, PyTorch and TensorFlow</p>
<div class="arcs">{arcs}</div>
"""


def page() -> str:
    """The card as an HTML page."""
    logo = base64.b64encode(WELCOME.with_name("logo.svg").read_bytes()).decode()
    arcs = standalone(WELCOME.read_text(encoding="utf-8")).replace(GROUND, "").replace("system-ui", "Inter, system-ui")
    return PAGE.format(width=WIDTH, height=HEIGHT, logo=logo, arcs=arcs)


def draw(path: Path) -> None:
    """Take the picture of the page."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        window = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        window.set_content(page())
        window.screenshot(path=path)
        browser.close()


if __name__ == "__main__":
    draw(CARD)
    print(f"{CARD} is drawn")
