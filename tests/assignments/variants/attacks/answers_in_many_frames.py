"""The student's side answers in a message of a thousand frames, each as large as a frame may be.

class: resources
"""

kernel = get_ipython().kernel
large = bytes(40 * 2**20)


class Socket:
    def __init__(self, socket):
        self.socket = socket

    def __getattr__(self, name):
        return getattr(self.socket, name)

    def send_multipart(self, frames):
        self.socket.send_multipart([*frames[:2], *[large] * 1_000], copy=False)


kernel.stdin_socket = Socket(kernel.stdin_socket)
