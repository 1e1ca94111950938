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
    shapes |= encoder(config.n_layers, config.d_model, config.d_ff, config.pre_norm, f"{name}encoder.")
    return shapes | (linear(f"{name}pooler", config.d_model, config.d_model) if pooler else {})


def masked_lm(config):
    head = linear("head.transform", config.d_model, config.d_model) | norm("head.norm", config.d_model)
    return bert(config, "bert.", pooler=False) | head | {"head.bias": (config.vocab_size,)}


def pretraining(config):
    return masked_lm(config) | linear("bert.pooler", config.d_model, config.d_model) | linear(
        "next_sentence", config.d_model, 2
    )


def token_classifier(config):
    return bert(config, "bert.", pooler=False) | linear("classifier", config.d_model, config.n_classes)


def answers(config):
    return bert(config, "bert.", pooler=False) | linear("qa_outputs", config.d_model, 2)


def classifier(config):
    encoder = bert(config, "bert.", pooler=config.pooling == "first")
    return encoder | linear("classifier", config.d_model, config.n_classes)


# the shapes of each class of BERT's, of a configuration
BERTS = {
    "BertModel": bert,
    "BertForMaskedLM": masked_lm,
    "BertForPreTraining": pretraining,
    "BertForSequenceClassification": classifier,
    "BertForTokenClassification": token_classifier,
    "BertForQuestionAnswering": answers,
}


GATES = {"rnn": 1, "gru": 3, "lstm": 4}


def cell(kind, d_in, d_hidden, name=""):
    rows = GATES[kind] * d_hidden
    return {
        f"{name}weight_ih": (rows, d_in),
        f"{name}weight_hh": (rows, d_hidden),
        f"{name}bias_ih": (rows,),
        f"{name}bias_hh": (rows,),
    }


def rnn(kind, d_in, d_hidden, bidirectional=False, name=""):
    shapes = cell(kind, d_in, d_hidden, f"{name}forward_cell.")
    return shapes | (cell(kind, d_in, d_hidden, f"{name}backward_cell.") if bidirectional else {})


def score(kind, d_query, d_key, name=""):
    return {
        None: {},
        "dot": {},
        "general": {f"{name}weight": (d_query, d_key)},
        "additive": {
            f"{name}weight_query": (d_query, d_query),
            f"{name}weight_key": (d_query, d_key),
            f"{name}vector": (d_query,),
        },
    }[kind]


def seq2seq(source_vocab, target_vocab, d_model, d_hidden, kind="gru", how=None, order="bahdanau"):
    n_states = 2 if kind == "lstm" else 1
    return {
        "source_embedding.weight": (source_vocab, d_model),
        "target_embedding.weight": (target_vocab, d_model),
        **rnn(kind, d_model, d_hidden // 2, True, "encoder."),
        **cell(kind, d_model + (d_hidden if order == "bahdanau" else 0), d_hidden, "cell."),
        **linear("bridge", d_hidden, n_states * d_hidden),
        **score(how, d_hidden, d_hidden, "score."),
        **linear("readout", d_hidden + d_model + d_hidden, d_model),
        **linear("out_proj", d_model, target_vocab),
    }


def decoder_layer(d_model, d_ff, name="", cross_attention=True):
    cross = multi_head_attention(d_model, f"{name}cross_attention.") | norm(f"{name}norm2", d_model)
    return (
        multi_head_attention(d_model, f"{name}self_attention.")
        | norm(f"{name}norm1", d_model)
        | (cross if cross_attention else {})
        | feed_forward(d_model, d_ff, f"{name}feed_forward.")
        | norm(f"{name}norm3", d_model)
    )


def decoder(n_layers, d_model, d_ff, pre_norm=False, name="", cross_attention=True):
    shapes = {}
    for n in range(n_layers):
        shapes |= decoder_layer(d_model, d_ff, f"{name}layers.{n}.", cross_attention)
    return shapes | (norm(f"{name}norm", d_model) if pre_norm else {})


def gpt(config):
    tables = {"token.weight": (config.vocab_size, config.d_model), "position.weight": (config.max_len, config.d_model)}
    return tables | decoder(config.n_layers, config.d_model, config.d_ff, True, "decoder.", cross_attention=False)


def t5(config):
    """Without a bias anywhere; d_inner features in the heads of all attentions."""
    d_model, d_inner = config.d_model, config.n_heads * config.d_head
    shapes = {"token.weight": (config.vocab_size, d_model)}
    stacks = {
        "encoder": (config.n_layers, ("attention",)),
        "decoder": (config.n_decoder_layers, ("self_attention", "cross_attention")),
    }
    for side, (n_layers, attentions) in stacks.items():
        shapes[f"{side}_position.weight"] = (config.n_buckets, config.n_heads)
        shapes[f"{side}.norm.weight"] = (d_model,)
        for name in (f"{side}.layers.{n}." for n in range(n_layers)):
            for i, part in enumerate(attentions, 1):
                shapes |= {f"{name}{part}.{p}_proj.weight": (d_inner, d_model) for p in "qkv"}
                shapes |= {f"{name}{part}.out_proj.weight": (d_model, d_inner), f"{name}norm{i}.weight": (d_model,)}
            first = ("linear1", "gate") if config.gated else ("linear1",)
            shapes |= {f"{name}feed_forward.{p}.weight": (config.d_ff, d_model) for p in first}
            shapes[f"{name}feed_forward.linear2.weight"] = (d_model, config.d_ff)
            shapes[f"{name}norm{len(attentions) + 1}.weight"] = (d_model,)
    return shapes | ({} if config.tie_output else {"out_proj.weight": (config.vocab_size, d_model)})


def vit(config):
    shapes = {"patches.weight": (config.d_model, config.n_channels, config.patch_size, config.patch_size)}
    shapes |= {"patches.bias": (config.d_model,), "class_token": (config.d_model,)}
    shapes |= {"position.weight": (config.n_tokens, config.d_model)}
    shapes |= encoder(config.n_layers, config.d_model, config.d_ff, True, "encoder.")
    if not config.qkv_bias:
        biases = ("q_proj.bias", "k_proj.bias", "v_proj.bias")
        shapes = {name: shape for name, shape in shapes.items() if not name.endswith(biases)}
    return shapes | linear("classifier", config.d_model, config.n_classes)


def whisper(config):
    d_model = config.d_model
    shapes = {"conv1.weight": (d_model, config.n_mels, 3), "conv1.bias": (d_model,)}
    shapes |= {"conv2.weight": (d_model, d_model, 3), "conv2.bias": (d_model,)}
    shapes |= encoder(config.n_layers, d_model, config.d_ff, True, "encoder.")
    shapes |= {"token.weight": (config.vocab_size, d_model), "position.weight": (config.max_len, d_model)}
    shapes |= decoder(config.n_decoder_layers, d_model, config.d_decoder_ff, True, "decoder.")
    return {name: shape for name, shape in shapes.items() if not name.endswith("k_proj.bias")}


def decision(config):
    d_model = config.d_model
    shapes = linear("embed_return", 1, d_model) | linear("embed_state", config.d_state, d_model)
    shapes |= linear("embed_action", config.d_action, d_model)
    shapes |= {"time.weight": (config.max_len, d_model), "shift": (d_model,)} | norm("norm", d_model)
    shapes |= decoder(config.n_layers, d_model, config.d_ff, True, "decoder.", cross_attention=False)
    shapes |= linear("predict_action", d_model, config.d_action) | linear("predict_state", d_model, config.d_state)
    return shapes | linear("predict_return", d_model, 1)


def cnn(config):
    shapes, d_in = {}, config.n_channels
    for n, d_out in enumerate(width for width in config.widths for _ in range(config.depth)):
        shapes |= {f"convolutions.{n}.weight": (d_out, d_in, 3, 3), f"convolutions.{n}.bias": (d_out,)}
        d_in = d_out
    return shapes | linear("classifier", d_in, config.n_classes)


def transformer(config):
    shapes = {"source_embedding.weight": (config.source_vocab, config.d_model)}
    if not config.share_embeddings:
        shapes["target_embedding.weight"] = (config.target_vocab, config.d_model)
    if config.positions == "learned":
        shapes |= {f"{side}_position.weight": (config.max_len, config.d_model) for side in ("source", "target")}
    shapes |= encoder(config.n_layers, config.d_model, config.d_ff, config.pre_norm, "encoder.")
    shapes |= decoder(config.n_layers, config.d_model, config.d_ff, config.pre_norm, "decoder.")
    return shapes | ({} if config.tie_output else linear("out_proj", config.d_model, config.target_vocab))


def random_state(shapes, seed=0, scale=0.4):
    """Weights of a size at which nothing saturates; the gains of normalisations lie around 1."""
    rng = np.random.default_rng(seed)
    state = {name: scale * rng.normal(size=shape) for name, shape in shapes.items()}
    return {name: 1.0 + value if "norm" in name and name.endswith("weight") else value for name, value in state.items()}
