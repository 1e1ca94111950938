"""BERT's checkpoints: what `transformers` calls its weights, and what its folders hold."""

from course_lib.config import BertConfig
from course_lib.names import Renames
from course_lib.pretrained import Family

# Hugging Face's name -> ours, without the leading "bert."; {n} is the layer's number.
# None = dropped on purpose: buffers, copies of tied weights (`TIES` looks at them first), the next-sentence head.
# The head that answers questions is none of ours; it has a name so that BertModel can leave it out.
RENAMES = {
    "embeddings.word_embeddings.weight": "embeddings.token.weight",
    "embeddings.position_embeddings.weight": "embeddings.position.weight",
    "embeddings.token_type_embeddings.weight": "embeddings.segment.weight",
    "embeddings.LayerNorm.{p}": "embeddings.norm.{p}",
    "encoder.layer.{n}.attention.self.query.{p}": "encoder.layers.{n}.attention.q_proj.{p}",
    "encoder.layer.{n}.attention.self.key.{p}": "encoder.layers.{n}.attention.k_proj.{p}",
    "encoder.layer.{n}.attention.self.value.{p}": "encoder.layers.{n}.attention.v_proj.{p}",
    "encoder.layer.{n}.attention.output.dense.{p}": "encoder.layers.{n}.attention.out_proj.{p}",
    "encoder.layer.{n}.attention.output.LayerNorm.{p}": "encoder.layers.{n}.norm1.{p}",
    "encoder.layer.{n}.intermediate.dense.{p}": "encoder.layers.{n}.feed_forward.linear1.{p}",
    "encoder.layer.{n}.output.dense.{p}": "encoder.layers.{n}.feed_forward.linear2.{p}",
    "encoder.layer.{n}.output.LayerNorm.{p}": "encoder.layers.{n}.norm2.{p}",
    "pooler.dense.{p}": "pooler.{p}",
    "cls.predictions.transform.dense.{p}": "head.transform.{p}",
    "cls.predictions.transform.LayerNorm.{p}": "head.norm.{p}",
    "cls.predictions.bias": "head.bias",
    "classifier.{p}": "classifier.{p}",
    "qa_outputs.{p}": "qa_outputs.{p}",
    "embeddings.position_ids": None,
    "cls.predictions.decoder.{p}": None,
    "cls.seq_relationship.{p}": None,
}

# of each tied weight that a masked language model's file may hold twice, the second name and the first
TIES = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}


def read_config(settings: dict, architecture: str) -> BertConfig:
    """The configuration that a config.json describes, for one of our classes; errors as `from_hugging_face`."""
    if architecture != "BertForMaskedLM":  # the others have no output matrix that could be tied
        settings = {**settings, "tie_word_embeddings": True}
    return BertConfig.from_hugging_face(settings)


def find(name_or_folder, source=None):
    """The folder of a checkpoint: one that is there, or one of the data registry's by its name."""
    from course_lib.data import resolve  # here, so that the library needs NumPy alone until somebody loads

    return resolve(name_or_folder, source)


BERT = Family(
    name="BERT",
    read_config=read_config,
    write_config=BertConfig.to_hugging_face,
    find=find,
    names=Renames(RENAMES, prefix="bert.", heads=("cls.", "classifier.", "qa_outputs.")),
    ties=TIES,
    tied_part="head",
    heads=("pooler", "head", "classifier"),
    encoder="BertModel",
    classes=("BertModel", "BertForMaskedLM", "BertForSequenceClassification"),
)
