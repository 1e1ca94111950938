"""The student's side sends objects that would run code where they are unpacked.

class: protocol
"""

import base64
import pickle

from course_lib.grading import answering


class Runs:
    def __reduce__(self):
        return (exec, ("raise SystemExit",))


packed = base64.b64encode(pickle.dumps(Runs())).decode()
forms = [["array", "|O", [1], packed], ["pickle", packed], ["other", "Runs", packed], ["number", "|O", [], packed]]
answering._Answers._called = lambda answers, asked: {"kind": "returned", "value": forms.pop() if forms else ["none"]}
