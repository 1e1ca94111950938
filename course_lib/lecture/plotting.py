"""Figures of the lectures: attention tables as heatmaps, and one style for every other plot.

Colours are those of Okabe and Ito (2008), which people with any kind of colour-blindness can tell apart; heatmaps
use one sequential colour map whose lightness alone carries the value. Figures have their own light background, so
that they read on a light and on a dark page.
"""

import numpy as np

from course_lib._extras import needed

with needed("lectures"):
    import matplotlib.pyplot as plt
    from matplotlib import ticker

BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY, YELLOW = COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442",
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
"""One marker for each colour: a line is told apart by its shape as well."""

HEAT = "cividis"


def use_style() -> None:
    """Set the lectures' style for every figure that follows: sizes, colours with markers, a light grid."""
    plt.rcParams.update(
        {
            "figure.figsize": (6.4, 3.6),
            "figure.dpi": 110,
            "figure.facecolor": "white",
            "figure.constrained_layout.use": True,
            "axes.prop_cycle": plt.cycler(color=COLOURS, marker=MARKERS),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.titlesize": 11,
            "axes.titlelocation": "left",
            "grid.color": "#dddddd",
            "grid.linewidth": 0.7,
            "lines.markersize": 4.5,
            "legend.frameon": False,
            "image.cmap": HEAT,
        }
    )


def heatmap(weights, queries, keys, title: str = "", ax=None, numbers: bool | None = None, vmax: float = 1.0):
    """One table of attention weights: a row for each query, a column for each key.

    Parameters
    ----------
    weights : array, shape (T, S)
    queries, keys : the labels of the T rows and S columns, such as tokens
    title : above the table
    ax : axes to draw on; new ones when None
    numbers : whether to write each weight into its cell; None writes them into tables of up to 8 x 8
    vmax : the weight shown in the brightest colour; 0 is always the darkest

    Returns
    -------
    The matplotlib axes.

    Raises
    ------
    ValueError : the labels do not fit the shape of the weights.
    """
    weights = np.asarray(weights)
    if weights.shape != (len(queries), len(keys)):
        raise ValueError(
            f"weights must have shape (T, S) = ({len(queries)}, {len(keys)}) to go with the labels, got {weights.shape}"
        )
    if ax is None:
        _, ax = plt.subplots(figsize=(1.6 + 0.55 * len(keys), 1.2 + 0.45 * len(queries)))
    ax.imshow(weights, vmin=0.0, vmax=vmax, cmap=HEAT, aspect="auto")
    ax.set_xticks(range(len(keys)), keys, rotation=45 if max(map(len, keys)) > 3 else 0, ha="center")
    ax.set_yticks(range(len(queries)), queries)
    ax.set(title=title, xlabel="keys (attended to)", ylabel="queries (attending)")
    ax.grid(False)
    ax.spines[:].set_visible(False)
    if numbers if numbers is not None else max(weights.shape) <= 8:
        for (t, s), weight in np.ndenumerate(weights):
            colour = "white" if weight < 0.55 * vmax else "black"
            ax.text(s, t, f"{weight:.2f}", ha="center", va="center", color=colour, fontsize=9)
    return ax


def head_grid(weights, queries, keys=None, title: str = "", names=None, columns: int = 4, vmax: float = 1.0):
    """The tables of several heads side by side, with one colour bar for all.

    Parameters
    ----------
    weights : array, shape (H, T, S)
    queries, keys : the labels; keys are the queries when None
    title : above the figure
    names : one title for each table; "head 0", "head 1", ... when None
    columns : tables in a row
    vmax : the weight shown in the brightest colour

    Returns
    -------
    The matplotlib figure.

    Raises
    ------
    ValueError : the labels do not fit the shape of the weights.
    """
    weights = np.asarray(weights)
    keys = queries if keys is None else keys
    names = [f"head {h}" for h in range(len(weights))] if names is None else names
    columns = min(columns, len(weights))
    rows = -(-len(weights) // columns)
    size = (1.2 + columns * (0.7 + 0.2 * len(keys)), 0.9 + rows * (0.8 + 0.2 * len(queries)))
    fig, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, sharex=True, sharey=True)
    for ax in axes.flat[len(weights) :]:
        ax.set_axis_off()
    for ax, table, name in zip(axes.flat, weights, names, strict=False):
        heatmap(table, queries, keys, name, ax, numbers=False, vmax=vmax)
        ax.tick_params(axis="x", rotation=90, labelsize=8)
        ax.tick_params(axis="y", labelsize=8)
        ax.label_outer()
    fig.colorbar(axes[0, 0].images[0], ax=axes, label="weight", shrink=0.8)
    fig.suptitle(title, x=0.01, ha="left")
    return fig


def log_log(ax, x, xlabel: str, ylabel: str, title: str = "") -> None:
    """Make both axes logarithmic to the base two or ten, with the plain values of `x` as ticks."""
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks(x)
    ax.xaxis.set_major_formatter(ticker.ScalarFormatter())
    ax.minorticks_off()
    ax.set(xlabel=xlabel, ylabel=ylabel, title=title)
