"""The kernel sends messages that lack what every message has.

class: protocol
"""

kernel = get_ipython().kernel
for kind in (
    "stream",
    "display_data",
    "execute_result",
    "update_display_data",
    "error",
    "clear_output",
    "comm_open",
    "status",
):
    kernel.session.send(kernel.iopub_socket, kind, {}, parent=kernel.get_parent("shell"))
