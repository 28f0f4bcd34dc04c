"""What every test run reports, the order of the files, and which tests run.

Reported: how many kernels it needed, as each costs about 150 ms when cold, and the slowest files.

    --turn K        of the tests that take turns (`tests/tiers.py`), those whose turn K is: 0 to 9
    --not-again     leaves out what the last run of the quick tests here has shown
    --facts A,B     the tests of these facts alone (`tests/facts.py`)
"""

import collections
import gc
import sys

import pytest
from hypothesis.internal.conjecture.providers import Constants, HypothesisProvider

from tests import facts, tiers

# Hypothesis draws the constants of all modules loaded so far now and then, so that a derandomized
# test would see other values in each process, by the tests that ran there before.
HypothesisProvider._local_constants = Constants()

LAST_FILE = pytest.StashKey()
READS = pytest.StashKey()  # what the process, or a file while it was imported, has read
LONGEST = (  # these take a minute or more: begun first, so that no process is left alone with one
    "browser/test_learner.py",
    "test_types.py",
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
    "grader/test_mechanical.py",
    "grader/test_silly_answers.py",
    "grader/test_attacks.py",
    "simt/test_machine_random.py",
)
PASSED = "minigrad/passed"  # in pytest's cache: the quick tests that passed when last run
MANY = 10  # files
LONG = 60.0  # seconds that tests took together


def pytest_addoption(parser):
    """Adds the options."""
    group = parser.getgroup("minigrad")
    group.addoption("--turn", type=int, metavar="K", help="of what takes turns, turn K of ten")
    group.addoption("--facts", metavar="NAMES", help="the tests of these facts alone")
    group.addoption("--not-again", action="store_true", help="leave out quick tests that passed")


def pytest_configure(config):
    """Where facts are proved, notes what each test reads."""
    if config.option.facts is not None:
        config.stash[READS] = facts.Reads()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Keeps what a file reads while it is imported for the first report of its tests."""
    reads = collector.config.stash.get(READS, None)
    if reads is not None:
        reads.taken()  # what was read before is not its own
    report = yield
    if reads is not None and isinstance(collector, pytest.Module):
        collector.stash[READS] = reads.taken()
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Adds what was read since the last report."""
    report = yield
    if READS in item.config.stash:
        paths = item.config.stash[READS].taken() + item.parent.stash.get(READS, [])
        item.parent.stash[READS] = []
        report.user_properties.append((facts.READ, paths))
    return report


def pytest_ignore_collect(collection_path, config):
    """Files without quick tests are not looked into for those."""
    if config.option.markexpr == "quick" and collection_path.suffix == ".py":
        path = collection_path.relative_to(config.rootpath).as_posix()
        return True if tiers.share_of(path) is None else None
    return None


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items, config):
    """Marks tests by `tiers`, takes out what is not to run, puts the longest files first."""
    for item in tiers.quick(items):
        item.add_marker("quick")
    for item in items:
        if tiers.is_timed(item.nodeid):
            item.add_marker("timed")
    kept = items
    if config.option.turn is not None:
        kept = tiers.in_turn(kept, config.option.turn)
    if config.option.facts is not None:
        names = set(config.option.facts.split(","))
        kept = [x for x in kept if facts.fact_of(x.nodeid) in names]
    if config.option.not_again:
        passed = {n for n in config.cache.get(PASSED, ()) if not tiers.needs_compiler(n)}
        kept = [x for x in kept if x.nodeid not in passed]
    chosen = set(kept)
    config.hook.pytest_deselected(items=[x for x in items if x not in chosen])
    items[:] = kept
    places = {f"tests/{name}": k for k, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Before a file's first test, what is there is kept from the collector and from counts.

    Many tests collect garbage and look for nodes among all objects: 14,000 tests are among them.
    """
    if READS in item.config.stash:
        item.config.stash[READS].taken()  # of what ran between two tests
    if item.config.stash.get(LAST_FILE, None) != item.path:
        item.config.stash[LAST_FILE] = item.path
        gc.collect()
        gc.freeze()


def pytest_terminal_summary(terminalreporter, config):
    """A line about the kernels, if the engine was used at all; the slowest files of a long run."""
    loader = sys.modules.get("minigrad.devices.loader")
    if loader is not None and loader.loaded:
        terminalreporter.write_line(f"kernels loaded: {len(loader.loaded)}")
    seconds, passed = collections.Counter(), []
    for report in [x for found in terminalreporter.stats.values() for x in found]:
        if isinstance(report, pytest.TestReport):
            seconds[report.nodeid.partition("::")[0]] += report.duration
            if report.when == "call" and report.passed:
                passed.append(report.nodeid)
    if seconds.total() > LONG:
        terminalreporter.section("slowest files")
        for path, taken in seconds.most_common(MANY):
            terminalreporter.write_line(f"{taken:6.0f} s  {path}")
    if config.option.markexpr == "quick":
        config.cache.set(PASSED, passed)
    if config.option.turn is not None:
        unknown = [fact for fact in facts.all_facts() if not facts.is_known(fact)]
        if unknown:
            terminalreporter.section("facts that are not known, of which all tests ran")
            some = ", ".join(unknown[:3]) + (", ..." if len(unknown) > 3 else "")
            terminalreporter.write_line(f"{len(unknown)}: {some}")
            terminalreporter.write_line("`python -m tests.facts` proves them")


def pytest_unconfigure(config):
    """The last line of all: how to run the rest."""
    if config.option.markexpr == "quick" and not hasattr(config, "workerinput"):
        line = "These were the quick tests. All of them: python3 start.py test --all"
        config.get_terminal_writer().line(line)
