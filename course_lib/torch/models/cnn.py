"""A plain convolutional network (Simonyan and Zisserman 2015), to compare a Vision Transformer to."""

import torch
from torch import nn
from torch.nn import functional as F

from course_lib.models.cnn import KERNEL, CNNConfig, CNNOutput, check_config
from course_lib.torch.models.vit import checked_images


class Convolution(nn.Module):
    """A sum over a window of 3 x 3 pixels and all features, at every pixel; beyond the edges are zeros.

    Fresh weights are normal with the variance 2 / (9 d_in), which a ReLU keeps (He et al. 2015, eq. 10).
    """

    def __init__(self, d_in: int, d_out: int):
        super().__init__()
        std = (2 / (KERNEL**2 * d_in)) ** 0.5
        self.weight = nn.Parameter(std * torch.randn(d_out, d_in, KERNEL, KERNEL))
        self.bias = nn.Parameter(torch.zeros(d_out))

    def forward(self, x):
        """(B, d_in, height, width) -> (B, d_out, height, width)."""
        return F.conv2d(x, self.weight, self.bias, padding=KERNEL // 2)


class CNN(nn.Module):
    """Stages of convolutions, each halving height and width, then a linear classifier of the mean over all places.

    Parameters
    ----------
    config : sizes
    """

    def __init__(self, config: CNNConfig):
        super().__init__()
        self.config = check_config(config)
        self.convolutions = nn.ModuleList(Convolution(*sizes) for sizes in config.convolutions)
        self.classifier = nn.Linear(config.widths[-1], config.n_classes)

    def forward(self, images):
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
        x = checked_images(images, self.config).to(self.classifier.weight)
        for number, layer in enumerate(self.convolutions, start=1):
            x = F.relu(layer(x))
            if number % self.config.depth == 0:
                x = F.max_pool2d(x, 2)
        return CNNOutput(self.classifier(x.mean(dim=(2, 3))), x)
