"""Widgets are opened without end, each with a state to be kept.

class: resources
"""

import comm

n = 0
while True:
    comm.create_comm(
        target_name="jupyter.widget",
        comm_id=f"w{n}",
        data={"state": {"value": "x" * 100_000}},
        metadata={"version": "2.1.0"},
    )
    n += 1
