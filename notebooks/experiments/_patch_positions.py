"""What a Vision Transformer has learned of where its patches stand, and what it does without."""

import numpy as np
import torch


def answers(model, images) -> np.ndarray:
    """The class that a model gives each image (N, C, height, width): (N,)."""
    with torch.no_grad():
        parts = torch.from_numpy(np.ascontiguousarray(images)).split(250)
        return np.concatenate([model(part).logits.argmax(-1).numpy() for part in parts])


def position_grid(table, draws: int = 1000) -> dict:
    """Whether near patches have similar positions: the correlation of their cosine with their distance on the grid.

    Beside it the least and the largest that 95% of grids with shuffled patches have.

    Parameters
    ----------
    table : the positions of a square of patches, row by row, shape (N, d_model)
    draws : how many are shuffled
    """
    table, edge = np.asarray(table, dtype=np.float64), round(len(table) ** 0.5)
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    places = np.stack(np.divmod(np.arange(len(table)), edge), axis=1)
    distance = np.linalg.norm(places[:, None] - places, axis=-1)
    cosine, pairs, rng = unit @ unit.T, np.triu_indices(len(table), 1), np.random.default_rng(0)

    def correlation(order):
        return np.corrcoef(cosine[np.ix_(order, order)][pairs], distance[pairs])[0, 1]

    shuffled = [correlation(rng.permutation(len(table))) for _ in range(draws)]
    found = [correlation(np.arange(len(table))), *np.quantile(shuffled, [0.025, 0.975])]
    return dict(zip(("correlation", "least", "largest"), (round(float(x), 4) for x in found), strict=True))


def without_positions(model, images, labels) -> dict:
    """The share of right answers as it is, with the mean of the patches' positions for each, and with shuffled ones."""
    table = model.position.weight.data
    kept, order = table.clone(), torch.from_numpy(np.random.default_rng(0).permutation(len(table) - 1))
    patches, found = kept[1:], {}
    changes = {"as_trained": patches, "mean": patches.mean(0).expand_as(patches), "shuffled": patches[order]}
    for name, changed in changes.items():
        table[1:] = changed
        found[name] = round(float((answers(model, images) == labels).mean()), 4)
    table.copy_(kept)
    return found
