"""Every number is shown as the points of its cell.

class: interpreter and shell
"""

formatter = get_ipython().display_formatter.formatters["text/plain"]
formatter.for_type(float, lambda value, printer, cycle: printer.text("4.0"))
formatter.float_precision = "4.0"
