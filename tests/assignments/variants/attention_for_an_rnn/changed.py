"""How wrong solutions are put together."""

HEAD = {
    "additive-scores": "def additive_scores(s, h, W, U, v):",
    "attend": "def attend(scores, h, mask):",
    "annotations": "def annotations(x, mask, forward, backward, zero):",
    "decoder-step": "def decoder_step(y, s, h, mask, score, cell):",
    "masked-loss": "def masked_loss(logits, targets, pad_id):",
    "greedy": "def greedy(step, state, start, end_id, max_len):",
}


def body(cell: str, *lines: str) -> dict[str, str]:
    """A solution cell with these lines as its function."""
    return {cell: HEAD[cell] + "".join(f"\n    {line}" for line in lines)}


KEPT = "what is given must stay as it is; the result and its gradients are right"
