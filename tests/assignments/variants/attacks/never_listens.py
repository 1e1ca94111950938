"""The kernel asks for values of the instructor's side by the thousand, and reads none of them.

class: protocol
"""

kernel = get_ipython().kernel


class Socket:
    def __init__(self, socket):
        self.socket = socket

    def __getattr__(self, name):
        return getattr(self.socket, name)

    def send_multipart(self, frames):
        asks = b'{"kind": "wanted", "pull": 0, "place": 0, "cotangent": ["float", "0x1.0p+0"]}'
        for _ in range(5_000):
            self.socket.send_multipart([*frames[:2], asks])
        self.socket.send_multipart(frames)


kernel.stdin_socket = Socket(kernel.stdin_socket)
