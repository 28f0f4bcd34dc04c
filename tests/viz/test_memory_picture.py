"""viz.memory: bytes over events, and lifetimes in lanes."""

import itertools
import sys

import pytest

import minigrad as mg
from minigrad.errors import ArgumentError, MissingLibraryError
from minigrad.viz.memory_timeline import Lifetime, in_lanes, lifetimes


def step(x, w):
    (x @ w).relu().square().mean().backward()
    w.grad = None


@pytest.fixture
def recorded():
    x, w = mg.ones((32, 64)), mg.variable(mg.ones((64, 64)), requires_grad=True)
    step(x, w)
    with mg.memory.timeline() as timeline:
        step(x, w)
    return timeline


@pytest.fixture
def pyplot(monkeypatch):
    pytest.importorskip("matplotlib", reason="needs the extra 'lab'")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    yield plt
    plt.close("all")


def test_memory_figure_names_axes_units_and_the_peak(recorded, pyplot):
    figure = mg.viz.memory(recorded)
    top, bottom = figure.axes
    assert top.get_ylabel().startswith("in use (")
    assert "event" in bottom.get_xlabel()
    peak = max(recorded, key=lambda e: e.current_bytes)
    assert f"at event {peak.index}" in top.get_title(loc="left")
    assert peak.op in top.get_title(loc="left")
    figure.canvas.draw()


def test_memory_figure_shows_the_bytes_of_the_events(recorded, pyplot):
    top = mg.viz.memory(recorded).axes[0]
    (line, *_) = top.get_lines()
    scale = 1024
    assert "KiB" in top.get_ylabel()
    shown = [y * scale for y in line.get_ydata()[1:-1]]
    assert shown == pytest.approx([e.current_bytes for e in recorded])


def test_memory_figure_of_many_steps_has_a_bar_for_each_buffer(pyplot):
    x, w = mg.ones((8, 8)), mg.variable(mg.ones((8, 8)), requires_grad=True)
    with mg.memory.timeline() as timeline:
        for _ in range(50):
            step(x, w)
    bottom = mg.viz.memory(timeline).axes[1]
    bars = sum(len(c.get_paths()) for c in bottom.collections)
    assert bars == sum(e.kind == "alloc" for e in timeline)


def boxes_drawn(figure, texts):
    renderer = figure.canvas.get_renderer()
    return [text.get_window_extent(renderer) for text in texts]


@pytest.mark.parametrize("n_buffers", [1, 2, 4])
def test_memory_figure_of_few_events_has_whole_ticks_and_labels_apart(n_buffers, pyplot):
    with mg.memory.timeline() as timeline:
        _kept = [mg.zeros((8, 8)) for _ in range(n_buffers)]
    figure = mg.viz.memory(timeline)
    figure.canvas.draw()
    top, bottom = figure.axes
    ticks = bottom.get_xticks()
    assert len(ticks) > 0
    assert all(tick == int(tick) and 0 <= tick <= len(timeline) for tick in ticks)
    upper, lower, below = boxes_drawn(
        figure, [top.yaxis.label, bottom.yaxis.label, bottom.xaxis.label]
    )
    assert not lower.overlaps(upper)
    assert not lower.overlaps(below)
    assert lower.y1 < top.get_window_extent().y0
    assert lower.y0 > 0
    for tick in boxes_drawn(figure, bottom.get_xticklabels()):
        assert not lower.overlaps(tick)


def test_memory_of_an_empty_timeline_says_what_to_do():
    with mg.memory.timeline() as timeline:
        pass
    with pytest.raises(ArgumentError, match="with mg"):
        mg.viz.memory(timeline)


def test_memory_without_matplotlib_names_the_command(recorded, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingLibraryError, match="pip install matplotlib"):
        mg.viz.memory(recorded)


def test_lifetimes_match_allocs_with_their_frees(recorded):
    spans = lifetimes(recorded.events)
    assert len(spans) == sum(e.kind == "alloc" for e in recorded)
    for s in spans:
        assert recorded.events[s.start].kind == "alloc"
        if s.stop < len(recorded):
            freed = recorded.events[s.stop]
            assert (freed.kind, freed.bytes) == ("free", s.nbytes)
            assert freed.buffer == recorded.events[s.start].buffer
    backward = [s.op for s in spans if s.op.endswith("backward")]
    assert "matmul backward" in backward


def test_in_lanes_never_puts_two_buffers_at_one_place():
    spans = [Lifetime(a, b, 1, "", "") for a, b in ((0, 4), (1, 3), (2, 9), (3, 5), (4, 6))]
    assert in_lanes(spans) == 3
    for a, b in itertools.combinations(spans, 2):
        assert a.lane != b.lane or a.stop <= b.start or b.stop <= a.start


def test_importing_minigrad_viz_does_not_import_matplotlib():
    import subprocess

    code = "import minigrad.viz, sys; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
