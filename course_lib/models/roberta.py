"""RoBERTa (Liu et al. 2019): BERT trained longer on more text, without segments and next sentences.

What changes here: the positions count real tokens, from pad_id + 1 on; there is one segment; the classifier has a layer
of its own and no pooler. Its tokenizer, byte-level BPE, is not part of the course: that of `tokenizers` or
`transformers` gives the ids.
"""

from dataclasses import dataclass
from typing import ClassVar

from course_lib.checkpoints.folders import find_checkpoint
from course_lib.checkpoints.names import Renames
from course_lib.checkpoints.pretrained import Family
from course_lib.models.bert import RENAMES as BERT_RENAMES
from course_lib.models.bert import BertConfig
from course_lib.models.config_json import Border, check_keys, reader_of, write


@dataclass(frozen=True)
class RobertaConfig(BertConfig):
    """The sizes of a RoBERTa, as `BertConfig`; the defaults are those of the released base model.

    Raises
    ------
    ValueError : as `BertConfig`; no position after those up to pad_id.
    """

    vocab_size: int = 50265
    max_len: int = 514  # rows of the table of positions: a text has max_len - pad_id - 1 tokens at most
    n_segments: int = 1
    norm_eps: float = 1e-5
    pad_id: int = 1

    pooler: ClassVar[bool] = False
    border: ClassVar[Border] = BertConfig.border._replace(
        name="RoBERTa",
        model_type="roberta",
        absent={"max_len": 512, "n_segments": 2, "norm_eps": 1e-12},
    )

    def __post_init__(self):
        super().__post_init__()
        if self.max_len < self.pad_id + 2:
            raise ValueError(
                f"max_len must be {self.pad_id + 2} or more for pad_id={self.pad_id}: the first token has the position "
                f"pad_id + 1; got {self.max_len}"
            )

    @property
    def longest(self) -> int:
        """How many tokens a text may have: the positions from pad_id + 1 on."""
        return self.max_len - self.pad_id - 1

    @property
    def head_activation(self) -> str:
        """The exact GELU, whatever the layers have."""
        return "gelu"


check_keys(RobertaConfig)


RENAMES = {
    **{theirs: ours for theirs, ours in BERT_RENAMES.items() if not theirs.startswith("cls.")},
    "lm_head.dense.{p}": "head.transform.{p}",
    "lm_head.layer_norm.{p}": "head.norm.{p}",
    "lm_head.bias": "head.bias",
    "lm_head.decoder.{p}": None,  # a copy of a tied weight
    "classifier.dense.{p}": "classifier.dense.{p}",
    "classifier.out_proj.{p}": "classifier.out_proj.{p}",
}

ROBERTA = Family(
    name="RoBERTa",
    config=RobertaConfig,
    read_config=reader_of(RobertaConfig),
    write_config=write,
    find=find_checkpoint,
    names=Renames(RENAMES, prefix="roberta.", heads=("lm_head.", "classifier.", "qa_outputs."), ours="bert."),
    ties={
        "lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    },
    tied_part="head",
    heads=("pooler", "head", "classifier", "qa_outputs"),
    encoder="RobertaModel",
    classes=(
        "RobertaModel",
        "RobertaForMaskedLM",
        "RobertaForSequenceClassification",
        "RobertaForTokenClassification",
        "RobertaForQuestionAnswering",
    ),
)
