"""How wrong solutions are put together."""

HEAD = {
    "positions": "def positions(length, d_model):",
    "add-and-norm": "def add_and_norm(x, sublayer, gain, bias):",
    "feed-forward": "def feed_forward(x, W1, b1, W2, b2):",
    "encoder-layer": "def encoder_layer(x, mask, attention, w):",
    "decoder-layer": ("def decoder_layer(y, memory, target_mask, source_mask, self_attention, cross_attention, w):"),
    "learning-rate": "def learning_rate(step, d_model, warmup):",
    "greedy": "def greedy(decode, source, start_id, end_id, max_len):",
}
SOURCE = "(ids != pad_id)[:, None]"
PLACES = "places = torch.arange(ids.shape[1])"
TARGET = "(ids != pad_id)[:, None] & (places[None] <= places[:, None])"


def body(cell: str, *lines: str) -> dict[str, str]:
    """A solution cell with these lines as its function."""
    return {cell: HEAD[cell] + "".join(f"\n    {line}" for line in lines)}


def masks(source: str = SOURCE, target: str = TARGET, places: str = PLACES) -> dict[str, str]:
    """The solution of part 2 with these two results."""
    return {
        "masks": f"def source_mask(ids, pad_id):\n    return {source}\n\n\n"
        f"def target_mask(ids, pad_id):\n    {places}\n    return {target}"
    }
