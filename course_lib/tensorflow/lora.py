"""LoRA (Hu et al. 2022): fine-tuning by two narrow matrices beside each frozen one, by Keras's own `enable_lora`."""

import keras

from course_lib.checkpoints.adapters import LoRA, chosen_layers, divided, read_lora, write_lora
from course_lib.checkpoints.weights import within
from course_lib.errors import CheckpointError
from course_lib.tensorflow.serialization import parts_of
from course_lib.tensorflow.state import _parameters, get_state, set_state


def add_lora(model, rank: int = 8, alpha: float = 16.0, parts=("q_proj", "v_proj"), also=()):
    """Freeze a model and put a LoRA beside the matrix of each linear layer of some names.

    `get_state` and `save_pretrained` give the sums of each matrix and its LoRA, as if it was merged.

    Parameters
    ----------
    model : a model, which is changed; compile it after this, and merge it before `model.save`, which knows no LoRA
    rank : rows of A and columns of B
    alpha : the product B A is multiplied by alpha / rank
    parts : the names of the layers, such as "q_proj" of each `MultiHeadAttention`
    also : first parts of the names of weights that are trained as they are, such as a fresh "classifier"

    Returns
    -------
    The names of the layers, in order.

    Raises
    ------
    ValueError : a rank below one, an alpha that is not positive, no layer of such a name, a LoRA that is there already.
    """
    lora = LoRA(rank, alpha, *((names,) if isinstance(names, str) else tuple(names) for names in (parts, also)))
    linear = {name: layer for name, layer in _layers(model).items() if isinstance(layer, keras.layers.Dense)}
    names = chosen_layers(lora, linear, get_state(model), _settings(model))
    for name, variable, _ in _parameters(model):
        variable.trainable = within(name, lora.also)
    for name in names:
        linear[name].enable_lora(rank, lora_alpha=alpha)
    vars(model)["lora"] = lora  # past Keras's __setattr__, which would look for weights in it
    return names


def merge_lora(model) -> None:
    """Make each matrix and its LoRA one matrix; the outputs stay, and every weight can be trained again."""
    for layer in _adapted(model).values():
        layer._kernel.assign(layer.kernel)
        layer.lora_enabled = False  # Keras has no way back
        del layer.lora_kernel_a, layer.lora_kernel_b
    for _, variable, _ in _parameters(model):
        variable.trainable = True
    vars(model)["lora"] = None


def save_lora(model, folder):
    """Write the matrices A and B alone, with what is trained besides: a folder of config.json and model.safetensors.

    Returns
    -------
    The folder, made when it did not exist.

    Raises
    ------
    ValueError : a model without a LoRA, or one that is zero, as `set_state` makes it.
    """
    matrices = {name: variable.numpy().T for name, variable in _matrices(model).items()}
    return write_lora(folder, _settings(model), matrices, get_state(model))


def load_lora(model, folder) -> None:
    """Add to a model the LoRA that `save_lora` of any framework wrote.

    Raises
    ------
    ValueError : as `add_lora`.
    CheckpointError : a LoRA of another model: layers or shapes that do not fit.
    """
    lora, state = read_lora(folder)
    add_lora(model, *lora)
    places = _matrices(model)
    shapes = {name: tuple(variable.shape)[::-1] for name, variable in places.items()}
    weights = {name: value.shape for name, value in get_state(model).items()}
    try:
        matrices, others = divided(lora, shapes, weights, state)
    except CheckpointError:
        merge_lora(model)  # which is zero yet
        raise
    set_state(model, others, partial=True)
    for name, variable in places.items():
        variable.assign(matrices[name].T)


def _settings(model) -> LoRA | None:
    return vars(model).get("lora")


def _layers(model) -> dict:
    """All layers by their names; a shared one by its first."""
    found = {}
    for name, layer, _ in parts_of(model):
        if not any(layer is other for other in found.values()):
            found[name] = layer
    return found


def _adapted(model) -> dict:
    return {name: layer for name, layer in _layers(model).items() if getattr(layer, "lora_enabled", False)}


def _matrices(model) -> dict:
    """A, (d_in, rank), and B, (rank, d_out), of each layer, by their names; Keras keeps them the other way round."""
    adapted = _adapted(model).items()
    return {f"{name}.lora_{x}": getattr(layer, f"lora_kernel_{x}") for name, layer in adapted for x in ("a", "b")}
