"""The names and shapes of every model's weights, written out by hand, and random weights under those names."""

import numpy as np


def linear(name, d_in, d_out):
    return {f"{name}.weight": (d_out, d_in), f"{name}.bias": (d_out,)}


def norm(name, d_model):
    return {f"{name}.weight": (d_model,), f"{name}.bias": (d_model,)}


def multi_head_attention(d_model, name=""):
    shapes = {}
    for projection in ("q_proj", "k_proj", "v_proj", "out_proj"):
        shapes |= linear(name + projection, d_model, d_model)
    return shapes


def feed_forward(d_model, d_ff, name=""):
    return linear(f"{name}linear1", d_model, d_ff) | linear(f"{name}linear2", d_ff, d_model)


def encoder_layer(d_model, d_ff, name=""):
    return (
        multi_head_attention(d_model, f"{name}attention.")
        | norm(f"{name}norm1", d_model)
        | feed_forward(d_model, d_ff, f"{name}feed_forward.")
        | norm(f"{name}norm2", d_model)
    )


def encoder(n_layers, d_model, d_ff, pre_norm=False, name=""):
    shapes = {}
    for n in range(n_layers):
        shapes |= encoder_layer(d_model, d_ff, f"{name}layers.{n}.")
    return shapes | (norm(f"{name}norm", d_model) if pre_norm else {})


def bert(config, name="", pooler=True):
    shapes = {
        f"{name}embeddings.token.weight": (config.vocab_size, config.d_model),
        f"{name}embeddings.segment.weight": (config.n_segments, config.d_model),
        f"{name}embeddings.position.weight": (config.max_len, config.d_model),
    }
    shapes |= norm(f"{name}embeddings.norm", config.d_model)
    shapes |= encoder(config.n_layers, config.d_model, config.d_ff, name=f"{name}encoder.")
    return shapes | (linear(f"{name}pooler", config.d_model, config.d_model) if pooler else {})


def masked_lm(config):
    head = linear("head.transform", config.d_model, config.d_model) | norm("head.norm", config.d_model)
    return bert(config, "bert.", pooler=False) | head | {"head.bias": (config.vocab_size,)}


def classifier(config):
    return bert(config, "bert.") | linear("classifier", config.d_model, config.n_classes)


def random_state(shapes, seed=0, scale=0.4):
    """Weights of a size at which nothing saturates; the gains of normalisations lie around 1."""
    rng = np.random.default_rng(seed)
    state = {name: scale * rng.normal(size=shape) for name, shape in shapes.items()}
    return {name: 1.0 + value if "norm" in name and name.endswith("weight") else value for name, value in state.items()}
