"""A plain convolutional network, the peer of a Vision Transformer of as many parameters: its sizes, what it returns."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from course_lib.models.fields import check_sizes, make_plain
from course_lib.models.images import size_of

KERNEL = 3  # pixels of an edge of every convolution's window


@dataclass(frozen=True)
class CNNConfig:
    """The sizes of a CNN, in the manner of VGG (Simonyan and Zisserman 2015, section 2.1).

    A stage is `depth` convolutions of windows of 3 x 3 pixels, each with a ReLU, then the largest of each 2 x 2 pixels.

    Raises
    ------
    ValueError : no stage, a size below one, or an image that so many halvings leave nothing of.
    """

    image_size: int | tuple[int, int] = 32  # pixels of an edge, or (height, width)
    n_channels: int = 3
    widths: tuple[int, ...] = (16, 32, 64)  # features of each stage
    depth: int = 2  # convolutions of a stage
    n_classes: int = 2

    def __post_init__(self):
        make_plain(self)
        object.__setattr__(self, "widths", tuple(self.widths))
        check_sizes(self, "n_channels", "depth", "n_classes")
        if not self.widths or not all(isinstance(width, int) and width >= 1 for width in self.widths):
            raise ValueError(f"widths must be integers of 1 or more, one for each stage; got {self.widths!r}")
        if min(self.size) < 2 ** len(self.widths):
            raise ValueError(f"{len(self.widths)} stages halve {self.size} pixels (height, width) to nothing")

    @property
    def size(self) -> tuple[int, int]:
        """The height and the width of an image, in pixels."""
        return size_of("image_size", self.image_size)

    @property
    def convolutions(self) -> list[tuple[int, int]]:
        """The features that each convolution reads and gives, in order."""
        outputs = [width for width in self.widths for _ in range(self.depth)]
        return list(zip([self.n_channels, *outputs], outputs, strict=False))

    @property
    def n_parameters(self) -> int:
        """How many numbers are learned: weights and biases of the convolutions and of the classifier."""
        last = (self.widths[-1] + 1) * self.n_classes
        return sum((KERNEL**2 * d_in + 1) * d_out for d_in, d_out in self.convolutions) + last

    @classmethod
    def of_size(cls, n_parameters: int, n_stages: int = 3, **sizes) -> "CNNConfig":
        """The widest CNN of no more than so many parameters whose stages double the features.

        Parameters
        ----------
        n_parameters : such as those of a ViT
        n_stages : each has twice the features of the one before
        sizes : other fields of the configuration

        Raises
        ------
        ValueError : too few for a single feature, or what the configuration refuses.
        """

        def of(width):
            return cls(widths=tuple(width * 2**i for i in range(n_stages)), **sizes)

        width = 0
        while of(width + 1).n_parameters <= n_parameters:
            width += 1
        if width == 0:
            raise ValueError(f"{n_parameters} parameters are too few; one feature takes {of(1).n_parameters}")
        return of(width)


class CNNOutput(NamedTuple):
    """Of `CNN`."""

    logits: Any  # (B, n_classes)
    features: Any  # (B, widths[-1], height / 2^stages, width / 2^stages), of which the mean is classified


def check_config(config) -> CNNConfig:
    """The configuration; TypeError unless it is a CNNConfig."""
    if not isinstance(config, CNNConfig):
        raise TypeError(f"a CNN is built of a CNNConfig, got {config!r}")
    return config
