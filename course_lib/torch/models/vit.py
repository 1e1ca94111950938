"""The Vision Transformer (Dosovitskiy et al. 2021): the patches of an image, read as a text's tokens are."""

import torch
from torch import nn
from torch.nn import functional as F

from course_lib.models.images import check_images, check_patches
from course_lib.models.vit import VIT, ViTConfig, ViTOutput, check_config
from course_lib.torch.attention import attention
from course_lib.torch.checkpoint import Checkpoint
from course_lib.torch.encoder import Encoder
from course_lib.torch.layers import at_least_float32, tensor_of
from course_lib.torch.models.bert import initialise
from course_lib.torch.positions import LearnedPositions


def image_to_patches(images, patch_size: int):
    """Cut images into square patches, row by row from the upper left corner (section 3.1).

    Parameters
    ----------
    images : shape (B, C, height, width)
    patch_size : P, pixels of an edge; divides height and width

    Returns
    -------
    Shape (B, N, C P P) with N = height width / P^2: of each patch the channels, of these the rows.

    Raises
    ------
    ValueError : patches that do not fill the images.
    """
    b, c, height, width = images.shape
    check_patches(height, width, patch_size)
    rows, columns = height // patch_size, width // patch_size
    x = images.reshape(b, c, rows, patch_size, columns, patch_size)
    return x.permute(0, 2, 4, 1, 3, 5).reshape(b, rows * columns, c * patch_size**2)


class PatchEmbedding(nn.Module):
    """x E + b for each patch x (eq. 1), with E as (d_model, C, P, P), a convolution's weight."""

    def __init__(self, n_channels: int, d_model: int, patch_size: int, std: float = 0.02):
        super().__init__()
        self.weight = nn.Parameter(std * torch.randn(d_model, n_channels, patch_size, patch_size))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, images):
        """(B, C, height, width) -> (B, N, d_model); ValueError for patches that do not fill the images."""
        patch_size = self.weight.shape[-1]
        check_patches(*images.shape[2:], patch_size)
        return F.conv2d(images, self.weight, self.bias, stride=patch_size).flatten(2).transpose(1, 2)


class ViT(Checkpoint, nn.Module):
    """A class token and linearly embedded patches with learned positions, an encoder, a linear classifier (eq. 1 to 4).

    Parameters
    ----------
    config : sizes
    attention : the attention function, `attention` or `fused_attention`
    """

    family, architecture = VIT, "ViTForImageClassification"

    def __init__(self, config: ViTConfig, attention=attention):
        super().__init__()
        self.config = check_config(config)
        self.patches = PatchEmbedding(config.n_channels, config.d_model, config.patch_size, config.init_std)
        self.class_token = nn.Parameter(config.init_std * torch.randn(config.d_model))
        self.position = LearnedPositions(config.d_model, config.n_tokens, config.init_std)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = Encoder(config.n_layers, config.block, attention)
        self.classifier = nn.Linear(config.d_model, config.n_classes)
        initialise(self, config.init_std)

    def forward(self, images, return_layers=False, interpolate=False):
        """Classify a batch.

        Parameters
        ----------
        images : shape (B, n_channels, height, width), numbers of floating point
        return_layers : also return every layer's hidden states and attention weights
        interpolate : take images of any size, whose positions are interpolated between those that were learned

        Returns
        -------
        ViTOutput : logits (B, n_classes), last_hidden (B, 1 + N, d_model); hidden and weights, None unless
            return_layers.

        Raises
        ------
        ValueError : other axes or channels, another size than config.image_size unless `interpolate`, patches that do
            not fill the images.
        TypeError : numbers that are no floating point, such as bytes.
        """
        images = checked_images(images, self.config, interpolate).to(self.class_token)
        last_hidden, hidden, weights = self.encoder(self.embed(images), return_layers=return_layers)
        return ViTOutput(self.classifier(last_hidden[:, 0]), last_hidden, hidden, weights)

    def embed(self, images):
        """The input of the encoder, z_0 of eq. 1: (B, n_channels, height, width) -> (B, 1 + N, d_model)."""
        patches = self.patches(images)  # (B, N, d_model)
        first = self.class_token.to(patches.dtype).expand(patches.shape[0], 1, -1)
        return self.dropout(torch.cat([first, patches], dim=1) + self.positions(images.shape[2:]))

    def positions(self, size):
        """The positions of an image of the size (height, width): (1 + N, d_model).

        Those of patches are interpolated from the learned grid by cubic functions, as `transformers` does it; the
        class token keeps its own.
        """
        table = self.position.weight
        if tuple(size) == self.config.size:
            return table
        grid = at_least_float32(table[1:]).T.unflatten(1, self.config.grid)[None]  # (1, d_model, rows, columns)
        new = [edge // self.config.patch_size for edge in size]
        resized = F.interpolate(grid, new, mode="bicubic", align_corners=False)
        return torch.cat([table[:1], resized[0].flatten(1).T.to(table.dtype)])


def checked_images(images, config, any_size: bool | None = None):
    """Images of a model with this configuration as a tensor, checked; `any_size` is None where no other is taken.

    Raises
    ------
    TypeError : numbers that are no floating point.
    ValueError : other axes or channels than the configuration's, another size unless `any_size`.
    """
    images = tensor_of(images)
    size = None if any_size else config.size
    advice = "" if any_size is None else "; `interpolate=True` takes any size"
    check_images(images.shape, images.dtype, config.n_channels, size, advice=advice)
    return images
