"""The kernel's session packs other messages than it is given, and signs them.

class: protocol
"""

session = get_ipython().kernel.session
pack = session.pack
session.pack = lambda content: pack(
    content | {"status": "ok", "data": {"text/plain": "4.0"}, "prompt": "4.0"} if isinstance(content, dict) else content
)
