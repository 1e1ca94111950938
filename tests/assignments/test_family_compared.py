"""What *The family compared* says of real models is what the library and the records say."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from course_lib import torch as in_torch
from course_lib.models.albert import AlbertConfig
from course_lib.models.bert import BertConfig
from course_lib.models.distilbert import DistilBertConfig
from course_lib.torch.training.objectives import classification, distillation
from notebooks.experiments import family
from tests.support.course import grade_id
from tests.support.quick import source_of

NAME = "the-family-compared"


@pytest.fixture(scope="module")
def solved():
    """The names of the solutions, and of the table."""
    names = {"np": np}
    for cell in source_of(NAME).cells:
        if cell.cell_type == "code" and (
            cell.metadata.get("nbgrader", {}).get("solution") or grade_id(cell) == "measured"
        ):
            exec(cell.source, names)
    return names


def test_the_table_is_that_of_the_records(solved):
    recorded = family.EXPERIMENT.record.read()
    assert len(solved["RIGHT"]) == 8
    for name in solved["RIGHT"]:
        runs = [recorded[f"{name} {seed}"] for seed in (1, 2, 3)]
        right = np.array([family.unpacked(run["right"], 3000) for run in runs])
        np.testing.assert_array_equal(solved["rights"](name), right)
        assert solved["SECONDS"][name] == pytest.approx(np.mean([run["seconds"] for run in runs]), abs=0.06)


def test_parameters_are_those_of_the_library(solved):
    count = solved["parameters"]
    base = (768, 3072)
    with torch.device("meta"):
        models = {
            count(30522, 512, 2, 12, *base): in_torch.BertModel(BertConfig()),
            count(30522, 512, 0, 6, *base, pooler=False): in_torch.DistilBertModel(DistilBertConfig()),
            count(30000, 512, 2, 12, *base, e=128, shared=True): in_torch.AlbertModel(AlbertConfig()),
        }
    assert all(number == sum(p.numel() for p in model.parameters()) for number, model in models.items())


def test_the_loss_is_that_of_the_library(solved):
    """Where all sentences have labels, and where none has and the teacher is heard alone."""

    class Says(torch.nn.Module):
        pad_id = 0

        def __init__(self, logits):
            super().__init__()
            self.logits = torch.nn.Parameter(logits)

        def forward(self, ids, mask=None):
            return SimpleNamespace(logits=self.logits)

    generator = torch.Generator().manual_seed(0)
    student, teacher = (torch.randn(4, 3, generator=generator) for _ in range(2))
    for labels, alpha in (([0, 2, 1, 1], 0.3), ([-100] * 4, 1.0)):
        labels = torch.tensor(labels)
        objective = distillation(Says(teacher), temperature=3.0, alpha=alpha, objective=classification())
        arrays = {"ids": torch.ones(4, 2, dtype=torch.int64), "labels": labels}
        arrays |= {f"teacher_{name}": array for name, array in arrays.items()}
        (part,) = objective.losses(Says(student), **arrays)
        found = solved["distillation_loss"](student, teacher, labels, 3.0, alpha)
        torch.testing.assert_close(found, part.loss.detach())


def test_the_numbers_of_the_model_answer_are_those_of_the_table(solved):
    (answer,) = (cell.source for cell in source_of(NAME).cells if grade_id(cell) == "explain")
    gaps = [
        ("small BERT, more said", "small BERT, labels"),
        ("small BERT, more said", "small BERT, said"),
        ("cut MiniLM, said", "small DistilBERT, more said"),
        ("cut MiniLM, labels", "small BERT, labels"),
    ]
    for one, other in gaps:
        value, low, high = (100 * x for x in solved["difference"](solved["rights"](one), solved["rights"](other)))
        assert f"{value:.1f}" in answer and f"({low:.1f} to {high:.1f})".replace("-0.0", "0.0") in answer, (one, other)
    for one, other in [
        ("small DistilBERT, more said", "small BERT, more said"),
        ("small BERT, more classes", "small BERT, labels"),
    ]:
        _, low, high = (100 * x for x in solved["difference"](solved["rights"](one), solved["rights"](other)))
        assert f"({low:.2f} to {high:.2f})" in answer, (one, other)
    small = (30522, 64, 2, 2, 64, 256)
    for more in ({}, {"e": 16, "shared": True}, {"e": 16}, {"shared": True}):
        assert f"{solved['parameters'](*small, **more, pooler=False):,}" in answer, more
    base = (30522, 512, 2, 12, 768, 3072)
    for more in ({}, {"e": 128}, {"shared": True}, {"e": 128, "shared": True}):
        assert f"{solved['parameters'](*base, **more, pooler=False) / 1e6:.1f}" in answer, more
    models = {name: (solved["SECONDS"][name], solved["rights"](name).mean()) for name in solved["RIGHT"]}
    assert solved["front"](models) == [
        "small BERT, said",
        "small BERT, labels",
        "small BERT, more said",
        "small DistilBERT, more said",
        "cut MiniLM, said",
    ]
