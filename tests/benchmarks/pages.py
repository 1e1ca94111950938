"""What the pages of the built book weigh, and when a reader can use them: python tests/benchmarks/pages.py, by hand.

    python tests/benchmarks/pages.py [FOLDER] [PAGE ...]     a minute for all lectures; _build/html by default

Chromium opens each page anew, from a server on this machine and with nothing in its cache, at 1,280 by 900 pixels. In
seconds since it was asked for: when the first words stand there; when the page is usable, which is when the last task
of more than 50 ms has ended of those that load it and set its formulas, so that a touch is answered at once; and the
longest of these tasks. The least of three. What was measured stands in the README beside this file.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.support.site_checker import open_browser, open_window, serve, weight_of

ROOT = Path(__file__).parents[2]
REPEATS = 3
WATCH = "window.tasks = []; new PerformanceObserver((list) => tasks.push(...list.getEntries().map((entry) => \
[entry.startTime, entry.duration]))).observe({ type: 'longtask', buffered: true });"
TIMES = """async () => {
  await window.MathJax?.startup?.promise;
  await document.fonts.ready;
  await new Promise((go) => setTimeout(go, 300));  // the observer hears of a task after its end
  const first = performance.getEntriesByName("first-contentful-paint")[0].startTime;
  const ends = tasks.map(([start, length]) => start + length), lengths = tasks.map(([, length]) => length);
  return [first, Math.max(first, ...ends), Math.max(0, ...lengths)].map((milliseconds) => milliseconds / 1000);
}"""


def measure(browser, base: str, name: str) -> tuple[int, list[float]]:
    """(bytes, [first words, usable, longest task] in seconds) of one visit."""
    with open_window(browser, base) as window:
        page = window.new_page()
        page.add_init_script(WATCH)
        page.goto(name)
        return weight_of(page), page.evaluate(TIMES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "_build" / "html")
    parser.add_argument("pages", nargs="*", metavar="PAGE")
    asked = parser.parse_args()
    names = asked.pages or sorted(f"notebooks/{path.name}" for path in asked.folder.glob("notebooks/*.html"))
    print("MB    first words  usable  longest task")
    with serve(asked.folder) as base, open_browser() as browser:
        for name in names:
            visits = [measure(browser, base, name) for _ in range(REPEATS)]
            first, usable, longest = (min(times) for times in zip(*(times for _, times in visits), strict=True))
            print(f"{visits[0][0] / 1e6:.2f}  {first:11.2f}  {usable:6.2f}  {longest:12.2f}  {name}", flush=True)


if __name__ == "__main__":
    main()
