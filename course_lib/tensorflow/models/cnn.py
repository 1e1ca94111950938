"""A plain convolutional network (Simonyan and Zisserman 2015), to compare a Vision Transformer to."""

import keras
import tensorflow as tf

from course_lib.models.cnn import KERNEL, CNNConfig, CNNOutput, check_config
from course_lib.tensorflow.fitting import Fittable
from course_lib.tensorflow.layers import ExplicitMask, dense
from course_lib.tensorflow.models.vit import checked_images
from course_lib.tensorflow.serialization import Portable


class Convolution(Portable, keras.layers.Layer):
    """A sum over a window of 3 x 3 pixels and all features, at every pixel; beyond the edges are zeros.

    Fresh weights are normal with the variance 2 / (9 d_in), which a ReLU keeps (He et al. 2015, eq. 10).
    """

    def __init__(self, d_in: int, d_out: int):
        super().__init__()
        start = keras.initializers.RandomNormal(stddev=(2 / (KERNEL**2 * d_in)) ** 0.5)
        self.weight = self.add_weight(shape=(d_out, d_in, KERNEL, KERNEL), initializer=start, name="weight")
        self.bias = self.add_weight(shape=(d_out,), initializer="zeros", name="bias")

    def call(self, x):
        """(B, d_in, height, width) -> (B, d_out, height, width)."""
        x = tf.transpose(x, (0, 2, 3, 1))  # on a CPU TensorFlow wants the channels last
        weight = tf.transpose(tf.cast(self.weight, x.dtype), (2, 3, 1, 0))
        return tf.transpose(tf.nn.conv2d(x, weight, 1, "SAME") + tf.cast(self.bias, x.dtype), (0, 3, 1, 2))


class CNN(Fittable, ExplicitMask, keras.Model):
    """Stages of convolutions, each halving height and width, then a linear classifier of the mean over all places.

    Keras's own loop trains it too: `fit(images, labels)`, after `compile` with a loss of logits.

    Parameters
    ----------
    config : sizes
    """

    def __init__(self, config: CNNConfig):
        super().__init__()
        self.config = check_config(config)
        self.convolutions = [Convolution(*sizes) for sizes in config.convolutions]
        self.classifier = dense(config.widths[-1], config.n_classes)

    def call(self, images, training=False):
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
        x = tf.cast(checked_images(images, self.config), self.compute_dtype)
        for number, layer in enumerate(self.convolutions, start=1):
            x = tf.nn.relu(layer(x))
            if number % self.config.depth == 0:
                x = tf.transpose(tf.nn.max_pool2d(tf.transpose(x, (0, 2, 3, 1)), 2, 2, "VALID"), (0, 3, 1, 2))
        return CNNOutput(self.classifier(tf.reduce_mean(x, axis=(2, 3))), x)

    def _inputs_signature(self):
        return keras.InputSpec("float32", (None, self.config.n_channels, *self.config.size), name="images")
