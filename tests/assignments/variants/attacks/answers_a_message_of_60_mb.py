"""The student's side sends a message above the limit of the socket.

class: protocol
"""

from course_lib.grading import answering

answering.json = type("Large", (), {"loads": __import__("json").loads, "dumps": lambda said: "x" * 60_000_000})
