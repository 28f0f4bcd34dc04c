"""What every test run reports, the order of the files, and which tests are quick.

Reported: how many kernels it needed, as each costs about 150 ms when cold.
"""

import gc
import sys

import pytest

from tests import tiers

LAST_FILE = pytest.StashKey()
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


def pytest_ignore_collect(collection_path, config):
    """Files without quick tests are not looked into for those."""
    if config.option.markexpr == "quick" and collection_path.suffix == ".py":
        path = collection_path.relative_to(config.rootpath).as_posix()
        return True if tiers.share_of(path) is None else None
    return None


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items):
    """Marks the quick tests; puts those of the longest files first."""
    for item in tiers.quick(items):
        item.add_marker("quick")
    places = {f"tests/{name}": k for k, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Before a file's first test, what is there is kept from the collector and from counts.

    Many tests collect garbage and look for nodes among all objects: 14,000 tests are among them.
    """
    if item.config.stash.get(LAST_FILE, None) != item.path:
        item.config.stash[LAST_FILE] = item.path
        gc.collect()
        gc.freeze()


def pytest_terminal_summary(terminalreporter, config):
    """One line about the kernels, if the engine was used at all."""
    loader = sys.modules.get("minigrad.devices.loader")
    if loader is not None and loader.loaded:
        terminalreporter.write_line(f"kernels loaded: {len(loader.loaded)}")


def pytest_unconfigure(config):
    """The last line of all: how to run the rest."""
    if config.option.markexpr == "quick" and not hasattr(config, "workerinput"):
        line = "These were the quick tests. All of them: python3 start.py test --all"
        config.get_terminal_writer().line(line)
