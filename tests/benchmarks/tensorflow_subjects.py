"""What is timed in TensorFlow: our layers and `keras.layers.MultiHeadAttention`; see torch_subjects.py.

Every call is compiled: by `tf.function`, and by XLA when the job says so.
"""

import numpy as np
from problems import GATES, HEADS, NEW, attention_problem, bert_problem, rnn_problem, translator_problem

import course_lib.tensorflow as ours  # before TensorFlow itself: it keeps the start-up banner quiet

import keras  # isort: skip
import tensorflow as tf  # isort: skip
from course_lib.batches.texts import IGNORED  # isort: skip
from course_lib.tensorflow.training import optimizers, translation  # isort: skip

ATTENTION = {"fused": ours.fused_attention, "plain": ours.attention}
RUN = {"fused": ours.run_fused, "unrolled": ours.run_unrolled}
LEARNING_RATE, WEIGHT_DECAY = 2e-5, 0.01


def set_threads(n: int) -> None:
    """Let TensorFlow compute with n threads."""
    tf.config.threading.set_intra_op_parallelism_threads(n)
    tf.config.threading.set_inter_op_parallelism_threads(n)


def gemm(size: int):
    """A square matrix product in float32: the function that runs it."""
    a, b = tf.random.normal((size, size)), tf.random.normal((size, size))
    return lambda: tf.matmul(a, b).numpy()


def our_attention(job):
    """MultiHeadAttention of course_lib, with the attention function that the job names."""
    problem = attention_problem(job)
    layer = ours.MultiHeadAttention(job["d_model"], job["n_heads"], attention=ATTENTION[job["attention"]])
    ours.set_state(layer, problem["state"])
    mask = None if problem["real"] is None else tf.constant(problem["real"][:, None, None, :])
    forward = lambda x, training: layer(x, x, x, mask=mask, training=training)[0]  # noqa: E731
    return _compiled(job, problem, layer.trainable_variables, forward)


def peer_attention(job):
    """keras.layers.MultiHeadAttention as it is: no weights returned, so it takes its dot_product_attention."""
    problem = attention_problem(job)
    d_model, n_heads = job["d_model"], job["n_heads"]
    layer = keras.layers.MultiHeadAttention(n_heads, d_model // n_heads)
    layer.build((None, None, d_model), (None, None, d_model))
    parts = {"q": layer.query_dense, "k": layer.key_dense, "v": layer.value_dense, "out": layer.output_dense}
    for name, part in parts.items():
        part.kernel.assign(problem["state"][f"{name}_proj.weight"].T.reshape(part.kernel.shape))
        part.bias.assign(problem["state"][f"{name}_proj.bias"].reshape(part.bias.shape))
    mask = None if problem["real"] is None else tf.constant(problem["real"][:, None, :])
    forward = lambda x, training: layer(query=x, value=x, attention_mask=mask, training=training)  # noqa: E731
    return _compiled(job, problem, layer.trainable_variables, forward)


def our_rnn(job):
    """RNN of course_lib, with what runs the cell as the job says."""
    problem = rnn_problem(job)
    layer = ours.RNN(job["d"], job["d"], job["cell"], run=RUN[job["run"]])
    ours.set_state(layer, problem["state"])
    return _compiled(job, problem, layer.trainable_variables, lambda x, training: layer(x)[0], counted=2)


def peer_rnn(job):
    """keras.layers.LSTM or keras.layers.GRU; their kernels are transposed, and the GRU's gates stand as z, r, n."""
    problem = rnn_problem(job)
    d, cell = job["d"], job["cell"]
    layer = {"lstm": keras.layers.LSTM, "gru": keras.layers.GRU}[cell](d, return_sequences=True)
    layer.build((None, None, d))
    order = {"lstm": (0, 1, 2, 3), "gru": (1, 0, 2)}[cell]
    state = {
        name.split(".")[1]: np.concatenate([np.split(value, GATES[cell])[gate] for gate in order])
        for name, value in problem["state"].items()
    }
    biases = state["bias_ih"], state["bias_hh"]
    layer.set_weights([state["weight_ih"].T, state["weight_hh"].T, sum(biases) if cell == "lstm" else np.stack(biases)])
    return _compiled(job, problem, layer.trainable_variables, lambda x, training: layer(x), counted=2)


def _compiled(job, problem, variables, forward, counted=None):
    x, gradient = tf.constant(problem["x"]), tf.constant(problem["gradient"])

    @tf.function(jit_compile=job["jit"])
    def infer(x):
        return forward(x, False)

    @tf.function(jit_compile=job["jit"])
    def train(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            output = forward(x, True)
        return output, tape.gradient(output, [x, *variables], output_gradients=gradient)

    def call():
        return infer(x) if job["task"] == "forward" else train(x)

    def outputs():
        if job["task"] == "forward":
            return {"output": call().numpy()}
        output, (d_x, *rest) = call()
        found = {"output": output.numpy(), "d x": d_x.numpy()}
        # of a recurrent network the two matrices: Keras's LSTM has one bias for our two
        return {**found, "norm of the gradient": tf.linalg.global_norm(rest[:counted]).numpy()}

    return call, outputs


def our_bert(job):
    """BERT of course_lib with the head that the job names; a fine-tuning step is one compiled function."""
    model = getattr(ours, HEADS[job["head"]]).from_pretrained(
        "minilm-l6", new=NEW[job["head"]], attention=ATTENTION[job["attention"]]
    )
    problem = bert_problem(job, model.config.vocab_size, model.config.d_model)
    layer = model.qa_outputs if job["head"] == "spans" else model.classifier
    weight, bias = problem["head"].values()
    layer.kernel.assign(weight.T)
    layer.bias.assign(bias)
    ids, labels = tf.constant(problem["ids"]), tf.constant(problem["labels"])
    real = tf.constant(problem["real"])
    mask = real[:, None, None, :]
    variables = model.trainable_variables
    optimizer = keras.optimizers.AdamW(LEARNING_RATE, weight_decay=WEIGHT_DECAY, epsilon=1e-8)
    optimizer.build(variables)

    def logits_of(ids, training):
        output = model(ids, mask=mask, training=training)
        if job["head"] == "spans":
            return tf.where(real[:, None], tf.stack([output.start_logits, output.end_logits], 1), -1e9)
        return output.logits

    def gradients(ids, labels, training):
        with tf.GradientTape() as tape:
            logits, counted = logits_of(ids, training), tf.cast(labels != IGNORED, tf.float32)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.maximum(labels, 0), logits)
            loss = tf.reduce_sum(losses * counted) / tf.reduce_sum(counted)
        return loss, tape.gradient(loss, variables)

    @tf.function(jit_compile=job["jit"])
    def infer(ids):
        return logits_of(ids, False)

    @tf.function(jit_compile=job["jit"])
    def train(ids, labels):
        loss, slopes = gradients(ids, labels, True)
        optimizer.apply(slopes, variables)
        return loss

    def call():
        return infer(ids) if job["task"] == "forward" else train(ids, labels)

    def outputs():
        if job["task"] == "forward":
            found = call().numpy()
            if job["head"] != "classifier":
                found = (found if job["head"] == "tags" else found.transpose(0, 2, 1))[problem["real"]]
            return {"logits": found}
        loss, slopes = gradients(ids, labels, False)
        which = {id(variable): slope for variable, slope in zip(variables, slopes, strict=True)}
        d_weight, d_bias = (np.ascontiguousarray(which[id(v)].numpy().T) for v in (layer.kernel, layer.bias))
        found = dict(zip((f"d {name}" for name in problem["head"]), (d_weight, d_bias), strict=True))
        dense = [tf.convert_to_tensor(slope) for slope in slopes]
        return {**found, "loss": loss.numpy(), "norm of the gradient": tf.linalg.global_norm(dense).numpy()}

    return call, outputs


def our_translator(job):
    """Transformer of course_lib and the training step of its `training.translation`, one compiled function."""
    problem = translator_problem(job)
    model = ours.Transformer(problem["config"], attention=ATTENTION[job["attention"]])
    ours.set_state(model, problem["state"])
    optimizer = optimizers.adam(model)
    optimizer.learning_rate.assign(LEARNING_RATE)
    step = translation.make_train_step(model, optimizer, 0.1, jit_compile=job["jit"])
    batch = [tf.constant(problem[name]) for name in ("source", "inputs", "labels")]
    variables = [variable.value for variable in model.trainable_variables]

    def outputs():
        with tf.GradientTape() as tape:
            loss = ours.cross_entropy(model(*batch[:2], training=False).logits, batch[2], 0, 0.1).loss
        slopes = [tf.convert_to_tensor(slope) for slope in tape.gradient(loss, variables)]
        return {"loss": loss.numpy(), "norm of the gradient": tf.linalg.global_norm(slopes).numpy()}

    return lambda: step(*batch).numpy(), outputs


def our_decoding(job):
    """T tokens read one after the other by `next_logits`, with keys and values kept or not; both compiled."""
    problem = translator_problem(job)
    model = ours.Transformer(problem["config"], attention=ATTENTION[job["attention"]])
    ours.set_state(model, problem["state"])
    ids = np.random.default_rng(0).integers(1, job["vocab_size"], (job["B"], job["T"]))

    def call():
        step = model.next_logits(problem["source"][:, :16], job["cached"])
        for t in range(1, job["T"] + 1):
            logits = step(ids[:, :t])
        return logits

    return call, lambda: {"logits": call()}
