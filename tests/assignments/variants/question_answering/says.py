"""What the public checks say of wrong solutions: the cell that fails, and a part of its words."""

SAYS: dict[str, tuple[str, str]] = {}
UNSEEN: dict[str, str] = {}
