"""Generated changes of the reference that are right all the same: by cell and change, with the reason."""

EQUIVALENT: dict[tuple[str, str], str] = {}
