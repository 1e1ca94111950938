"""Marks that a student's code cannot forge: computed in the instructor's process, from values.

Whoever runs hidden tests in the student's process gives the student everything: the tests, the expected values, the
comparison, the score. Here these never enter it. nbgrader's Execute runs the notebook as before; where a cell of
hidden tests comes, `execute` runs that cell in its own process instead, where the student's functions are stand-ins.
That process grades one work, and has a limit: a test may compute for ever with what it was handed.

At the instructor's, in this package:

- `execute`: nbgrader's Execute. It keeps score and report as the outputs of the cell, where nbgrader's own
  preprocessors find them
- `deadline`: a process for a work, where nbgrader's own would grade it
- `configured`: what a course's settings say, and whether it can be done
- `prepared`: what is done once for all works of an assignment
- `tests`: runs a cell of hidden tests, as the gradebook has it
- `examinee`: what a stand-in calls; it returns a value. `channel` is the way to the kernel and back, and `said` reads
  what is said beside a value
- `derivatives`: of what is returned, where tests take them
- `absent`: says where points are missing for a package that is not there
- `memory`: how much of it functions of the tests take while a student's call them
- `seeds`: inputs that nobody can know

In the student's kernel: the cells of the notebook, the public checks among them, and
`course_lib/grading/answering.py`, which calls the student's functions. On both sides: `course_lib/grading/values.py`.

What passes. A call: the name of a function, arguments, how long it may take. Its answer: what was returned or
raised, and arguments that were changed. A function among the arguments stays where it is, and is called through its
number; what it is called for may call the student's functions again, as one does that undoes a mistake. All are JSON
between the two sockets by which a kernel asks its client for what is typed in, so this works wherever ipykernel is
reached by its sockets: behind a token that is drawn for each cell of tests, and without Jupyter's own messages, which
take more time than most answers. An array is its dtype, shape and bytes in base64. What comes is read by `values.read`,
which makes plain values and executes nothing: no pickle, no object dtype. It refuses more than 16 MiB, 100,000 parts or
8 levels, and the socket closes at a frame above 48 MiB. What is refused fails its test.

Tensors pass as arrays do, with the name of their framework and whether they are differentiated; sparse, quantised and
other ones, of which NumPy makes no array, do not. A tensor is read where its framework has been imported, and no test
sees one of the student's: PyTorch and TensorFlow make it anew, of bytes. Modules and layers do not pass.
The tests of an assignment hold for both frameworks, so they compute in PyTorch, where it is installed, for a notebook
in TensorFlow, too: to the tests its tensors are PyTorch's, and to the notebook those of the tests are TensorFlow's.
This process then need not import TensorFlow, which takes seconds, and computes in a small part of its time. Where
PyTorch is missing or broken, tests compute in TensorFlow.

Derivatives go through a call. To the framework of the tests it is one operation, and to that of the student's kernel a
call of one of our functions is one as well. Whoever is asked for derivatives of its operation asks the other side, by
the number of the call, and that side takes them through the graph that it kept (`course_lib/grading/followed.py`). The
student's kernel keeps the last hundred calls of a test, and this process what it computed during a call. Where the
tests compute in TensorFlow only what `Tensors.gradients` and `expect_gradients` call is followed; in PyTorch, whatever
depends on a tensor with `requires_grad` that was given to it. No derivative has a derivative. A wrong one costs points,
and can do no more: it is an array like the one by which it is taken, or it is refused.

Seeds. `seeds.seed_for` is an HMAC of the assignment, the student, the student's code and the files beside it, under a
secret that is drawn once for a course and lies in `.grading-secret` beside the gradebook. The same work gets the same
inputs when it is graded again; any change to it gets others, so what was printed into one feedback is of no use in the
next submission.

A mistake is charged once. Tests run from the first part to the last. A test that fails is tried again with right
versions of earlier parts (`Score`'s `follow_through`). Then the student's `attention` finds in the place of its own
`softmax` one that asks the instructor's process for each value. That is an oracle for the earlier part, so it may
answer only when nothing can be earned with it any more: all tests of that part have run and their points are fixed
before the first answer, since a part's tests name earlier parts only. Of a part whose tests still come no right value
is ever sent.

What ends a kernel ends a single test. An endless loop is stopped in the kernel after three seconds, by an
interrupt from outside if that does not help, and by ending the kernel if that does not. The next test gets a new
kernel, in which the student's cells have run again. The time for the notebook bounds all this.

What this does not decide. Values are what is marked, not where they come from: `packages` of the sandbox
(`course_lib.grading.sandbox`) leaves closed libraries out. Without a sandbox a notebook may use them, and may read
and write what the instructor may: then marks are as safe as the files of the gradebook.
"""
