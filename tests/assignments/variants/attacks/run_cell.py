"""The shell runs another cell than it is given.

class: interpreter and shell
"""

shell = get_ipython()
run = type(shell).run_cell
type(shell).run_cell = lambda self, raw_cell, *a, **k: run(self, "2.0", *a, **k)
type(shell).run_cell_async = None
