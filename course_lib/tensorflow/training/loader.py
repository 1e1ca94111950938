"""Batches of pairs as TensorFlow's own tools take them: a `tf.data` pipeline."""

import tensorflow as tf


def data_loader(batches, first: int = 0):
    """One epoch of batches as a `tf.data.Dataset` of int64 tensors, the same batches as PyTorch's `data_loader`.

    The batches come ready-made, in the order and with the contents that `batches` has. Two are prepared ahead while
    the model computes. Their lengths vary, so a `tf.function` that takes them should have an `input_signature` or be
    given its shapes by `reduce_retracing`.

    Parameters
    ----------
    batches : one epoch, a `PairBatches` or another sequence of named tuples of arrays
    first : the batch to begin with, where a stopped training goes on

    Raises
    ------
    ValueError : not 0 <= first <= number of batches.
    """
    if not 0 <= first <= len(batches):
        raise ValueError(f"first must lie in 0 ... {len(batches)}, the number of batches; got {first}")
    example = batches[0]
    signature = type(example)(*(tf.TensorSpec([None] * part.ndim, part.dtype) for part in example))
    pipeline = tf.data.Dataset.from_generator(
        lambda: (batches[i] for i in range(first, len(batches))), output_signature=signature
    )
    return pipeline.apply(tf.data.experimental.assert_cardinality(len(batches) - first)).prefetch(2)
