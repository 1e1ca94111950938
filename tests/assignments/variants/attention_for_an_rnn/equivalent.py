"""Generated changes of the reference that are right all the same: by cell and change, with the reason."""

FILLED = "scores = torch.where(mask, scores, torch.finfo(scores.dtype).min)"
PICKED = "of_target = torch.log_softmax(logits, dim=2).gather(2, targets[..., None])"
ROWS = "rows = [list(row) for row in zip(*columns, strict=True)]"

EQUIVALENT = {
    ("attend", f"{FILLED}  ->  scores = torch.where(mask, scores, torch.finfo(h.dtype).min)"):
        "scores and annotations have the same dtype",
    (
        "attend",
        "return ((weights[:, None] @ h)[:, 0], weights)  ->  return ((weights[:, None] @ h)[:, -1], weights)",
    ): "the axis has the length one",
    (
        "annotations",
        "state = torch.where(mask[:, t, None], cell(x[:, t], state), state)  ->  "
        "state = torch.where(mask[:, None, t], cell(x[:, t], state), state)",
    ): "both have the shape (B, 1)",
    ("annotations", "places = list(range(x.shape[1]))  ->  places = range(x.shape[1])"):
        "a range is turned round as a list is",
    ("annotations", "places = list(range(x.shape[1]))  ->  places = list(range(mask.shape[1]))"):
        "tokens and mask have the same length",
    ("masked-loss", f"{PICKED}[..., 0]  ->  {PICKED}[..., -1]"): "the axis has the length one",
    ("greedy", f"{ROWS}  ->  rows = [row for row in zip(*columns, strict=True)]"):
        "a tuple of ids is taken for a list of them",
    ("greedy", "columns.append(ids.tolist())  ->  columns.append(ids)"):
        "a tensor of one id is taken for the id",
    ("greedy", f"{ROWS}  ->  rows = [list(row) for row in zip(*columns)]"): "the columns have the same length",
    ("greedy", f"{ROWS}  ->  rows = [list(row) for row in zip(*columns, strict=False)]"):
        "the columns have the same length",
}  # fmt: skip
