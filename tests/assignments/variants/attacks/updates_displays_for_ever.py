"""A display that was shown is updated without end.

class: resources
"""

from IPython.display import HTML

handle = display(HTML("x"), display_id="one")
while True:
    display(HTML("x" * 100_000), display_id="one", update=True)
