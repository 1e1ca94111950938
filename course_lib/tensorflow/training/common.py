"""What the trainings in TensorFlow share: checks of a model, of its variables and of their gradients."""

from course_lib.tensorflow.state import _parameters
from course_lib.training.arguments import check_parameters


def check_model(model) -> None:
    """Check a model before it is trained; ValueError for weights in float16 or bfloat16, or none to train."""
    if not model.weights:
        raise ValueError("the model has no weights yet: call it once on a batch, or build it")
    remedy = 'build the model with dtype="mixed_bfloat16" or "mixed_float16", which keep the weights in float32'
    check_parameters([weight.dtype for weight in model.trainable_variables], remedy)


def check_variables(model, saved: bool) -> None:
    """Check the variables of a model before it is trained; `saved`: whether the training shall be resumable.

    Raises
    ------
    ValueError : weights of 16 bits, or none to train; a LoRA in a training that is saved.
    """
    check_model(model)
    known = {id(variable) for _, variable, _ in _parameters(model)}
    merged = [variable.path for variable in model.trainable_variables if id(variable) not in known]
    if saved and merged:
        raise ValueError(
            "a checkpoint holds what `get_state` gives, which adds up a matrix and its LoRA, so that "
            f"{merged[0]} could not be trained on from there; train without a checkpoint, or without a LoRA"
        )


def check_gradients(variables, gradients) -> list:
    """The gradients of variables; ValueError that names those that have none."""
    unused = [v.path for v, gradient in zip(variables, gradients, strict=True) if gradient is None]
    if unused:
        raise ValueError(f"no gradient reaches {', '.join(unused)}: the logits do not depend on it; freeze it")
    return gradients
