"""The Decision Transformer: its sizes, what it returns, the names of its weights, and the border to config.json."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from course_lib.checkpoints.folders import find_checkpoint as find
from course_lib.checkpoints.names import Joined, Renames
from course_lib.checkpoints.pretrained import Family
from course_lib.checks import check_choice, check_features, check_heads
from course_lib.models.blocks import ACTIVATIONS, BlockConfig
from course_lib.models.config_json import known_fields, usable
from course_lib.models.fields import (
    check_dropouts,
    check_norm_eps,
    check_sizes,
    check_switches,
    is_number,
    make_plain,
)

# Our field -> the key in a Decision Transformer's config.json.
_KEYS = {
    "d_state": "state_dim",
    "d_action": "act_dim",
    "d_model": "hidden_size",
    "n_layers": "n_layer",
    "n_heads": "n_head",
    "d_ff": "n_inner",
    "max_len": "max_ep_len",
    "action_tanh": "action_tanh",
    "dropout": "resid_pdrop",
    "attention_dropout": "attn_pdrop",
    "embedding_dropout": "embd_pdrop",
    "norm_eps": "layer_norm_epsilon",
    "activation": "activation_function",
    "init_std": "initializer_range",
}

# Other names of two of these, which come before them where a file has both.
_ALIASES = {"num_hidden_layers": "n_layer", "num_attention_heads": "n_head"}

# Settings of a config.json that change the computation, and the only value that ours computes.
_FIXED = {
    "model_type": "decision_transformer",
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
}


@dataclass(frozen=True)
class DecisionConfig:
    """The sizes of a Decision Transformer; the defaults are those of `transformers`.

    Raises
    ------
    ValueError : n_heads does not divide d_model, a size below one, a dropout outside [0, 1), a norm_eps that is not
        positive, an action_tanh that is neither True nor False, an unknown activation.
    """

    d_state: int = 17  # features of a state
    d_action: int = 4  # features of an action; of actions that are one of n, n
    d_model: int = 128
    n_layers: int = 3
    n_heads: int = 1
    d_ff: int = 512
    max_len: int = 4096  # steps of an episode: times are 0 ... max_len - 1
    action_tanh: bool = True  # predicted actions lie in -1 ... 1; False for any numbers, and for logits
    dropout: float = 0.1  # of each sub-layer's output
    attention_dropout: float = 0.1  # of the attention weights
    embedding_dropout: float = 0.1  # of the tokens
    norm_eps: float = 1e-5  # in the blocks; the normalisation of the tokens has 1e-5
    activation: str = "relu"
    init_std: float = 0.02  # of the normal distribution that fresh weights are drawn from

    def __post_init__(self):
        make_plain(self)
        check_sizes(self, "d_state", "d_action", "d_model", "n_layers", "n_heads", "d_ff", "max_len")
        check_heads(self.d_model, self.n_heads)
        check_switches(self, "action_tanh")
        check_dropouts(self, "dropout", "attention_dropout", "embedding_dropout")
        check_norm_eps(self.norm_eps)
        check_choice("activation", self.activation, ACTIVATIONS)
        if not is_number(self.init_std) or self.init_std < 0:
            raise ValueError(f"init_std is a standard deviation of 0 or more, got {self.init_std!r}")

    @property
    def block(self) -> BlockConfig:
        """Of which the decoder is built, as GPT's: it normalises before each sub-layer, and once more at the end."""
        return BlockConfig(
            self.d_model,
            self.n_heads,
            self.d_ff,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            activation=self.activation,
            norm_eps=self.norm_eps,
            pre_norm=True,
        )

    @property
    def residual_scale(self) -> float:
        """What the fresh matrices before a residual are multiplied by, as GPT's: 1 / sqrt(number of residuals)."""
        return (2 * self.n_layers) ** -0.5

    @classmethod
    def from_hugging_face(cls, settings: dict) -> "DecisionConfig":
        """Read the contents of a Decision Transformer's config.json; a key that is absent or null means the default.

        Raises
        ------
        UnsupportedConfigError : not a Decision Transformer, or a setting that ours does not compute.
        """
        renamed = {key: settings[alias] for alias, key in _ALIASES.items() if settings.get(alias) is not None}
        known = known_fields(settings | renamed, "Decision Transformer", _KEYS, _FIXED)
        with usable():
            known.setdefault("d_ff", 4 * known.get("d_model", cls.d_model))
            return cls(**known)

    def to_hugging_face(self, architecture: str = "DecisionTransformerModel") -> dict:
        """The contents of a config.json that `transformers` opens as the class `architecture`."""
        return {
            "architectures": [architecture],
            "model_type": "decision_transformer",
            **{theirs: getattr(self, ours) for ours, theirs in _KEYS.items()},
            "vocab_size": 1,  # of the tables that theirs has and does not read
            "n_positions": 1,
        }


class DecisionOutput(NamedTuple):
    """Of `DecisionTransformer`, for T steps."""

    actions: Any  # (B, T, d_action), of each step, from its return and its state and all before; in -1 ... 1 or logits
    states: Any  # (B, T, d_state), of the step after each
    returns: Any  # (B, T, 1), of the step after each
    hidden: tuple | None  # n_layers + 1 times (B, 3T, d_model), the input first; only with return_layers=True
    weights: tuple | None  # n_layers times (B, H, 3T, 3T); only with return_layers=True


# Hugging Face's name -> ours; {n} is the layer's number. The decoder is a GPT-2, with all its names. None = dropped on
# purpose: the causal mask, which old files hold, and the table of a vocabulary that nobody reads.
_THEIRS, _OURS = "encoder.h.{n}.", "decoder.layers.{n}."
_ATTENTION = _OURS + "self_attention."
_POSITIONS, _VOCABULARY = "encoder.wpe.weight", "encoder.wte.weight"
RENAMES = {
    "embed_return.{p}": "embed_return.{p}",
    "embed_state.{p}": "embed_state.{p}",
    "embed_action.{p}": "embed_action.{p}",
    "embed_timestep.weight": "time.weight",
    "embed_ln.{p}": "norm.{p}",
    _POSITIONS: Joined("shift", in_front=1),
    _VOCABULARY: None,
    _THEIRS + "ln_1.{p}": _OURS + "norm1.{p}",
    _THEIRS + "attn.c_attn.{p}": Joined(
        _ATTENTION + "q_proj.{p}", _ATTENTION + "k_proj.{p}", _ATTENTION + "v_proj.{p}", transposed=True
    ),
    _THEIRS + "attn.c_proj.{p}": Joined(_ATTENTION + "out_proj.{p}", transposed=True),
    _THEIRS + "ln_2.{p}": _OURS + "norm3.{p}",
    _THEIRS + "mlp.c_fc.{p}": Joined(_OURS + "feed_forward.linear1.{p}", transposed=True),
    _THEIRS + "mlp.c_proj.{p}": Joined(_OURS + "feed_forward.linear2.{p}", transposed=True),
    "encoder.ln_f.{p}": "decoder.norm.{p}",
    "predict_action.0.{p}": "predict_action.{p}",
    "predict_state.{p}": "predict_state.{p}",
    "predict_return.{p}": "predict_return.{p}",
    _THEIRS + "attn.bias": None,
    _THEIRS + "attn.masked_bias": None,
}


class _Names(Renames):
    """The table, and what theirs keeps of a GPT-2 without a use for it.

    Each of their tokens stands at position 0, so that of the table of positions the first row alone is ever added: our
    `shift`. Nothing reads the table of a vocabulary; theirs misses it if a file has none.
    """

    def ours(self, state, family="Decision Transformer"):
        """As the table says; of the positions the first."""
        rows = {_POSITIONS: state[_POSITIONS][:1]} if _POSITIONS in state else {}
        return super().ours({**state, **rows}, family)

    def theirs(self, state, headed=False):
        """As the table says, with one position and one token, which is zeros."""
        renamed = super().theirs(state, headed)
        return renamed | {_VOCABULARY: np.zeros_like(renamed[_POSITIONS])}


def check_config(config) -> DecisionConfig:
    """The configuration; TypeError unless it is a DecisionConfig."""
    if not isinstance(config, DecisionConfig):
        raise TypeError(f"a Decision Transformer is built of a DecisionConfig, got {config!r}")
    return config


def check_given(**steps) -> None:
    """Raise TypeError for what is None, by its name; the shapes are the matter of `check_steps`."""
    for name, value in steps.items():
        if value is None:
            more = "; give zeros for those that are yet to be chosen" if name == "actions" else ""
            raise TypeError(f"{name} must be an array with something for each step, got None{more}")


def check_steps(config: DecisionConfig, states, actions, returns, times, of: str = "") -> None:
    """Check T steps by their shapes and types; whose lengths are not known yet pass.

    Parameters
    ----------
    states, actions, returns : what should be numbers (B, T, d_state), (B, T, d_action), (B, T, 1)
    times : integers (B, T)
    of : the end of each name, for the messages

    Raises
    ------
    TypeError : states, actions or returns that are no numbers of floating point.
    ValueError : another shape, no step, or not one state, action, return and time for each step.
    """
    if tuple(times.shape)[-1:] == (0,):
        raise ValueError(f"there must be a step to decide about; the times{of} have the shape {tuple(times.shape)}")
    for name, x, n in (
        ("states", states, config.d_state),
        ("actions", actions, config.d_action),
        ("returns", returns, 1),
    ):
        shape = tuple(x.shape)
        if "float" not in str(x.dtype):
            more = f"; an action that is one of {n} is a vector, np.eye({n})[action]" if name == "actions" else ""
            raise TypeError(f"{name}{of} must be numbers of floating point, got {x.dtype}{more}")
        if name == "returns" and len(shape) == 2:
            raise ValueError(f"returns{of} must have shape (B, T, 1), got {shape}; write returns[..., None]")
        check_features(f"{name}{of}", shape, n)
        if any(None not in (a, b) and a != b for a, b in zip(shape, times.shape, strict=False)):
            raise ValueError(
                f"each step has a state, an action, a return and a time: {name}{of} {shape} do not fit the times "
                f"{tuple(times.shape)}"
            )


def read_config(settings: dict, architecture: str = "DecisionTransformerModel") -> DecisionConfig:
    """`DecisionConfig.from_hugging_face`, for the one class that there is."""
    return DecisionConfig.from_hugging_face(settings)


DECISION = Family(
    name="Decision Transformer",
    config=DecisionConfig,
    read_config=read_config,
    write_config=DecisionConfig.to_hugging_face,
    find=find,
    names=_Names(RENAMES),
)
