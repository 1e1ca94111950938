"""The errors of several modules, below everything else."""


class CheckpointError(ValueError):
    """A checkpoint that cannot be read, or whose weights do not fit the model."""


class UnsupportedConfigError(ValueError):
    """A configuration that asks for something the course's models do not compute."""


def few(names: list[str], limit: int = 5) -> str:
    """The first few names, for a message."""
    rest = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + rest
