"""A line of 150 MB is printed."""

print("x" * 150_000_000)
