"""The Vision Transformer: its sizes, what it returns, the names of its weights, and the border to config.json."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from course_lib.checkpoints.folders import find_checkpoint as find
from course_lib.checkpoints.names import Joined, Renames
from course_lib.checkpoints.pretrained import Family
from course_lib.checks import check_choice, check_heads
from course_lib.models.blocks import ACTIVATIONS, BlockConfig
from course_lib.models.config_json import class_names, known_fields, read_classes, usable, write_classes
from course_lib.models.fields import (
    check_class_names,
    check_dropouts,
    check_norm_eps,
    check_sizes,
    check_switches,
    is_number,
    make_plain,
)
from course_lib.models.images import check_patches, size_of

# Our field -> the key in a ViT's config.json.
_KEYS = {
    "image_size": "image_size",
    "patch_size": "patch_size",
    "n_channels": "num_channels",
    "d_model": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "d_ff": "intermediate_size",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "norm_eps": "layer_norm_eps",
    "activation": "hidden_act",
    "qkv_bias": "qkv_bias",
    "init_std": "initializer_range",
}


@dataclass(frozen=True)
class ViTConfig:
    """The sizes of a Vision Transformer; the defaults are those of ViT-B/16 (Dosovitskiy et al. 2021, table 1).

    Raises
    ------
    ValueError : patches that do not fill an image, n_heads that does not divide d_model, a size below one, a dropout
        outside [0, 1), a norm_eps that is not positive, an unknown activation, not one label for each class.
    """

    image_size: int | tuple[int, int] = 224  # pixels of an edge, or (height, width)
    patch_size: int = 16  # pixels of a patch's edge
    n_channels: int = 3
    d_model: int = 768
    n_layers: int = 12
    n_heads: int = 12
    d_ff: int = 3072
    n_classes: int = 2
    dropout: float = 0.0  # of the tokens with their positions, and of each sub-layer's output
    attention_dropout: float = 0.0  # of the attention weights
    norm_eps: float = 1e-12
    activation: str = "gelu"  # the exact GELU, with the error function
    qkv_bias: bool = True  # whether queries, keys and values have a bias
    init_std: float = 0.02  # of the normal distribution that fresh weights are drawn from
    labels: tuple[str, ...] | None = None  # the names of the classes, as many as n_classes

    def __post_init__(self):
        make_plain(self)
        height, width = size_of("image_size", self.image_size)
        object.__setattr__(self, "image_size", height if height == width else (height, width))
        check_sizes(self, "patch_size", "n_channels", "d_model", "n_layers", "n_heads", "d_ff", "n_classes")
        check_patches(height, width, self.patch_size)
        check_heads(self.d_model, self.n_heads)
        check_dropouts(self, "dropout", "attention_dropout")
        check_norm_eps(self.norm_eps)
        check_choice("activation", self.activation, ACTIVATIONS)
        check_switches(self, "qkv_bias")
        if not is_number(self.init_std) or self.init_std < 0:
            raise ValueError(f"init_std is a standard deviation of 0 or more, got {self.init_std!r}")
        check_class_names(self)

    @property
    def size(self) -> tuple[int, int]:
        """The height and the width of an image, in pixels."""
        return size_of("image_size", self.image_size)

    @property
    def grid(self) -> tuple[int, int]:
        """The rows and the columns of patches in an image."""
        height, width = self.size
        return height // self.patch_size, width // self.patch_size

    @property
    def n_tokens(self) -> int:
        """The class token and the patches of an image."""
        rows, columns = self.grid
        return 1 + rows * columns

    @property
    def block(self) -> BlockConfig:
        """Of which the encoder is built: it normalises before each sub-layer, and once more at the end."""
        return BlockConfig(
            self.d_model,
            self.n_heads,
            self.d_ff,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            activation=self.activation,
            norm_eps=self.norm_eps,
            pre_norm=True,
            qkv_bias=self.qkv_bias,
        )

    @classmethod
    def from_hugging_face(cls, settings: dict) -> "ViTConfig":
        """Read the contents of a ViT's config.json; a key that is absent or null means the default.

        Raises
        ------
        UnsupportedConfigError : not a ViT, or a setting that ours does not compute.
        """
        known = known_fields(settings, "ViT", _KEYS, {"model_type": "vit"})
        patch = known.get("patch_size")
        if isinstance(patch, list) and len(set(patch)) == 1:
            known["patch_size"] = patch[0]
        with usable():
            return cls(**known, **read_classes(settings))

    def to_hugging_face(self, architecture: str = "ViTForImageClassification") -> dict:
        """The contents of a config.json that `transformers` opens as the class `architecture`."""
        return {
            "architectures": [architecture],
            "model_type": "vit",
            **{theirs: getattr(self, ours) for ours, theirs in _KEYS.items()},
            **write_classes(class_names(self)),
        }


class ViTOutput(NamedTuple):
    """Of `ViT`, for images of N patches."""

    logits: Any  # (B, n_classes)
    last_hidden: Any  # (B, 1 + N, d_model), normalised: the class token, then the patches row by row
    hidden: tuple | None  # n_layers + 1 times (B, 1 + N, d_model), the input first; only with return_layers=True
    weights: tuple | None  # n_layers times (B, H, 1 + N, 1 + N); only with return_layers=True


# Hugging Face's name -> ours, without the leading "vit."; {n} is the layer's number. The class token and the positions
# have an axis more for the batch there. None = dropped on purpose: what only the training by masked patches has.
_THEIRS, _OURS = "encoder.layer.{n}.", "encoder.layers.{n}."
RENAMES = {
    "embeddings.cls_token": Joined("class_token", in_front=2),
    "embeddings.position_embeddings": Joined("position.weight", in_front=1),
    "embeddings.patch_embeddings.projection.{p}": "patches.{p}",
    _THEIRS + "layernorm_before.{p}": _OURS + "norm1.{p}",
    _THEIRS + "attention.attention.query.{p}": _OURS + "attention.q_proj.{p}",
    _THEIRS + "attention.attention.key.{p}": _OURS + "attention.k_proj.{p}",
    _THEIRS + "attention.attention.value.{p}": _OURS + "attention.v_proj.{p}",
    _THEIRS + "attention.output.dense.{p}": _OURS + "attention.out_proj.{p}",
    _THEIRS + "layernorm_after.{p}": _OURS + "norm2.{p}",
    _THEIRS + "intermediate.dense.{p}": _OURS + "feed_forward.linear1.{p}",
    _THEIRS + "output.dense.{p}": _OURS + "feed_forward.linear2.{p}",
    "layernorm.{p}": "encoder.norm.{p}",
    "classifier.{p}": "classifier.{p}",
    "pooler.dense.{p}": "pooler.{p}",
    "embeddings.mask_token": None,
    "decoder.0.{p}": None,
}


def check_config(config) -> ViTConfig:
    """The configuration; TypeError unless it is a ViTConfig."""
    if not isinstance(config, ViTConfig):
        raise TypeError(f"a ViT is built of a ViTConfig, got {config!r}")
    return config


def read_config(settings: dict, architecture: str = "ViTForImageClassification") -> ViTConfig:
    """`ViTConfig.from_hugging_face`, for any class of a ViT's."""
    return ViTConfig.from_hugging_face(settings)


VIT = Family(
    name="ViT",
    config=ViTConfig,
    read_config=read_config,
    write_config=ViTConfig.to_hugging_face,
    find=find,
    names=Renames(RENAMES, prefix="vit.", heads=("classifier.",), ours=""),
    heads=("pooler", "classifier"),
    classes=("ViTForImageClassification",),
)
