"""The Vision Transformer (Dosovitskiy et al. 2021): the patches of an image, read as a text's tokens are."""

import keras
import tensorflow as tf

from course_lib.models.images import check_images, check_patches
from course_lib.models.position_tables import cubic_weights
from course_lib.models.vit import VIT, ViTConfig, ViTOutput, check_config
from course_lib.tensorflow.attention import attention
from course_lib.tensorflow.checkpoint import Checkpoint
from course_lib.tensorflow.encoder import Encoder
from course_lib.tensorflow.fitting import Fittable
from course_lib.tensorflow.layers import ExplicitMask, dense, lengths, product
from course_lib.tensorflow.models.bert import initialise
from course_lib.tensorflow.positions import LearnedPositions
from course_lib.tensorflow.serialization import Portable


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
    check_patches(*images.shape[2:], patch_size)
    b, c, height, width = lengths(images)
    rows, columns = height // patch_size, width // patch_size
    x = tf.reshape(images, (b, c, rows, patch_size, columns, patch_size))
    return tf.reshape(tf.transpose(x, (0, 2, 4, 1, 3, 5)), (b, rows * columns, c * patch_size**2))


class PatchEmbedding(Portable, keras.layers.Layer):
    """x E + b for each patch x (eq. 1), with E as (d_model, C, P, P), a convolution's weight."""

    def __init__(self, n_channels: int, d_model: int, patch_size: int, std: float = 0.02):
        super().__init__()
        start, shape = keras.initializers.RandomNormal(stddev=std), (d_model, n_channels, patch_size, patch_size)
        self.weight = self.add_weight(shape=shape, initializer=start, name="weight")
        self.bias = self.add_weight(shape=(d_model,), initializer="zeros", name="bias")

    def call(self, images):
        """(B, C, height, width) -> (B, N, d_model); ValueError for patches that do not fill the images."""
        weight = tf.reshape(self.weight, (self.weight.shape[0], -1))
        # one product, not a convolution: TensorFlow has none on a CPU for images with their channels in front
        return product(image_to_patches(images, self.weight.shape[-1]), weight) + tf.cast(self.bias, images.dtype)


class ViT(Checkpoint, Fittable, ExplicitMask, keras.Model):
    """A class token and linearly embedded patches with learned positions, an encoder, a linear classifier (eq. 1 to 4).

    Keras's own loop trains it too: `fit(images, labels)`, after `compile` with a loss of logits.

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
        start = keras.initializers.RandomNormal(stddev=config.init_std)
        self.class_token = self.add_weight(shape=(config.d_model,), initializer=start, name="class_token")
        self.position = LearnedPositions(config.d_model, config.n_tokens, config.init_std)
        self.dropout = keras.layers.Dropout(config.dropout)
        self.encoder = Encoder(config.n_layers, config.block, attention)
        self.classifier = dense(config.d_model, config.n_classes)
        initialise(self, config.init_std)

    def call(self, images, return_layers=False, interpolate=False, training=False):
        """Classify a batch.

        Parameters
        ----------
        images : shape (B, n_channels, height, width), numbers of floating point
        return_layers : also return every layer's hidden states and attention weights
        interpolate : take images of any size, whose positions are interpolated between those that were learned; a
            compiled function must know their size

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
        images = tf.cast(checked_images(images, self.config, interpolate), self.compute_dtype)
        last_hidden, hidden, weights = self.encoder(self.embed(images), return_layers=return_layers)
        return ViTOutput(self.classifier(last_hidden[:, 0]), last_hidden, hidden, weights)

    def embed(self, images):
        """The input of the encoder, z_0 of eq. 1: (B, n_channels, height, width) -> (B, 1 + N, d_model)."""
        patches = self.patches(images)  # (B, N, d_model)
        first = tf.broadcast_to(tf.cast(self.class_token, patches.dtype), (lengths(patches)[0], 1, patches.shape[2]))
        positions = tf.cast(self.positions(images.shape[2:]), patches.dtype)
        return self.dropout(tf.concat([first, patches], axis=1) + positions)

    def positions(self, size):
        """The positions of an image of the size (height, width): (1 + N, d_model).

        Those of patches are interpolated from the learned grid by cubic functions, as `transformers` does it; the
        class token keeps its own.
        """
        table, (rows, columns) = self.position.weight, self.config.grid
        if tuple(size) == self.config.size:
            return tf.convert_to_tensor(table)
        if None in tuple(size):
            raise ValueError(
                "positions are interpolated for a size that is known while a function is traced: give the images of "
                "its input_signature their height and width"
            )
        vertical, horizontal = (
            tf.constant(cubic_weights(n, edge // self.config.patch_size), table.dtype)
            for n, edge in zip((rows, columns), size, strict=True)
        )
        grid = tf.reshape(table[1:], (rows, columns, -1))
        resized = tf.einsum("ar,bc,rcd->abd", vertical, horizontal, grid)  # (new rows, new columns, d_model)
        return tf.concat([table[:1], tf.reshape(resized, (-1, table.shape[1]))], axis=0)

    def _inputs_signature(self):
        return keras.InputSpec("float32", (None, self.config.n_channels, *self.config.size), name="images")


def checked_images(images, config, any_size: bool | None = None):
    """Images of a model with this configuration as a tensor, checked; `any_size` is None where no other is taken.

    Raises
    ------
    TypeError : numbers that are no floating point.
    ValueError : other axes or channels than the configuration's, another size unless `any_size`.
    """
    images = tf.convert_to_tensor(images)
    size = None if any_size else config.size
    advice = "" if any_size is None else "; `interpolate=True` takes any size"
    shape, dtype = images.shape.as_list(), images.dtype.name
    check_images(shape, dtype, config.n_channels, size, advice=advice)
    # a training's compiled function knows of no axis how long it is
    return tf.ensure_shape(images, (None, config.n_channels, *(size or (None, None))))
