"""Grade one submission as `otter run` does, and keep its marks and the executed notebook.

python otter_one.py NOTEBOOK STUDENT
"""

import json
import sys
from pathlib import Path

import nbformat
from otter.run import main

notebook, student = sys.argv[1:]
results = main(notebook, autograder="autograder.zip", output_dir="marks", no_logo=True)
Path("marks", "results.json").rename(Path("marks", f"{student}.json"))
Path("autograded", student).mkdir(parents=True)
Path("autograded", student, "executed.ipynb").write_text(json.dumps(nbformat.from_dict(results.notebook)))
