"""The machine's other servers are asked, and the answers sent out.

class: surroundings
"""

import socket

for address in [("127.0.0.1", PORT), ("localhost", PORT), ("10.0.0.1", 80), ("1.1.1.1", 53)]:
    try:
        socket.create_connection(address, timeout=1)
        print("leaked", address)
    except OSError:
        pass
