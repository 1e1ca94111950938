"""What models say of tokens and of spans, in PyTorch: the functions of `course_lib.predictions.Predictions`."""

from course_lib.masks import padding_mask
from course_lib.predictions import Predictions, check_outputs
from course_lib.torch.layers import at_least_float32, tensor_of
from course_lib.torch.modes import evaluating
from course_lib.torch.training.common import device_of

__all__ = ["answer", "find_answers", "span_logits", "tag", "token_logits"]


def reader(model, fields: dict[str, int], knows_segments: bool):
    """How `Predictions` reads a batch."""

    def read(*inputs):
        ids, *segments = (tensor_of(values, device_of(model)) for values in inputs)
        further = {"segments": segments[0]} if knows_segments else {}
        with evaluating(model):
            output = model(ids, mask=padding_mask(ids, model.config.pad_id), **further)
        return [at_least_float32(logits).cpu().numpy() for logits in check_outputs(model, output, fields)]

    return read


predictions = Predictions(reader)
token_logits, span_logits = predictions.token_logits, predictions.span_logits
tag, find_answers, answer = predictions.tag, predictions.find_answers, predictions.answer
