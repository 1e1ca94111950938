"""Open the pages of a built site in Chromium and list what is wrong with each of them."""

import functools
import http.server
import shutil
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlparse

from bs4 import BeautifulSoup
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

INSTALL = (
    "no Chromium was found: install it with `sudo apt-get install chromium` (Debian, Ubuntu) or "
    "`brew install --cask chromium` (macOS), then run the tests again"
)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # a request to another host fails at once
]
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 375, "height": 800}

# Runs in the page. Returns [kind, message] pairs for everything that must hold whatever the colours are.
CONTENT = (Path(__file__).parent / "content_checks.js").read_text(encoding="utf-8")
# Runs in the page, once in light and once in dark mode.
COLOURS = (Path(__file__).parent / "colour_checks.js").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Finding:
    """Something wrong with a page; `kind` is one word, `message` says what and where."""

    page: str
    kind: str
    message: str

    def __str__(self) -> str:
        return f"{self.page}: {self.kind}: {self.message}"


def find_chromium() -> str:
    """The path of a Chromium or Chrome. Raises FileNotFoundError with the way to install one."""
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"):
        if path := shutil.which(name):
            return path
    raise FileNotFoundError(INSTALL)


@contextmanager
def open_browser() -> Iterator[Browser]:
    """A headless browser, closed at the end."""
    path = find_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 64


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder on a free port of this machine; yields its address, which ends in a slash."""
    server = Server(("127.0.0.1", 0), functools.partial(QuietHandler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def pages_of(folder: Path) -> list[str]:
    """Every HTML page of a site, relative to its folder; `_static` holds the theme's fragments, not pages."""
    found = (path.relative_to(folder) for path in folder.rglob("*.html"))
    return sorted(path.as_posix() for path in found if path.parts[0] != "_static")


def is_local(url: str, base: str) -> bool:
    """Whether a request stays on this machine: our own server, or data that is part of the page."""
    return url.startswith((base, "data:", "blob:", "about:"))


# Colours change at once, so that a check does not look at one half-way between two modes.
STILL = """addEventListener("DOMContentLoaded", () => {
  const style = document.createElement("style");
  style.textContent = "* { transition: none !important; animation: none !important; }";
  document.head.append(style);
})"""

# The theme follows the reader's preference with a script; waits for it, two seconds at most.
FOLLOW = """async (scheme) => {
  const root = document.documentElement;
  for (let i = 0; i < 40 && (root.dataset.theme ?? scheme) !== scheme; i++) await new Promise(go => setTimeout(go, 50));
}"""


@contextmanager
def open_window(browser: Browser, base: str) -> Iterator[BrowserContext]:
    """A window whose pages share a cache; closed at the end."""
    context = browser.new_context(base_url=base, viewport=WIDE, color_scheme="light", reduced_motion="reduce")
    context.set_default_timeout(120_000)  # milliseconds; a busy machine is slow, not wrong
    context.add_init_script(STILL)
    try:
        yield context
    finally:
        context.close()


def open_page(page: Page, url: str) -> None:
    """Go to a page, follow it if it redirects, and wait until MathJax has set the mathematics, if there is any."""
    page.goto(url)
    if 'http-equiv="refresh"' in page.request.get(url).text().lower():
        page.wait_for_url(lambda now: now != url)
    page.evaluate("() => window.MathJax?.startup?.promise?.then(() => document.fonts.ready)")


def inspect_page(window: BrowserContext, base: str, name: str) -> list[Finding]:
    """Open one page wide and light, then dark, then on a narrow screen, and list everything wrong with it."""
    found: list[Finding] = []

    def report(kind: str, message: str) -> None:
        found.append(Finding(name, kind, message))

    def on_request(request) -> None:
        if not is_local(request.url, base):
            report("external", f"requests {request.url}")

    page = window.new_page()
    try:
        page.on("request", on_request)
        page.on("console", lambda m: report("console", m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: report("script", str(error)))
        page.on("response", lambda r: report("missing", f"{r.status} {r.url}") if r.status >= 400 else None)
        page.emulate_media(color_scheme="light")
        open_page(page, base + name)
        for kind, message in page.evaluate(CONTENT):
            report(kind, message)
        backgrounds = []
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.evaluate(FOLLOW, scheme)
            result = page.evaluate(COLOURS, scheme)
            backgrounds.append(result["background"])
            for kind, message in result["findings"]:
                report(kind, f"{scheme} mode: {message}")
        if backgrounds[0] == backgrounds[1]:
            report("theme", f"the background is {backgrounds[0]} in light and in dark mode")
        page.set_viewport_size(NARROW)
        page.wait_for_timeout(50)
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > NARROW["width"]:
            widest = page.evaluate("width => window.widestElement(width)", NARROW["width"])
            report("narrow", f"{width} pixels wide on a screen of {NARROW['width']}: {widest}")
    finally:
        page.close()
    return found


def inspect_links(folder: Path) -> list[Finding]:
    """Check every reference in the HTML files: links lead somewhere inside the site, resources are our own."""
    found: list[Finding] = []
    soups = {
        name: BeautifulSoup((folder / name).read_text(encoding="utf-8"), "html.parser") for name in pages_of(folder)
    }
    anchors = {name: {tag["id"] for tag in soup.find_all(id=True)} for name, soup in soups.items()}
    for name, soup in soups.items():
        for tag in soup.find_all(["link", "script", "img", "iframe", "source", "video", "audio"]):
            target = tag.get("src") or tag.get("href") or ""
            if urlparse(target).netloc and tag.get("rel") not in (["canonical"], ["license"]):
                found.append(Finding(name, "external", f"<{tag.name}> refers to {target}"))
        for tag in soup.find_all("a", href=True):
            url, fragment = urldefrag(urljoin(f"http://our.site/{name}", tag["href"]))
            if not url.startswith("http://our.site/"):
                continue
            target = unquote(urlparse(url).path).lstrip("/")
            target = f"{target}index.html" if target.endswith("/") or not target else target
            if not (folder / target).is_file():
                found.append(Finding(name, "link", f"{tag['href']} leads nowhere"))
            elif fragment and target in anchors and unquote(fragment) not in anchors[target]:
                found.append(Finding(name, "link", f"{tag['href']} names no place on that page"))
    return found
