"""What runs faster than the formulas of the other modules: gradients written by hand, functions traced once."""

import tensorflow as tf

from course_lib.tensorflow.layers import drop


def attention_context(q, k, v, mask, bias, dropout, scale):
    """softmax(scale q k^T + bias) v with fewer passes over the (T, S) scores: (..., T, d_v).

    The passes saved: q is scaled and not the scores, the mask enters as one added bias, an empty row is zeroed in the
    context, and the gradient of softmax needs the sum over s of w_ts dL/dw_ts. That sum equals the product of the
    context's row with its own gradient, d_v terms for S (Dao et al. 2022, appendix B.2).
    """

    @tf.custom_gradient
    def attend(q, k, v, *bias):
        scores = _scores(q * scale, k)  # (..., T, S)
        for term in bias:
            scores += term
        if mask is not None:
            # half of the most negative number: a score may be added to it without an overflow
            scores += tf.where(mask, tf.zeros((), scores.dtype), scores.dtype.min / 2)
        weights = tf.nn.softmax(scores)
        keep = 1.0 if dropout == 0.0 else drop(tf.ones_like(weights), dropout)  # 0, or 1 / (1 - dropout)
        context = _mean(weights * keep, v)

        def gradient(d_context):
            row_sums = tf.reduce_sum(d_context * context, axis=-1, keepdims=True)  # (..., T, 1)
            d_weights = tf.matmul(d_context, v, transpose_b=True) * keep
            d_scores = weights * (d_weights - row_sums)
            d_q = scale * tf.matmul(d_scores, k)
            d_k = _transposed_product(d_scores, q, scale)
            d_v = _transposed_product(weights * keep, scale * d_context, 1.0 / scale)
            return d_q, d_k, d_v, *(_summed(d_scores, term) for term in bias)

        return context, gradient

    context = attend(q, k, v) if bias is None else attend(q, k, v, bias)
    if mask is not None:
        context *= tf.cast(tf.reduce_any(tf.experimental.numpy.atleast_1d(mask), -1, keepdims=True), context.dtype)
    return context


def _scores(q, k):
    """q k^T, for q (..., T, d) and k (..., S, d)."""
    if not _is_one_query(q):
        return tf.matmul(q, k, transpose_b=True)
    return tf.reduce_sum(q * k, axis=-1)[..., None, :]


def _mean(weights, v):
    """weights v, for weights (..., T, S) and v (..., S, d)."""
    if not _is_one_query(weights):
        return tf.matmul(weights, v)
    return tf.reduce_sum(tf.linalg.matrix_transpose(weights) * v, axis=-2, keepdims=True)


def _is_one_query(x):
    """Whether x (1, H, 1, ...) is of one token of one sequence, as in decoding, where each has one more key.

    On a CPU, a product of matrices is prepared anew for each number of keys, which takes longer than these few sums.
    """
    return x.shape.rank == 4 and x.shape[0] == x.shape[2] == 1


def _summed(d_scores, term):
    """The gradient of a term that was broadcast to the scores: its share of each score, summed."""
    _, axes = tf.raw_ops.BroadcastGradientArgs(s0=tf.shape(d_scores), s1=tf.shape(term))
    return tf.reshape(tf.reduce_sum(d_scores, axes), tf.shape(term))


def _transposed_product(large, small, factor):
    """factor large^T small, for large (..., T, S) and small (..., T, d), as (factor small^T large)^T.

    On a CPU, XLA multiplies by a large transposed matrix four times slower than by a small one. Left alone, it would
    make large^T small of (small^T large)^T again; the factor between product and transposition keeps them apart.
    """
    return tf.linalg.matrix_transpose(factor * tf.matmul(small, large, transpose_a=True))


def recurrence(cell, mask):
    """The steps as a function of W_ih x + b_ih (T, B, n_gates d_hidden), W_hh^T, b_hh and the first states.

    The gradient walks back once and leaves the weights to a single product over all the steps. Differentiating the
    loop would add up T matrices of the weights' size.
    """

    @tf.custom_gradient
    def run(projected, weight, bias, *start):
        n_steps, (n_rows, width) = tf.shape(projected)[0], projected.shape[1:]

        def array(size):
            return tf.TensorArray(projected.dtype, n_steps, element_shape=(n_rows, size))

        def step(t, projected_t, state, after, recurred):
            product_t = tf.matmul(state[0], weight) + bias
            new = cell.combine(projected_t, product_t, state)
            state = new if mask is None else where_real(mask[t], new, state)
            after = tuple(kept.write(t, part) for kept, part in zip(after, state, strict=True))
            # sliced a step ahead: XLA would slice inside of the loops of the gates, which then take five times as long
            return t + 1, projected[tf.minimum(t + 1, n_steps - 1)], state, after, recurred.write(t, product_t)

        empty = tuple(array(cell.d_hidden) for _ in start)
        loop = (0, projected[0], tuple(start), empty, array(width))
        _, _, last, after, recurred = tf.while_loop(lambda t, *_: t < n_steps, step, loop, maximum_iterations=n_steps)
        after, recurred = [kept.stack() for kept in after], recurred.stack()

        def gradient(d_outputs, *d_last):
            before = [tf.concat([first[None], kept[:-1]], 0) for first, kept in zip(start, after, strict=True)]
            back = tf.transpose(weight)

            def step_back(t, d_state, d_projected, d_recurred):
                t = t - 1
                d_state = (d_state[0] + d_outputs[t], *d_state[1:])
                inputs = (projected[t], recurred[t], *(kept[t] for kept in before))
                with tf.GradientTape() as tape:
                    tape.watch(inputs)
                    new = cell.combine(*inputs[:2], inputs[2:])
                zeros = tuple(map(tf.zeros_like, d_state))
                d_new = d_state if mask is None else where_real(mask[t], d_state, zeros)
                d_projected_t, d_recurred_t, *d_before = tape.gradient(
                    new, inputs, output_gradients=d_new, unconnected_gradients=tf.UnconnectedGradients.ZERO
                )
                d_before[0] += tf.matmul(d_recurred_t, back)
                if mask is not None:  # a step at padding hands its gradient on
                    d_before = where_real(mask[t], d_before, d_state)
                return t, tuple(d_before), d_projected.write(t, d_projected_t), d_recurred.write(t, d_recurred_t)

            loop = (n_steps, tuple(d_last), array(width), array(width))
            _, d_start, d_projected, d_recurred = tf.while_loop(
                lambda t, *_: t > 0, step_back, loop, maximum_iterations=n_steps
            )
            rows = tf.reshape(d_recurred.stack(), (-1, width))
            d_weight = tf.matmul(tf.reshape(before[0], (-1, cell.d_hidden)), rows, transpose_a=True)
            return d_projected.stack(), d_weight, tf.reduce_sum(rows, 0), *d_start

        return (after[0], *last), gradient

    return run


def where_real(real, new, old):
    """The states (B, d_hidden) of `new` in the rows that are real (B,), those of `old` in the others."""
    return tuple(tf.where(real[:, None], a, b) for a, b in zip(new, old, strict=True))


class Traced:
    """A function that is traced once, at its first call, for tensors of these shapes.

    A `tf.function` looks at all its tensors at every call, which takes half a millisecond for the state of a decoder.

    Parameters
    ----------
    function : of tensors and tuples of tensors
    signature : a `tf.TensorSpec` in the place of each tensor
    """

    def __init__(self, function, *signature):
        self.function, self.signature, self.traced = tf.function(function), signature, None

    def __call__(self, *arguments):
        """What the function returns; the tensors must have the dtypes of the signature."""
        if self.traced is None:
            self.traced = self.function.get_concrete_function(*self.signature)
        return self.traced(*arguments)
