"""Generated changes of the reference that are right all the same: by cell and change, with the reason."""

SCORES = "scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])"
RAISED = "`reshape` raises the ValueError itself"

EQUIVALENT = {
    (
        "softmax",
        "exponentials = np.exp(x - x.max(axis=-1, keepdims=True))  ->  "
        "exponentials = -np.exp(x - x.max(axis=-1, keepdims=True))",
    ): "the sign cancels in the quotient",
    (
        "attention",
        f"{SCORES}  ->  scores = q @ np.swapaxes(k, -2, -1) / np.sqrt(q.shape[-1])",
    ): "the two axes are exchanged in either order",
    (
        "attention",
        f"{SCORES}  ->  scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(k.shape[-1])",
    ): "queries and keys have the same length",
    ("split-heads", "if d_model % n_heads:  ->  if False:"): RAISED,
    (
        "split-heads",
        "raise ValueError(f'd_model={d_model} is not a multiple of n_heads={n_heads}')  ->  pass",
    ): RAISED,
}
