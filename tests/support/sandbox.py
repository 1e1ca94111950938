"""Whether this machine has the sandbox of the graders, and kernels in it.

Tests that need it are skipped where there is none, and say why.
"""

import contextlib
import json
import time

import pytest
from jupyter_client.manager import KernelManager

from course_lib.grading.outside.execute import SandboxedSpecs
from course_lib.grading.sandbox import SandboxMissing, bubblewrap

SETTINGS = {"packages": ["numpy"], "memory": 2**29, "processes": 20, "scratch": 2**25, "seconds": 600.0}


def why_missing() -> str:
    """What is wrong with the sandbox here, in its own words; empty where it works."""
    try:
        bubblewrap()
    except SandboxMissing as error:
        return str(error)
    return ""


NEEDS_SANDBOX = pytest.mark.skipif(bool(_why := why_missing()), reason=_why or "the sandbox works")


@contextlib.contextmanager
def kernel(folder, **settings):
    """A manager and a client of a kernel in the sandbox."""
    specs = SandboxedSpecs(settings=SETTINGS | settings)
    manager = KernelManager(kernel_name="python3", kernel_spec_manager=specs)
    manager.start_kernel(cwd=str(folder))
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=120)
        assert not manager.provisioner.not_warm
        yield manager, client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def said(client, code: str):
    """What an expression is, after the code before it; by way of JSON."""
    *before, last = code.strip().splitlines()
    asked = {"said": f"__import__('json').dumps({last})"}
    number = client.execute("\n".join(before), user_expressions=asked)
    while (reply := client.get_shell_msg(timeout=60))["parent_header"]["msg_id"] != number:
        pass
    found = reply["content"].get("user_expressions", {}).get("said")
    assert found and found["status"] == "ok", reply["content"]
    return json.loads(eval(found["data"]["text/plain"], {"__builtins__": {}}))


def wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()
