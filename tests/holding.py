"""Another thread inside a lock, or inside any other context, while a test goes on."""

import contextlib
import threading


@contextlib.contextmanager
def held_elsewhere(context):
    """Another thread is inside `context` until the block ends."""
    inside, go_on = threading.Event(), threading.Event()

    def hold():
        with context:
            inside.set()
            go_on.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert inside.wait(30), "the thread did not get inside"
        yield
    finally:
        go_on.set()
        thread.join()
