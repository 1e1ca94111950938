"""The memory of the processes around it is opened, and read where that is let.

class: surroundings
"""

import os

for number in filter(str.isdigit, os.listdir("/proc")):
    if int(number) != os.getpid() and int(number) > 1:
        try:
            with open(f"/proc/{number}/mem", "rb") as file:
                file.seek(0x400000)
                text = file.read(100)
            command = open(f"/proc/{number}/cmdline", "rb").read()
            print("leaked", number) if b"nbgrader" in command else None
        except OSError:
            pass
