"""What `make bench` compares: data, no code that runs."""

from dataclasses import dataclass, field

TRANSLATOR = {"vocab_size": 8000, "d_model": 256, "n_layers": 4, "n_heads": 8, "d_ff": 1024}

BERT = {  # reviews, sentences with entities, questions with their texts, windows to pretrain on
    "classifier": {"B": 32, "T": 64},
    "tags": {"B": 32, "T": 32},
    "spans": {"B": 16, "T": 128},
    "masked": {"B": 32, "T": 64},
}
MODELS = {  # a window of text, a sentence with its answer, an image of 64 patches, four seconds of sound, 20 steps
    "gpt": {"B": 8, "T": 128, "vocab_size": 8000, "d_model": 256, "n_layers": 4, "n_heads": 8, "d_ff": 1024},
    "t5": {"B": 16, "T": 64, "vocab_size": 8000, "d_model": 256, "n_layers": 4, "n_heads": 8, "d_ff": 1024},
    "vit": {"B": 32, "image_size": 32, "patch_size": 4, "d_model": 192, "n_layers": 6, "n_heads": 3, "d_ff": 768},
    "whisper": {"B": 8, "T": 32, "F": 400, **TRANSLATOR},
    "decision": {"B": 64, "T": 20, "d_model": 128, "n_layers": 3, "n_heads": 1, "d_ff": 512},  # the paper's sizes
}
MODEL_NAMES = {"gpt": "GPT", "t5": "T5", "vit": "ViT", "whisper": "Whisper", "decision": "Decision Transformer"}
HEAD_NAMES = {
    "classifier": "a classifier",
    "tags": "a label for each token",
    "spans": "the ends of an answer",
    "masked": "masked tokens",
}


@dataclass(frozen=True)
class Subject:
    """One thing that is timed."""

    label: str
    framework: str  # "torch", "tensorflow" or "models": the worker's module
    build: str  # the function in that module
    settings: dict = field(default_factory=dict)  # joined to the figure's job


@dataclass(frozen=True)
class Figure:
    """Subjects against a peer on the same inputs and weights; every ratio is subject / peer."""

    name: str
    job: dict
    peer: Subject
    subjects: tuple[Subject, ...]
    targets: dict[str, float]  # by label; no entry, no mark
    memory: bool = False  # also the peak memory, in processes of their own
    memory_targets: dict[str, float] = field(default_factory=dict)  # by label; those of the time where there is none


def attention_figures(sizes: dict, lengths) -> list[Figure]:
    """MultiHeadAttention against the frameworks' own: forward, and forward and backward; with and without padding."""
    sides = [
        ("nn.MultiheadAttention", "torch", {}, "eager"),
        ("keras.layers.MultiHeadAttention", "tensorflow", {"jit": False}, "tf.function"),
        ("keras.layers.MultiHeadAttention", "tensorflow", {"jit": True}, "XLA"),
    ]
    figures = []
    for peer_name, framework, settings, mode in sides:
        peer = Subject(peer_name, framework, "peer_attention", settings)
        fused = Subject("fused_attention", framework, "our_attention", {"attention": "fused", **settings})
        plain = Subject("attention", framework, "our_attention", {"attention": "plain", **settings})
        for length in lengths:
            for task, target in (("forward", 1.0), ("train", 0.95)):
                for masked in (False, True):
                    what = "forward" if task == "forward" else "forward and backward"
                    name = f"{peer_name}, {mode}, T={length}, {what}, {'padding' if masked else 'no mask'}"
                    job = {**sizes, "T": length, "task": task, "masked": masked}
                    figures.append(Figure(name, job, peer, (fused, plain), {"fused_attention": target}))
    return figures


def rnn_figures(sizes: dict) -> list[Figure]:
    """RNN against the frameworks' own LSTM and GRU: forward, and forward and backward."""
    sides = [("nn.", "torch", {}, "eager")]
    sides += [
        ("keras.layers.", "tensorflow", {"jit": jit}, mode) for jit, mode in ((False, "tf.function"), (True, "XLA"))
    ]
    figures = []
    for prefix, framework, settings, mode in sides:
        for cell in ("LSTM", "GRU"):
            peer = Subject(prefix + cell, framework, "peer_rnn", settings)
            fused = Subject("fused", framework, "our_rnn", {"run": "fused", **settings})
            unrolled = Subject("unrolled", framework, "our_rnn", {"run": "unrolled", **settings})
            for task, what in (("forward", "forward"), ("train", "forward and backward")):
                name = f"{prefix}{cell}, {mode}, T={sizes['T']}, {what}"
                job = {**sizes, "cell": cell.lower(), "task": task}
                figures.append(Figure(name, job, peer, (fused, unrolled), {"fused": 1.0}))
    return figures


def bert_figures(sizes: dict) -> list[Figure]:
    """BERT (MiniLM) against transformers with each head, and TensorFlow's fine-tuning step against PyTorch's.

    Parameters
    ----------
    sizes : head -> its batch, B and T
    """
    peer = Subject("transformers", "torch", "peer_bert")
    fused = Subject("fused_attention", "torch", "our_bert", {"attention": "fused"})
    plain = Subject("attention", "torch", "our_bert", {"attention": "plain"})
    pytorch = Subject("PyTorch, fused_attention", "torch", "our_bert", {"attention": "fused"})
    xla = Subject("TensorFlow, fused_attention, XLA", "tensorflow", "our_bert", {"attention": "fused", "jit": True})
    graph = Subject(
        "TensorFlow, fused_attention, tf.function", "tensorflow", "our_bert", {"attention": "fused", "jit": False}
    )
    time, memory = {"fused_attention": 0.95}, {"fused_attention": 1.0}
    slower, larger = {"TensorFlow, fused_attention, XLA": 1.0}, {"TensorFlow, fused_attention, XLA": 1.3}
    figures = []
    for head, size in sizes.items():
        both = (fused, plain) if head == "classifier" else (fused,)
        what = f"BERT with {HEAD_NAMES[head]}, {{}}, B={size['B']}, T={size['T']}"
        inference, step = what.format("inference"), what.format("fine-tuning step")
        job = {**size, "head": head}
        forward, train = {**job, "task": "forward"}, {**job, "task": "train"}
        figures.append(Figure(f"transformers, {inference}", forward, peer, both, time, True, memory))
        figures.append(Figure(f"transformers, {step}", train, peer, both, time, True, memory))
        if head != "masked":  # XLA knows no shapes that depend on how many tokens are masked
            figures.append(Figure(f"our PyTorch, {step}", train, pytorch, (xla, graph), slower, True, larger))
    return figures


def translator_figures(sizes: dict, length: int, tokens: int) -> list[Figure]:
    """The Transformer against torch.nn's, TensorFlow's training step against PyTorch's, decoding with a cache."""
    train = {**sizes, "B": 32, "T": length, "task": "train"}
    fused, plain = ({"attention": name} for name in ("fused", "plain"))
    what = f"translator, training step, B=32, T={length}"
    figures = [
        Figure(
            f"nn.Transformer, {what}",
            train,
            Subject("nn.Transformer", "torch", "peer_translator"),
            (
                Subject("fused_attention", "torch", "our_translator", fused),
                Subject("attention", "torch", "our_translator", plain),
            ),
            {"fused_attention": 0.95},
        ),
        Figure(
            f"our PyTorch, {what}",
            train,
            Subject("PyTorch, fused_attention", "torch", "our_translator", fused),
            (
                Subject("TensorFlow, fused_attention, XLA", "tensorflow", "our_translator", {**fused, "jit": True}),
                Subject(
                    "TensorFlow, fused_attention, tf.function", "tensorflow", "our_translator", {**fused, "jit": False}
                ),
            ),
            {"TensorFlow, fused_attention, XLA": 1.0},
        ),
    ]
    # Eight sentences at once, and one, of which a token costs at least the time to read all weights once.
    for n_rows, rows in ((8, "8 sentences"), (1, "1 sentence")):
        for name, framework in (("PyTorch", "torch"), ("TensorFlow", "tensorflow")):
            figures.append(
                Figure(
                    f"{name}, decoding {tokens} tokens of {rows}, one by one",
                    {**sizes, "B": n_rows, "T": tokens, "task": "decode"},
                    Subject("without a cache", framework, "our_decoding", {**fused, "cached": False}),
                    (Subject("with a cache", framework, "our_decoding", {**fused, "cached": True}),),
                    {"with a cache": 0.2},
                )
            )
    return figures


def model_figures(sizes: dict, tokens: int) -> list[Figure]:
    """The later models against transformers: a training step, one pass forward, and tokens with a cache.

    Parameters
    ----------
    sizes : model -> its sizes and its batch
    """
    peer, own = Subject("transformers", "models", "peer_model"), Subject("fused_attention", "models", "our_model")
    figures = []
    for model, size in sizes.items():
        tasks = {"train": "training step", "forward": "inference"}
        for task, what in tasks.items():
            name = f"transformers, {MODEL_NAMES[model]}, {what}, B={size['B']}"
            figures.append(Figure(name, {**size, "model": model, "task": task}, peer, (own,), {own.label: 0.95}))
        if "vocab_size" in size:
            for rows in (8, 1):
                job = {**size, "model": model, "task": "generate", "B": rows, "T": tokens}
                name = f"transformers, {MODEL_NAMES[model]}, {tokens} tokens generated, B={rows}"
                figures.append(Figure(name, job, peer, (own,), {own.label: 0.95}))
    return figures


def all_figures() -> list[Figure]:
    """The figures at the sizes of the marks."""
    return [
        *attention_figures({"B": 8, "d_model": 256, "n_heads": 8}, lengths=(128, 512)),
        *bert_figures(BERT),
        *rnn_figures({"B": 32, "T": 64, "d": 256}),
        *translator_figures(TRANSLATOR, length=64, tokens=256),
        *model_figures(MODELS, tokens=64),
    ]
