"""Names for the models' outputs, without which `torch.export.save` refuses to write a named tuple."""

from torch.utils import _pytree

from course_lib import outputs

for _name, _kind in vars(outputs).items():
    if hasattr(_kind, "_fields") and _kind not in _pytree.SUPPORTED_SERIALIZED_TYPES:
        _pytree._register_namedtuple(_kind, serialized_type_name=f"course_lib.outputs.{_name}")
