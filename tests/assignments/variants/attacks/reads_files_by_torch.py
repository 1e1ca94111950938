"""PyTorch reads files that Python is not asked for, by their names and by what loads them.

class: files
on: attention-for-an-rnn
cell: additive-scores
"""

import glob

import torch

for path in (
    f"{COURSE}/gradebook.db", f"{COURSE}/nbgrader_config.py", f"{HOME}/.jupyter", "/etc/shadow",
    f"{COURSE}/source/attention-for-an-rnn/attention-for-an-rnn.ipynb", *glob.glob(f"{COURSE}/../**", recursive=True),
):
    for way in (
        lambda: torch.from_file(path, size=100, dtype=torch.uint8),
        lambda: torch.UntypedStorage.from_file(path, False, 100),
        lambda: torch.load(path, weights_only=False),
        lambda: torch.jit.load(path),
        lambda: torch.ops.load_library(path),
        lambda: torch.hub.load(path, "additive_scores", source="local"),
        lambda: torch.classes.load_library(path),
    ):
        try:
            print("leaked", path, way())
        except BaseException:
            pass
