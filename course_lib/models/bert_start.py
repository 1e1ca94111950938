"""First numbers for a BERT that is pretrained from nothing, such that a short training does not stand still.

BERT's own initialisation, narrow normal numbers everywhere, leaves a small model for thousands of updates at the loss
of who knows how frequent each token is and nothing of its neighbours. The numbers here are those of `BertConfig`'s
architecture and no other; they begin where that search would end. The rate needs to warm up: with seven updates to a
peak of 2e-3 four layers were still there after 150, with a hundred they were not. They are NumPy arrays by the names
that `get_state` has, so models in all frameworks begin alike:

>>> from course_lib.models.bert import BertConfig
>>> from course_lib.numpy import BertForMaskedLM, set_state
>>> config = BertConfig(1000, d_model=64, n_layers=2, n_heads=4, d_ff=128, max_len=32)
>>> model = BertForMaskedLM(config)
>>> set_state(model, bert_start(config))
"""

import math

import numpy as np

from course_lib.checks import check_count
from course_lib.errors import UnsupportedConfigError
from course_lib.models.bert import BertConfig
from course_lib.models.position_tables import sinusoidal_table

OFFSETS = (-1, 1, -2, 2)
"""From a token to the one that each head of the first layer looks at: the one before, the one behind, two away."""

TABLE_STD, SEGMENT_STD = 0.05, 0.02  # the deviation of the vectors of tokens and positions, and of segments
QUIET = 0.1  # what is left of the random numbers where something was put that shall be heard
SHARPNESS = 1.4  # of the directed heads: about half of their weight is at their distance


def bert_start(
    config: BertConfig,
    shares=None,
    vectors=None,
    offsets=OFFSETS,
    next_sentence: bool = False,
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """The weights that a `BertForMaskedLM`, or a `BertForPreTraining`, is to begin with.

    - Matrices are normal with a deviation of 1 / sqrt(inputs), which keeps the size of what passes through them (LeCun
      et al. 1998, section 4.6). Biases are 0.
    - The output's bias is the logarithm of each token's share, so the first prediction is the unigram distribution.
    - Positions are sinusoids in the first d_model / n_heads features, where tokens are nearly silent, and next to
      nothing in the others. Head h of the first layer reads these features: its queries as they are, its keys turned
      by the angles of offsets[h], so its scores are largest at that distance. Further heads are as in other layers.
    - `vectors` are the tokens' features behind the first d_model / n_heads, turned at random, so that all features are
      alike, and brought to the size of random ones. A vector of zeros is replaced by a random one.

    Parameters
    ----------
    config : sizes; at most `max_len` tokens are read
    shares : of the tokens in the text, float (V,), such as `NeighbourModel.shares`; where a share is 0, as of special
        tokens, the bias is that of one in a billion. None: all biases are 0
    vectors : float (V, d_model - d_model / n_heads), such as `count_vectors` makes; None: random ones
    offsets : one for each of the first heads, n_heads at most; () gives positions no sinusoids and directs no head
    next_sentence : also the weights of the pooler and of the next-sentence head of `BertForPreTraining`
    seed : of the random numbers

    Returns
    -------
    {name: float32 array}, for `set_state` of any framework.

    Raises
    ------
    UnsupportedConfigError : a model of another family, which has other weights.
    ValueError : shares or vectors of another shape, negative shares, more offsets than heads, one that is no whole
        number or 0, or an odd number of features in a head that is to look at a distance.
    """
    if type(config) is not BertConfig:
        raise UnsupportedConfigError(f"bert_start makes the weights of a BertConfig, not of a {type(config).__name__}")
    check_count("seed", seed, 0)
    offsets = _checked_offsets(config, offsets)
    rng = np.random.default_rng(seed)
    d, d_head = config.d_model, config.d_model // config.n_heads
    tables = {"token": config.vocab_size, "position": config.max_len, "segment": config.n_segments}
    state = {f"bert.embeddings.{name}.weight": rng.normal(0, TABLE_STD, (n, d)) for name, n in tables.items()}
    state["bert.embeddings.segment.weight"] *= SEGMENT_STD / TABLE_STD
    state |= _norm("bert.embeddings.norm", d)
    for layer in range(config.n_layers):
        name = f"bert.encoder.layers.{layer}"
        for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
            state |= _linear(rng, f"{name}.attention.{part}", d, d)
        state |= _linear(rng, f"{name}.feed_forward.linear1", d, config.d_ff)
        state |= _linear(rng, f"{name}.feed_forward.linear2", config.d_ff, d)
        state |= _norm(f"{name}.norm1", d) | _norm(f"{name}.norm2", d)
    if config.pre_norm:
        state |= _norm("bert.encoder.norm", d)
    state |= _linear(rng, "head.transform", d, d) | _norm("head.norm", d)
    state["head.bias"] = np.zeros(config.vocab_size) if shares is None else _log_shares(shares, config.vocab_size)
    if next_sentence:
        state |= _linear(rng, "bert.pooler", d, d) | _linear(rng, "next_sentence", d, 2)
    if vectors is not None:
        state["bert.embeddings.token.weight"][:, d_head:] = _turned(rng, vectors, (config.vocab_size, d - d_head))
    if offsets:
        _direct_heads(state, config, offsets)
    return {name: value.astype(np.float32) for name, value in state.items()}


def _linear(rng: np.random.Generator, name: str, d_in: int, d_out: int) -> dict[str, np.ndarray]:
    return {f"{name}.weight": rng.normal(0, d_in**-0.5, (d_out, d_in)), f"{name}.bias": np.zeros(d_out)}


def _norm(name: str, d: int) -> dict[str, np.ndarray]:
    return {f"{name}.weight": np.ones(d), f"{name}.bias": np.zeros(d)}


def _direct_heads(state: dict[str, np.ndarray], config: BertConfig, offsets: tuple[int, ...]) -> None:
    """Let the first heads of the first layer look at fixed distances, by sinusoids in the first features."""
    d_head = config.d_model // config.n_heads
    sinusoids = sinusoidal_table(config.max_len, config.d_model)[:, :d_head]  # its fastest ones
    token, position = (state[f"bert.embeddings.{name}.weight"] for name in ("token", "position"))
    token[:, :d_head] *= QUIET
    position *= QUIET
    position[:, :d_head] = sinusoids * math.sqrt(2) * TABLE_STD  # a sinusoid's deviation is sqrt(1 / 2)
    for head, offset in enumerate(offsets):
        rows = slice(head * d_head, (head + 1) * d_head)
        for part, turn in (("q_proj", np.eye(d_head)), ("k_proj", _turn(config.d_model, d_head, offset))):
            matrix = state[f"bert.encoder.layers.0.attention.{part}.weight"]
            matrix[rows] *= QUIET
            matrix[rows, :d_head] += SHARPNESS * turn


def _turn(d_model: int, d_head: int, offset: int) -> np.ndarray:
    """The matrix that takes the sinusoids of position p + offset to those of p, (d_head, d_head)."""
    sine, cosine = sinusoidal_table(abs(offset) + 1, d_model)[-1, :d_head].reshape(-1, 2).T  # of the distance
    sine = math.copysign(1, offset) * sine
    turn, even = np.zeros((d_head, d_head)), np.arange(0, d_head, 2)
    # sin(a - b) = sin a cos b - cos a sin b, and cos(a - b) = cos a cos b + sin a sin b
    turn[even, even] = turn[even + 1, even + 1] = cosine
    turn[even, even + 1], turn[even + 1, even] = -sine, sine
    return turn


def _checked_offsets(config: BertConfig, offsets) -> tuple[int, ...]:
    offsets = tuple(offsets)
    if any(isinstance(offset, bool) or offset != int(offset) or offset == 0 for offset in offsets):
        raise ValueError(f"offsets must be whole numbers other than 0, such as {OFFSETS}; got {offsets}")
    if len(offsets) > config.n_heads:
        raise ValueError(f"there are {len(offsets)} offsets for n_heads={config.n_heads}; give each head one at most")
    d_head = config.d_model // config.n_heads
    if offsets and d_head % 2:
        raise ValueError(f"heads that look at a distance need an even number of features, they have {d_head}")
    return tuple(map(int, offsets))


def _log_shares(shares, size: int) -> np.ndarray:
    shares = np.asarray(shares, dtype=float)
    if shares.shape != (size,) or not np.isfinite(shares).all() or shares.min() < 0 or shares.sum() == 0:
        raise ValueError(f"shares must be one number of 0 or more for each of {size} tokens; got {shares.shape}")
    return np.log(np.maximum(shares / shares.sum(), 1e-9))


def _turned(rng: np.random.Generator, vectors, shape: tuple[int, int]) -> np.ndarray:
    """Vectors turned at random and brought to the deviation of random ones; random ones where they are 0."""
    vectors = np.asarray(vectors, dtype=float)
    if vectors.shape != shape or not np.isfinite(vectors).all() or not vectors.any():
        raise ValueError(f"vectors must be finite numbers {shape}, one row for each token; got {vectors.shape}")
    empty = ~vectors.any(axis=1)
    vectors = vectors @ np.linalg.qr(rng.normal(size=(shape[1], shape[1])))[0]
    vectors *= TABLE_STD / vectors[~empty].std()
    vectors[empty] = rng.normal(0, TABLE_STD, (empty.sum(), shape[1]))
    return vectors
