"""LoRA (Hu et al. 2022): fine-tuning by two narrow matrices beside each frozen one."""

import torch
from torch import nn
from torch.nn import functional as F

from course_lib.checkpoints.adapters import LoRA, chosen_layers, divided, read_lora, write_lora
from course_lib.checkpoints.weights import within
from course_lib.errors import CheckpointError
from course_lib.torch.state import _parameters, _plain, _unwrapped, get_state, set_state


class LoRALinear(nn.Linear):
    """y = W x + b + (alpha / rank) B A x, in which A and B alone are trained (eq. 3).

    A starts at random and B at zero, so that the layer is at first what it was.
    """

    def __init__(self, linear: nn.Linear, rank: int, alpha: float):
        nn.Module.__init__(self)
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self._parameters.update(linear._parameters)  # by no assignment, since `weight` is a property
        self.scale = alpha / rank
        self.lora_a = nn.Parameter(self.matrix.new_empty(rank, self.in_features))
        self.lora_b = nn.Parameter(self.matrix.new_zeros(self.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_a)

    def forward(self, x):
        """(..., d_in) -> (..., d_out)."""
        return F.linear(x, self.matrix, self.bias) + self.scale * F.linear(F.linear(x, self.lora_a), self.lora_b)

    @property
    def matrix(self):
        """W alone, the parameter called "weight", shape (d_out, d_in)."""
        return self._parameters["weight"]

    @property
    def weight(self):
        """W + (alpha / rank) B A, the matrix that computes the same alone, shape (d_out, d_in).

        PyTorch's own attention and encoder layers read it past `forward`.
        """
        return self.matrix + self.scale * self.lora_b @ self.lora_a


def add_lora(model, rank: int = 8, alpha: float = 16.0, parts=("q_proj", "v_proj"), also=()):
    """Freeze a model and put a LoRA beside the matrix of each linear layer of some names.

    `get_state` and `save_pretrained` give the sums of each matrix and its LoRA, as if it was merged.

    Parameters
    ----------
    model : a model, which is changed
    rank : rows of A and columns of B
    alpha : the product B A is multiplied by alpha / rank
    parts : the names of the layers, such as "q_proj" of each `MultiHeadAttention`
    also : first parts of the names of weights that are trained as they are, such as a fresh "classifier"

    Returns
    -------
    The names of the layers, in order.

    Raises
    ------
    ValueError : a rank below one, an alpha that is not positive, no layer of such a name, a LoRA that is there already,
        a matrix that is another layer's, too.
    """
    lora = LoRA(rank, alpha, *((names,) if isinstance(names, str) else tuple(names) for names in (parts, also)))
    linear, model = _layers(model, nn.Linear), _unwrapped(model)
    names = chosen_layers(lora, linear, _parameters(model), getattr(model, "lora", None))
    for name in names:
        _check_own(model, name, linear[name])
    for name, weight in _parameters(model).items():
        weight.requires_grad_(within(name, lora.also))
    for name in names:
        _replace(model, linear[name], LoRALinear(linear[name], rank, alpha))
    model.lora = lora
    return names


def merge_lora(model) -> None:
    """Make each matrix and its LoRA one matrix; the outputs stay, and every weight can be trained again."""
    for layer in _layers(model, LoRALinear).values():
        plain = nn.Linear(layer.in_features, layer.out_features, layer.bias is not None, device="meta")
        plain.weight, plain.bias = nn.Parameter(layer.weight.detach()), layer.bias
        _replace(model, layer, plain.train(layer.training))
    model.requires_grad_(True)
    _unwrapped(model).lora = None


def save_lora(model, folder):
    """Write the matrices A and B alone, with what is trained besides: a folder of config.json and model.safetensors.

    Returns
    -------
    The folder, made when it did not exist.

    Raises
    ------
    ValueError : a model without a LoRA, or one that is zero, as `set_state` makes it.
    """
    matrices = {name: place.detach().cpu().float().numpy() for name, place in _matrices(model).items()}
    return write_lora(folder, getattr(_unwrapped(model), "lora", None), matrices, get_state(model))


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
    shapes, weights = ({name: tuple(x.shape) for name, x in some.items()} for some in (places, get_state(model)))
    try:
        matrices, others = divided(lora, shapes, weights, state)
    except CheckpointError:
        merge_lora(model)  # which is zero yet
        raise
    set_state(model, others, partial=True)
    with torch.no_grad():
        for name, place in places.items():
            place.copy_(torch.from_numpy(matrices[name]))


def _layers(model, kind) -> dict:
    """The layers of a kind by the names that `get_state` has for their parts; a shared one by its first."""
    return {_plain(name): layer for name, layer in _unwrapped(model).named_modules() if isinstance(layer, kind)}


def _matrices(model) -> dict:
    """A, (rank, d_in), and B, (d_out, rank), of each layer, by their names."""
    adapted = _layers(model, LoRALinear).items()
    return {f"{name}.{matrix}": getattr(layer, matrix) for name, layer in adapted for matrix in ("lora_a", "lora_b")}


def _check_own(model, name: str, layer) -> None:
    """Raise ValueError for a matrix that other layers compute with, which would do so without the LoRA."""
    if sum(weight is layer.weight for module in model.modules() for weight in module._parameters.values()) > 1:
        raise ValueError(f"the matrix of {name} is that of another layer, too, so it can have no LoRA of its own")


def _replace(model, layer, other) -> None:
    """Put a layer into each place of another."""
    for parent in _unwrapped(model).modules():
        for name, part in parent._modules.items():
            if part is layer:
                parent._modules[name] = other
