"""Files without content are made without end.

class: resources
"""

n = 0
while True:
    open(f"/tmp/{n}", "w").close()
    n += 1
