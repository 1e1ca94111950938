"""The kernel says that it is idle and dead by turns, in the middle of every cell.

class: protocol
"""

kernel = get_ipython().kernel
for _ in range(200):
    for state in ("idle", "dead", "restarting", "starting", "none of these"):
        kernel.session.send(
            kernel.iopub_socket, "status", {"execution_state": state}, parent=kernel.get_parent("shell")
        )
