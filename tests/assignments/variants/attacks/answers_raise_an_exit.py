"""The student's side reports an exception that would end whoever raises it.

class: protocol
"""

from course_lib.grading import answering

answering._Answers._called = lambda answers, asked: {
    "kind": "raised",
    "types": ["SystemExit", "KeyboardInterrupt", "BaseException"],
    "text": "0",
    "stopped": False,
}
