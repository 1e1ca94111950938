"""TensorFlow reads files by its own system of them.

class: files
on: attention-for-an-rnn
cell: additive-scores
"""

import tensorflow as tf

for path in (
    f"{COURSE}/gradebook.db", f"{COURSE}/nbgrader_config.py", f"{HOME}/.jupyter", "/etc/shadow",
    f"{COURSE}/source/attention-for-an-rnn/attention-for-an-rnn.ipynb", f"http://127.0.0.1:{PORT}/answers",
):
    for way in (
        lambda: tf.io.read_file(path),
        lambda: tf.io.gfile.listdir(path),
        lambda: tf.io.gfile.copy(path, "copy", overwrite=True) or open("copy").read(),
        lambda: next(iter(tf.data.TextLineDataset(path))),
        lambda: tf.load_op_library(path),
        lambda: tf.io.gfile.copy("copy", path, overwrite=True),
    ):
        try:
            print("leaked", path, way())
        except BaseException:
            pass
