"""Lines are printed without end.

class: resources
"""

while True:
    print("x" * 1000)
