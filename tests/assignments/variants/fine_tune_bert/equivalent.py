"""Generated changes of the reference that are right all the same: by cell and change, with the reason."""

GRID = "grid = np.geomspace(0.1, 30, 600)"
MEAN = "return (hidden * real).sum(axis=1) / np.maximum"
LOSSES = "losses = np.log(np.exp(scaled).sum(axis=2)) - scaled[:, np.arange(len(labels)), labels]"

EQUIVALENT = {
    ("first-and-last", "if len(ids) <= max_len:  ->  if len(ids) < max_len:"):
        "of a text of max_len ids, both ends are all of it",
    ("mean-of-tokens", f"{MEAN}(real.sum(axis=1), 1)  ->  {MEAN}(1, real.sum(axis=1))"): "the larger of two numbers",
    ("temperature", f"{GRID}  ->  grid = np.geomspace(30, 0.1, 600)"): "the same grid, from its other end",
    ("temperature", f"{GRID}  ->  grid = np.geomspace(0.1, 31, 600)"): "the true T lies between 0.2 and 20",
    ("temperature", f"{GRID}  ->  grid = np.geomspace(0.1, 29, 600)"): "the true T lies between 0.2 and 20",
    ("temperature", f"{GRID}  ->  grid = np.geomspace(0.1, 30, 601)"): "steps of one per cent as well",
    ("temperature", f"{GRID}  ->  grid = np.geomspace(0.1, 30, 599)"): "steps of one per cent as well",
    (
        "temperature",
        "return float(grid[losses.mean(axis=1).argmin()])  ->  return grid[losses.mean(axis=1).argmin()]",
    ): "NumPy's number is a plain number, too",
    ("temperature", f"{LOSSES}  ->  {LOSSES.replace('.sum(', '.mean(')}"):
        "the loss less a constant, the logarithm of the number of classes",
    ("temperature", f"{LOSSES}  ->  {LOSSES.replace('len(labels)', 'len(logits)')}"): "there are as many of both",
}  # fmt: skip
