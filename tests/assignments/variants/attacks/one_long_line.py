"""A line of 150 MB is printed.

class: resources
"""

print("x" * 150_000_000)
