"""Starts a notebook kernel of this Python, with a client that misses none of its messages."""

import sys
import time
from queue import Empty
from typing import Any

from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.channels import AsyncZMQSocketChannel
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from traitlets import Type

COMMAND = [
    sys.executable,
    "-X",
    "faulthandler",
    "-m",
    "ipykernel_launcher",
    "-f",
    "{connection_file}",
]
SOCKET_PATH = 90  # characters; systems allow 103 to 107, and a kernel adds "-ipc-" and a number
LOOK_SECONDS = 1.0


class Channel(AsyncZMQSocketChannel):
    """Polls for messages once a second.

    ZeroMQ tells the event loop of a message only once. On a busy machine that is sometimes missed,
    and the message would wait until the timeout.
    """

    async def get_msg(self, timeout: float | None = None) -> dict[str, Any]:
        """Return the next message; raise queue.Empty after `timeout` seconds (None: never)."""
        end = float("inf") if timeout is None else time.monotonic() + timeout
        while True:
            left = max(0.0, end - time.monotonic())
            try:
                return await super().get_msg(min(left, LOOK_SECONDS))
            except Empty:
                if left <= LOOK_SECONDS:
                    raise


class Client(AsyncKernelClient):
    """The notebook's side of the connection."""

    shell_channel_class = Type(Channel)
    iopub_channel_class = Type(Channel)


class Manager(AsyncKernelManager):
    """Starts this Python, not the one that an installed kernel description names.

    Attributes:
        folder: an empty folder for the kernel's files. A subclass sets it; the caller removes it.
    """

    folder = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, client_factory=Client, **connection(self.folder), **kwargs)

    @property
    def kernel_spec(self) -> KernelSpec:
        """Return the description that starts the kernel."""
        return KernelSpec(argv=COMMAND, display_name="this Python", language="python")


def connection(folder: str) -> dict[str, str]:
    """Return how to connect to a kernel: by sockets in a folder of its own if the system can.

    Ports would be chosen before the kernel opens them. If another process takes one in between, the
    kernel does not start, or its answers never arrive.
    """
    path = f"{folder}/kernel.json"
    if sys.platform == "win32" or len(path.encode()) > SOCKET_PATH:
        return {}
    return {"transport": "ipc", "connection_file": path}
