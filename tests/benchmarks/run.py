"""Time the library against its peers, each figure as a ratio in one run: what `make bench` runs.

Smaller is better: 0.80 means that ours needs 0.80 of the peer's time.
"""

import argparse
import json
import os
import platform
import time
from importlib.metadata import version
from pathlib import Path

from compare import Pool, compare
from figures import all_figures

PACKAGES = ("numpy", "torch", "tensorflow", "keras", "transformers")


def main() -> int:
    """Parse the command line, run, print, and write the files asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds: a first look, not a figure to quote")
    parser.add_argument("--threads", type=int, default=2, help="threads for each process (default: 2)")
    parser.add_argument(
        "--cpu-time",
        action="store_true",
        help="compare processor time, not time: for a machine that others use; with --threads 1, since threads "
        "that wait actively count as busy",
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="only the figures whose name contains TEXT")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results as JSON")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the results as a Markdown table")
    options = parser.parse_args()
    clock = "cpu" if options.cpu_time else "wall"
    seconds, rounds = (1.0, 3) if options.quick else (6.0, 9)

    figures = [figure for figure in all_figures() if options.only in figure.name]
    if not figures:
        parser.error(f"no figure's name contains {options.only!r}")
    setting = machine(options.threads, clock)
    print(setting)
    print(__doc__.splitlines()[2] + " In brackets the quartiles over the rounds.\n")
    start, results = time.time(), []
    with Pool(options.threads) as pool:
        for figure in figures:
            print(figure.name, flush=True)
            found = compare(figure, pool, seconds, rounds, clock)
            for result in found:
                print(line(result), flush=True)
            results += found
    marks = [v for r in results for v in (r["verdict"], r["memory_verdict"]) if v]
    print(f"\n{marks.count('met')} of {len(marks)} marks met, in {time.time() - start:.0f} s")
    if options.json:
        document = {"machine": setting, "quick": options.quick, "results": results}
        options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    if options.markdown:
        options.markdown.write_text(markdown(setting, results), encoding="utf-8")
    return 0


def machine(threads: int, clock: str) -> str:
    """The machine and the versions in one paragraph."""
    cpu = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), cpu)
    except OSError:
        pass
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    unit = "threads" if threads > 1 else "thread"
    return (
        f"{'time' if clock == 'wall' else 'processor time'} on {cpu}, {threads} {unit} of {os.cpu_count()} processors, "
        f"float32, Python {platform.python_version()}, {versions}"
    )


def line(result: dict) -> str:
    """One subject's line of the table on the terminal."""
    text = f"    {result['subject']:<42} {result['ratio']:5.2f} [{result['low']:.2f}, {result['high']:.2f}]"
    text += f"  {100 * result['share']:3.0f}% of the matrix-product rate"
    if result["target"] is not None:
        text += f"  target {result['target']:.2f}: {result['verdict']}"
    if result["memory"] is not None:
        text += f"  | peak memory {result['memory']:.2f} {result['memory_verdict']}"
    return text


def markdown(setting: str, results: list[dict]) -> str:
    """All results as a table that a page of the book includes."""
    rows = [f"Measured: {setting}.\n"]
    rows.append("| Figure | Ours | Time | Quartiles | Target | Peak memory | Share of the matrix-product rate |")
    rows.append("|---|---|--:|:-:|---|--:|--:|")
    for r in results:
        if r["subject"] == r["peer"]:
            continue
        target = "" if r["target"] is None else f"{r['target']:.2f}, {r['verdict']}"
        memory = "" if r["memory"] is None else f"{r['memory']:.2f}"
        spread = f"{r['low']:.2f} to {r['high']:.2f}"
        share = f"{100 * r['share']:.0f}%"
        rows.append(f"| {r['figure']} | {r['subject']} | {r['ratio']:.2f} | {spread} | {target} | {memory} | {share} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
