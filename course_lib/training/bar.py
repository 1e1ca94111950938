"""A training's progress bar: how far it is, its losses, its speed."""

import numpy as np
from tqdm import tqdm

RECENT = 50  # updates, over which loss and speed are means


class Bar:
    """A bar that shows a `Run` inside `with Bar() as bar:`."""

    def __init__(self, show: bool = True):
        self.bar, self.fresh = tqdm(disable=not show, unit="batch"), True

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *error) -> None:
        self.bar.close()

    def show(self, run) -> None:
        """Show where a run is; its losses only when they are known, since each look at one holds up an accelerator."""
        if self.bar.disable:
            return
        if self.fresh:  # what a resumed training did before it was saved says nothing of its speed
            self.bar.initial = self.bar.n = self.bar.last_print_n = run.step - 1
            self.bar.total, self.fresh = run.limits.updates(run), False
        self.bar.update(run.step - self.bar.n)
        if not run.losses.pending:
            first = max(0, run.step - RECENT)
            seconds = run.seconds[-1] - (run.seconds[first - 1] if first else 0.0)
            speed = f"{sum(run.tokens[first:]) / max(seconds, 1e-9):,.0f} tokens/s"
            valid = f", valid {run.validation[-1].nll:.3f}" if run.validation else ""
            self.bar.total = run.limits.updates(run)
            self.bar.set_postfix_str(f"loss {np.mean(run.losses.known[first:]):.3f}{valid}, {speed}")
