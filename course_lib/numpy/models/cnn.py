"""A plain convolutional network (Simonyan and Zisserman 2015), to compare a Vision Transformer to."""

import numpy as np

from course_lib.models.cnn import KERNEL, CNNConfig, CNNOutput, check_config
from course_lib.numpy.layers import Linear, Module
from course_lib.numpy.models.vit import checked_images


class Convolution(Module):
    """A sum over a window of 3 x 3 pixels and all features, at every pixel; beyond the edges are zeros.

    Fresh weights are normal with the variance 2 / (9 d_in), which a ReLU keeps (He et al. 2015, eq. 10).
    """

    def __init__(self, d_in: int, d_out: int):
        std = (2 / (KERNEL**2 * d_in)) ** 0.5
        self.weight = np.random.normal(0.0, std, (d_out, d_in, KERNEL, KERNEL))
        self.bias = np.zeros(d_out)

    def __call__(self, x):
        """(B, d_in, height, width) -> (B, d_out, height, width)."""
        padded = np.pad(x, ((0, 0), (0, 0), (KERNEL // 2,) * 2, (KERNEL // 2,) * 2))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (KERNEL, KERNEL), axis=(2, 3))
        return np.einsum("bchwij,ocij->bohw", windows, self.weight) + self.bias[:, None, None]


class CNN(Module):
    """Stages of convolutions, each halving height and width, then a linear classifier of the mean over all places.

    Parameters
    ----------
    config : sizes
    """

    def __init__(self, config: CNNConfig):
        self.config = check_config(config)
        self.convolutions = [Convolution(*sizes) for sizes in config.convolutions]
        self.classifier = Linear(config.widths[-1], config.n_classes)

    def __call__(self, images):
        """Classify a batch.

        Parameters
        ----------
        images : shape (B, n_channels, height, width), numbers of floating point

        Returns
        -------
        CNNOutput : logits (B, n_classes), features (B, widths[-1], rows, columns).

        Raises
        ------
        ValueError : other axes, channels or another size than those of the configuration.
        TypeError : numbers that are no floating point, such as bytes.
        """
        x = checked_images(images, self.config)
        for number, layer in enumerate(self.convolutions, start=1):
            x = np.maximum(layer(x), 0.0)
            if number % self.config.depth == 0:
                x = x[..., : x.shape[2] // 2 * 2, : x.shape[3] // 2 * 2]  # an odd last row and column fall away
                x = x.reshape(*x.shape[:2], x.shape[2] // 2, 2, x.shape[3] // 2, 2).max(axis=(3, 5))
        return CNNOutput(self.classifier(x.mean(axis=(2, 3))), x)
