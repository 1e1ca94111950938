"""Lines are printed without end."""

while True:
    print("x" * 1000)
