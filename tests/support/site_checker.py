"""Open the pages of a built site in Chromium and list what is wrong with each of them."""

import functools
import html.parser
import http.server
import re
import shutil
import socketserver
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlparse

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
RESOURCES = ("link", "script", "img", "iframe", "source", "video", "audio")
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 360, "height": 780}

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
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS, timeout=600_000)
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


CODE = re.compile('<div class="highlight">.*?</pre>', re.DOTALL)
ELEMENT = re.compile(r'<([a-z][a-z0-9]*)(?=[\s>])(?:[^>]*?\sclass="([^"]*)")?|\sstyle="([^"]*)"')


def telling_pages(folder: Path) -> list[str]:
    """The pages to open in a browser: all that somebody wrote, and of the listings of our modules a few.

    A listing is code in the theme's template. So the one with the longest name is opened, and of the others, from the
    longest file on, each that has an element of a kind and class that no one before it had.
    """
    pages = pages_of(folder)
    listings = [name for name in pages if name.startswith("_modules/") and name.count("/") > 1]
    listings.sort(key=lambda name: (-len(Path(name).with_suffix("").as_posix()), name))
    written = set(pages) - set(listings)
    return sorted(written | pages_of_new_kinds(folder, listings[1:], listings[:1]))


def pages_of_new_kinds(folder: Path, pages: Iterable[str], first: Iterable[str] = (), code: bool = True) -> set[str]:
    """Of these pages, those of which the rest is made: each has an element of a kind and class that no longer one has.

    `first` are seen before all others. Without `code` its words are no elements.
    """
    rest = sorted(pages, key=lambda name: (-(folder / name).stat().st_size, name))
    seen, found = set(), set()
    for name in [*first, *rest]:
        text = (folder / name).read_text(encoding="utf-8")
        elements = set(ELEMENT.findall(text if code else CODE.sub("", text)))
        if not elements <= seen:
            found.add(name)
            seen |= elements
    return found


def is_local(url: str, base: str) -> bool:
    """Whether a request stays on this machine: our own server, or data that is part of the page."""
    return url.startswith((base, "data:", "blob:", "about:"))


# Colours change at once, so that a check does not look at one half-way between two modes.
STILL = """addEventListener("DOMContentLoaded", () => {
  const style = document.createElement("style");
  style.textContent = "* { transition: none !important; animation: none !important; }";
  document.head.append(style);
})"""

# The theme follows the reader's preference with a script; waits for it, a minute at most.
FOLLOW = """async (scheme) => {
  const root = document.documentElement;
  const follows = () => (root.dataset.theme ?? scheme) === scheme;
  for (let i = 0; i < 1200 && !follows(); i++) await new Promise(go => setTimeout(go, 50));
}"""

# The width of the page, which a script may still be fitting to the screen; waits for it, five seconds at most.
FITTED = """async (width) => {
  const root = document.documentElement;
  for (let i = 0; i < 100 && root.scrollWidth > width; i++) await new Promise(go => setTimeout(go, 50));
  return root.scrollWidth;
}"""


@contextmanager
def open_window(browser: Browser, base: str) -> Iterator[BrowserContext]:
    """A window whose pages share a cache; closed at the end."""
    context = browser.new_context(base_url=base, viewport=WIDE, color_scheme="light", reduced_motion="reduce")
    context.set_default_timeout(600_000)  # milliseconds; a busy machine is slow, not wrong
    context.add_init_script(STILL)
    try:
        yield context
    finally:
        context.close()


HEAVIEST = 2_000_000  # bytes of a page, uncompressed, when nobody has scrolled or touched anything

# Pictures that wait until a reader comes near are loaded now.
PICTURES = """() => Promise.all([...document.images].filter((img) => img.loading === "lazy").map((img) => {
  img.loading = "eager";
  return img.complete || new Promise((go) => { img.onload = img.onerror = go; });
}))"""


def weight_of(page: Page) -> int:
    """The bytes of a page from a server and of all that it has asked for so far, from there or from the cache."""
    asked = page.evaluate("() => performance.getEntriesByType('resource').map((entry) => entry.name)")
    heads = [page.request.head(url) for url in {page.url.partition("#")[0], *asked} if url.startswith("http://127.")]
    return sum(int(head.headers["content-length"]) for head in heads if head.ok)


def open_page(page: Page, url: str) -> int:
    """Go to a page, follow it if it redirects, and wait for its pictures and until MathJax has set its mathematics.

    Returns the page's weight before a reader touches it, in bytes: that of what no picture further down has added.
    """
    page.goto(url)
    if 'http-equiv="refresh"' in page.request.get(url).text().lower():
        page.wait_for_url(lambda now: now != url)
    page.evaluate("() => window.MathJax?.startup?.promise?.then(() => document.fonts.ready)")
    weight = weight_of(page)
    page.evaluate(PICTURES)
    return weight


def inspect_page(page: Page, base: str, name: str, use: Callable[[Page], None] | None = None) -> list[Finding]:
    """Show one page of a site wide and light, then dark, then on a narrow screen, and list everything wrong with it.

    `page` is a tab that may have shown another: a new one for each would start a process and read MathJax anew. `use`
    is called with it in the end, when it is wide and light again: to open a page takes longer than to look.
    """
    found: list[Finding] = []

    def report(kind: str, message: str) -> None:
        found.append(Finding(name, kind, message))

    def on_request(request) -> None:
        if not is_local(request.url, base):
            report("external", f"requests {request.url}")

    listeners = {
        "request": on_request,
        "console": lambda m: report("console", m.text) if m.type == "error" else None,
        "pageerror": lambda error: report("script", str(error)),
        "response": lambda r: report("missing", f"{r.status} {r.url}") if r.status >= 400 else None,
    }
    page.goto("about:blank")  # so that nothing is heard of the page before, nor its layout made anew
    page.set_viewport_size(WIDE)
    page.emulate_media(color_scheme="light")
    for event, listener in listeners.items():
        page.on(event, listener)
    try:
        if (weight := open_page(page, base + name)) > HEAVIEST:
            report("weight", f"{weight / 1e6:.2f} MB before the first touch, uncompressed")
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
        width = page.evaluate(FITTED, NARROW["width"])
        if width > NARROW["width"]:
            widest = page.evaluate("width => window.widestElement(width)", NARROW["width"])
            report("narrow", f"{width} pixels wide on a screen of {NARROW['width']}: {widest}")
        if use is not None:
            page.set_viewport_size(WIDE)
            page.emulate_media(color_scheme="light")
            use(page)
    finally:
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
    return found


class Tags(html.parser.HTMLParser):
    """The tags of a page that refer to something, and all its anchors."""

    def __init__(self, text: str):
        super().__init__()
        self.references, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if "id" in found:
            self.anchors.add(found["id"])
        if tag == "a" or tag in RESOURCES:
            self.references.append((tag, found))


def inspect_links(folder: Path) -> list[Finding]:
    """Check every reference in the HTML files: links lead somewhere inside the site, resources are there, and ours."""
    found: list[Finding] = []
    pages = {name: Tags((folder / name).read_text(encoding="utf-8")) for name in pages_of(folder)}
    for name, page in pages.items():
        for tag, attributes in page.references:
            if tag == "a":
                found += _broken_link(folder, name, attributes["href"], pages) if "href" in attributes else []
                continue
            target = attributes.get("src") or attributes.get("href") or ""
            parts = urlparse(target)
            if parts.netloc and attributes.get("rel") not in ("canonical", "license"):
                found.append(Finding(name, "external", f"<{tag}> refers to {target}"))
            elif parts.path and not parts.scheme and not (folder / name).parent.joinpath(unquote(parts.path)).exists():
                found.append(Finding(name, "missing", f"<{tag}> refers to {target}"))
    return found


def _broken_link(folder: Path, name: str, link: str | None, pages: dict[str, Tags]) -> list[Finding]:
    url, fragment = urldefrag(urljoin(f"http://our.site/{name}", link or ""))
    if not url.startswith("http://our.site/"):
        return []
    target = unquote(urlparse(url).path).lstrip("/")
    target = f"{target}index.html" if target.endswith("/") or not target else target
    if not (folder / target).is_file():
        return [Finding(name, "link", f"{link} leads nowhere")]
    if fragment and target in pages and unquote(fragment) not in pages[target].anchors:
        return [Finding(name, "link", f"{link} names no place on that page")]
    return []
