"""course_lib.models: the fields of what the models return."""

from course_lib.models import bert, bert_heads, blocks, gpt, t5, transformer

OUTPUTS = {**vars(blocks), **vars(bert), **vars(bert_heads), **vars(gpt), **vars(t5), **vars(transformer)}


def test_fields():
    fields = {
        "AttentionOutput": ("output", "weights"),
        "EncoderOutput": ("last_hidden", "hidden", "weights"),
        "BertOutput": ("last_hidden", "pooled", "hidden", "weights"),
        "MaskedLMOutput": ("logits", "hidden", "weights"),
        "ClassifierOutput": ("logits", "hidden", "weights"),
        "PretrainingOutput": ("masked_logits", "next_logits", "hidden", "weights"),
        "TokenClassifierOutput": ("logits", "hidden", "weights"),
        "AnswerOutput": ("start_logits", "end_logits", "hidden", "weights"),
        "DecoderLayerOutput": ("output", "self_weights", "cross_weights"),
        "DecoderOutput": ("last_hidden", "hidden", "self_weights", "cross_weights"),
        "LayerCache": ("keys", "values", "memory_keys", "memory_values"),
        "TransformerOutput": (
            "logits", "encoder_hidden", "encoder_weights", "decoder_hidden", "self_weights", "cross_weights",
        ),
        "GPTOutput": ("logits", "hidden", "weights"),
        "GPTState": ("caches", "real"),
        "T5Output": (
            "logits", "encoder_hidden", "encoder_weights", "decoder_hidden", "self_weights", "cross_weights",
        ),
        "T5Memory": ("hidden", "mask"),
        "T5State": ("memory_mask", "caches"),
        "LossOutput": ("loss", "nll", "n_tokens"),
    }  # fmt: skip
    assert {name: OUTPUTS[name]._fields for name in fields} == fields
    for name in fields:
        assert OUTPUTS[name].__doc__.strip(), name


def test_an_output_unpacks_like_a_tuple():
    context, weights = blocks.AttentionOutput("context", "weights")
    assert (context, weights) == ("context", "weights")
