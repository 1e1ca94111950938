"""Files without content are made without end."""

n = 0
while True:
    open(f"/tmp/{n}", "w").close()
    n += 1
