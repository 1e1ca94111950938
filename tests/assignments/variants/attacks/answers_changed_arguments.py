"""The student's side says that arguments have become what they are not.

class: protocol
"""

from course_lib.grading import answering

answering._Answers._called = lambda answers, asked: {
    "kind": "returned",
    "value": ["none"],
    "changed": {"0": ["array", "<f8", [2**20, 2**20], ""], "1": ["text", "x"], "9": ["none"]},
}
