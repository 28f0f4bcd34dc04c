"""What every test run reports, and the order of the files.

Reported: how many kernels it needed, as each costs about 150 ms when cold.
"""

import sys

LONGEST = (  # these take a minute or more: begun first, so that no process is left alone with one
    "browser/test_learner.py",
    "test_lessons.py",
    "compiler/test_equality_random.py",
    "compiler/test_interrupts.py",
    "compiler/test_equality.py",
    "test_benchmark_workloads.py",
    "devices/gpu/test_cubins.py",
    "devices/gpu/test_texts_compile.py",
    "ops/test_devices.py",
    "devices/gpu/test_device_training.py",
    "grader/test_checks.py",
    "grader/test_attacks.py",
    "simt/test_machine_random.py",
)


def pytest_collection_modifyitems(items):
    """Puts the tests of the longest files first."""
    places = {f"tests/{name}": k for k, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))


def pytest_terminal_summary(terminalreporter):
    """One line about the kernels, if the engine was used at all."""
    loader = sys.modules.get("minigrad.devices.loader")
    if loader is not None and loader.loaded:
        terminalreporter.write_line(f"kernels loaded: {len(loader.loaded)}")
