"""The student's side sends a list in a list, 100,000 deep.

class: protocol
"""

from course_lib.grading import answering

answering.json = type(
    "Deep", (), {"loads": __import__("json").loads, "dumps": lambda said: "[" * 100_000 + "]" * 100_000}
)
