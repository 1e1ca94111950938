"""The Vision Transformer (Dosovitskiy et al. 2021): the patches of an image, read as a text's tokens are."""

import numpy as np

from course_lib.models.images import check_images, check_patches
from course_lib.models.position_tables import cubic_weights
from course_lib.models.vit import VIT, ViTConfig, ViTOutput, check_config
from course_lib.numpy.attention import attention
from course_lib.numpy.checkpoint import Checkpoint
from course_lib.numpy.encoder import Encoder
from course_lib.numpy.layers import Linear, Module
from course_lib.numpy.models.bert import initialise
from course_lib.numpy.positions import LearnedPositions


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
    return x.transpose(0, 2, 4, 1, 3, 5).reshape(b, rows * columns, c * patch_size**2)


class PatchEmbedding(Module):
    """x E + b for each patch x (eq. 1), with E as (d_model, C, P, P), a convolution's weight."""

    def __init__(self, n_channels: int, d_model: int, patch_size: int, std: float = 0.02):
        self.weight = np.random.normal(0.0, std, (d_model, n_channels, patch_size, patch_size))
        self.bias = np.zeros(d_model)

    def __call__(self, images):
        """(B, C, height, width) -> (B, N, d_model); ValueError for patches that do not fill the images."""
        return image_to_patches(images, self.weight.shape[-1]) @ self.weight.reshape(len(self.weight), -1).T + self.bias


class ViT(Checkpoint, Module):
    """A class token and linearly embedded patches with learned positions, an encoder, a linear classifier (eq. 1 to 4).

    Parameters
    ----------
    config : sizes
    attention : the attention function, `attention` or `fused_attention`
    """

    family, architecture = VIT, "ViTForImageClassification"

    def __init__(self, config: ViTConfig, attention=attention):
        self.config = check_config(config)
        self.patches = PatchEmbedding(config.n_channels, config.d_model, config.patch_size, config.init_std)
        self.class_token = np.random.normal(0.0, config.init_std, config.d_model)
        self.position = LearnedPositions(config.d_model, config.n_tokens, config.init_std)
        self.encoder = Encoder(config.n_layers, config.block, attention)
        self.classifier = Linear(config.d_model, config.n_classes)
        initialise(self, config.init_std)

    def __call__(self, images, return_layers=False, interpolate=False):
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
        images = checked_images(images, self.config, interpolate)
        last_hidden, hidden, weights = self.encoder(self.embed(images), return_layers=return_layers)
        return ViTOutput(self.classifier(last_hidden[:, 0]), last_hidden, hidden, weights)

    def embed(self, images):
        """The input of the encoder, z_0 of eq. 1: (B, n_channels, height, width) -> (B, 1 + N, d_model)."""
        patches = self.patches(images)  # (B, N, d_model)
        first = np.broadcast_to(self.class_token, (len(patches), 1, self.config.d_model))
        return np.concatenate([first, patches], axis=1) + self.positions(images.shape[2:])

    def positions(self, size):
        """The positions of an image of the size (height, width): (1 + N, d_model).

        Those of patches are interpolated from the learned grid by cubic functions, as `transformers` does it; the
        class token keeps its own.
        """
        table, (rows, columns) = self.position.weight, self.config.grid
        if tuple(size) == self.config.size:
            return table
        vertical, horizontal = (
            cubic_weights(n, edge // self.config.patch_size) for n, edge in zip((rows, columns), size, strict=True)
        )
        grid = table[1:].reshape(rows, columns, -1)
        resized = np.einsum("ar,bc,rcd->abd", vertical, horizontal, grid)  # (new rows, new columns, d_model)
        return np.concatenate([table[:1], resized.reshape(-1, table.shape[1])])


def checked_images(images, config, any_size: bool | None = None):
    """Images of a model with this configuration as an array, checked; `any_size` is None where no other is taken.

    Raises
    ------
    TypeError : numbers that are no floating point.
    ValueError : other axes or channels than the configuration's, another size unless `any_size`.
    """
    images = np.asarray(images)
    size = None if any_size else config.size
    advice = "" if any_size is None else "; `interpolate=True` takes any size"
    check_images(images.shape, images.dtype, config.n_channels, size, advice=advice)
    return images.astype(np.float64)
