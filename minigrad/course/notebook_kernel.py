"""A kernel of this very Python for one notebook, and a client that never waits in vain for it."""

import sys
import time
from queue import Empty
from typing import Any

from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.channels import AsyncZMQSocketChannel
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from traitlets import Type

COMMAND = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
SOCKET_PATH = 90  # characters; systems take 103 to 107, and a kernel adds "-ipc-" and a number
LOOK_SECONDS = 1.0


class Channel(AsyncZMQSocketChannel):
    """Looks for messages once a second.

    ZeroMQ tells the event loop of a message only once; now and then, on a busy machine, that is
    missed, and the message lies there until the time is up.
    """

    async def get_msg(self, timeout: float | None = None) -> dict[str, Any]:
        """Return the next message; raise queue.Empty after `timeout` seconds, None: never."""
        end = float("inf") if timeout is None else time.monotonic() + timeout
        while True:
            left = max(0.0, end - time.monotonic())
            try:
                return await super().get_msg(min(left, LOOK_SECONDS))
            except Empty:
                if left <= LOOK_SECONDS:
                    raise


class Client(AsyncKernelClient):
    """The notebook's side of the messages."""

    shell_channel_class = Type(Channel)
    iopub_channel_class = Type(Channel)


class Manager(AsyncKernelManager):
    """Starts this Python, and not what some kernel's installed description names.

    Attributes:
        folder: an empty one for the kernel's files, of a subclass; its maker removes it.
    """

    folder = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, client_factory=Client, **connection(self.folder), **kwargs)

    @property
    def kernel_spec(self) -> KernelSpec:
        """How the kernel is started."""
        return KernelSpec(argv=COMMAND, display_name="this Python", language="python")


def connection(folder: str) -> dict[str, str]:
    """Return how to talk to a kernel: by files in a folder of its own where the system can.

    Ports are drawn before the kernel takes them, and another process may take one in between: then
    the kernel does not start, or its answers are waited for in vain.
    """
    path = f"{folder}/kernel.json"
    if sys.platform == "win32" or len(path.encode()) > SOCKET_PATH:
        return {}
    return {"transport": "ipc", "connection_file": path}
