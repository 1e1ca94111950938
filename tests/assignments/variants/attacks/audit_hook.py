"""A hook that nobody can remove ends every call that opens, compiles or executes.

class: interpreter and shell
"""

import sys


def hook(event, arguments):
    if event in ("compile", "exec") and "hidden" in str(arguments[:1]):
        raise SystemExit(f"leaked {arguments}")


sys.addaudithook(hook)
