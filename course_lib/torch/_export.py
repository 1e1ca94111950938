"""Names for the models' outputs, without which `torch.export.save` refuses to write a named tuple."""

from torch.utils import _pytree

from course_lib.models import bert, bert_heads, blocks, cnn, decision, gpt, seq2seq, t5, transformer, vit, whisper

for _module in (blocks, bert, bert_heads, cnn, decision, gpt, seq2seq, t5, transformer, vit, whisper):
    for _name, _kind in vars(_module).items():
        if hasattr(_kind, "_fields") and _kind.__module__ == _module.__name__:
            if _kind not in _pytree.SUPPORTED_SERIALIZED_TYPES:
                _pytree._register_namedtuple(_kind, serialized_type_name=f"{_module.__name__}.{_name}")
