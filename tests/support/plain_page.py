"""A page of the live figures that need no model, and a reader who drags, types and presses keys in it."""

from bs4 import BeautifulSoup

from tests.support.live_page import draw_live

# its colours in the book, where the theme sets them
THEME = """(theme) => {
  document.documentElement.dataset.theme = theme;
  const dark = theme === "dark";
  const [ground, ink, muted] = dark ? ["#121212", "#ced6dd", "#9ca4af"] : ["#fff", "#222832", "#48566b"];
  document.body.style.cssText = `--pst-color-background: ${ground}; --pst-color-text-base: ${ink};
    --pst-color-text-muted: ${muted}; background: ${ground}; color: ${ink}`;
}"""


class Visit:
    """A page of the figures that need no model, with what it asked for and complained of."""

    def __init__(self, page, folder):
        self.page = page
        self.page.set_default_timeout(60_000)
        self.requests, self.complaints = [], []
        self.listeners = {
            "request": lambda request: self.requests.append(request.url),
            "console": lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None,
            "pageerror": lambda error: self.complaints.append(str(error)),
        }
        for event, listener in self.listeners.items():
            page.on(event, listener)
        self.page.goto((folder / "index.html").as_uri())
        self.page.wait_for_selector(".live-said")

    def leave(self):
        """What it listened to, its page and its medium are not there for the next visit in this tab."""
        for event, listener in self.listeners.items():
            self.page.remove_listener(event, listener)
        self.page.goto("about:blank")
        self.page.emulate_media(media="screen")

    def figure(self, name):
        return self.page.locator(f".live-figure[data-live={name}]")

    def said(self, name):
        return self.figure(name).locator(".live-said").inner_text()

    def drag(self, name, label, value):
        """Drag the slider of a label to a value."""
        self.figure(name).get_by_label(label).evaluate(
            "(input, value) => { input.value = value; input.dispatchEvent(new Event('input')); }", value
        )

    def columns(self, name, which=0):
        """The numbers of a table of bars, a list of its rows."""
        rows = self.figure(name).locator(".live-bars").nth(which).locator("tbody tr")
        return [[as_number(cell) for cell in row.locator("td").all_text_contents()[1:]] for row in rows.all()]


def as_number(said):
    return float(said.replace("−", "-"))


def drawn(name):
    return BeautifulSoup((draw_live.FOLDER / f"{name}.svg").read_text(encoding="utf-8"), "html.parser").svg
