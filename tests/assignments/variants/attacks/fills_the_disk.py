"""Every folder that can be written is filled.

class: resources
"""

import os

for folder in ("/tmp", "/dev/shm", "/run/kernel", "/var/tmp", os.getcwd()):
    try:
        with open(os.path.join(folder, "large"), "wb") as file:
            while True:
                file.write(bytes(2**24))
    except OSError:
        pass
