"""step.graph() and viz.memory of a plan: what stands in the pictures, and that it can be read."""

import xml.etree.ElementTree as ET

import pytest

import minigrad as mg
from minigrad.compiler.cpu.cpu_plan import Plan
from minigrad.compiler.program.sketch import Sketch
from minigrad.compiler.report.picture import picture_of
from minigrad.viz.layout import place
from tests.compiler.page_steps import training

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def trained():
    """A step of an MLP with SGD and momentum."""
    x, y = mg.rand((12, 16)), mg.randint(0, 4, (12,))
    return training((16, 8, 4), lambda m: mg.optim.SGD(m, 0.1, momentum=0.9), 2, x, y)


def boxes(picture, kind=None):
    """{title: Box} of a kind."""
    return {b.title: b for b in picture.diagram.boxes if kind in (None, b.kind)}


def counted(picture, kinds):
    """How many calls or instructions the boxes of some kinds stand for."""
    return sum(b.times for b in picture.diagram.boxes if b.kind in kinds)


def test_a_box_for_each_call(trained):
    picture, r = trained.graph(), trained.report()
    assert counted(picture, ("product",)) == r.products
    assert counted(picture, ("opaque",)) == r.opaque
    assert counted(picture, ("op", "product", "opaque")) == r.calls
    fused = next(b for t, b in boxes(picture, "op").items() if "relu" in t and "linear" in t)
    assert "relu: maximum" in fused.lines  # the operations that were fused
    assert "page_steps.py" in fused.tooltip


def test_leaves_values_and_what_is_written_in_place(trained):
    picture = trained.graph()
    assert {"x", "y"} <= boxes(picture, "constant").keys()
    assert boxes(picture, "leaf")["0.weight"].lines == ["512 B"]  # 8 x 16 float32
    written = [x for b in picture.diagram.boxes if b.kind == "alias" for x in (b.title, *b.lines)]
    assert "0.weight" in written
    assert any("result, 4 B" in x for x in written)
    relu = next(b for t, b in boxes(picture, "value").items() if t.startswith("relu "))
    assert relu.title == "relu 384 B"  # 12 x 8
    assert relu.lines == ["over linear"]


def test_edges_lead_from_makers_over_values_to_readers(trained):
    diagram = trained.graph().diagram
    kinds = {b.key: b.kind for b in diagram.boxes}
    assert set(kinds) >= {end for edge in diagram.edges for end in edge}
    into, out = {}, {}
    for source, target in diagram.edges:
        into.setdefault(target, []).append(source)
        out.setdefault(source, []).append(target)
    for key, kind in kinds.items():
        if kind == "value":
            assert [kinds[k] for k in into[key]] in (["op"], ["product"], ["opaque"])
            assert out[key]
        if kind in ("leaf", "constant"):
            assert key not in into
            assert kinds[out[key][0]] in ("op", "product", "opaque")


def test_the_instructions_before(trained):
    picture, plan = trained.graph(before=True), trained.traces[0].plan
    assert counted(picture, ("op", "product", "opaque")) == len(plan.recording.instructions)
    assert not boxes(picture, "value")
    relu = boxes(picture, "op")["relu: maximum"]
    assert relu.lines[0] == "(12, 8) 384 B"
    assert relu.lines[1].startswith("in kernel")
    assert relu.lines[1] in {x for b in picture.diagram.boxes if b is not relu for x in b.lines}


def overlap(a, b):
    """Whether two rectangles (x, y, width, height) have an inner point in common."""
    return a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]


@pytest.mark.parametrize("before", [False, True])
def test_svg_is_well_formed_and_boxes_do_not_overlap(trained, before):
    root = ET.fromstring(trained.graph(before=before).to_svg())
    found = [
        [float(r.get(k)) for k in ("x", "y", "width", "height")]
        for r in root.iter(f"{SVG}rect")
        if r.get("class") == "mg-box"
    ]
    assert len(found) == len(trained.graph(before=before).diagram.boxes)
    for k, a in enumerate(found):
        assert not any(overlap(a, b) for b in found[k + 1 :])
    width, height = float(root.get("width")), float(root.get("height"))
    assert all(x >= 0 and x + w <= width and y + h <= height for x, y, w, h in found)


def test_other_forms(trained, tmp_path):
    picture = trained.graph()
    for suffix in (".svg", ".dot", ".mmd", ".html", ".txt"):
        path = tmp_path / f"step{suffix}"
        picture.save(path)
        assert "linear" in path.read_text(encoding="utf-8")
    assert "test_picture" not in str(picture).split("\n", 1)[0]


def long_chain(n):
    """n products with a relu after each, of one shape."""
    s = Sketch()
    x, w = s.argument((4, 8)), s.captured("w", (8, 8))
    for _ in range(n):
        x = s.maximum(s.matmul(x, w), 0.0)
    return s.recording(x)


def test_long_programs_are_folded_by_form():
    plan = Plan(long_chain(40), n_threads=1)
    picture = picture_of(plan, lambda v: v.name or "t", "long")
    assert "80 calls \u00b7 folded" in picture.diagram.caption
    assert len(boxes(picture, "product")) == 1
    assert counted(picture, ("product",)) == 40
    assert counted(picture, ("op",)) == 40
    assert len(picture.diagram.boxes) < 12
    kinds = {b.key: b.kind for b in picture.diagram.boxes}
    assert ("product", "op") in {(kinds[a], kinds[b]) for a, b in picture.diagram.edges}
    assert ("op", "product") not in {(kinds[a], kinds[b]) for a, b in picture.diagram.edges}
    short = picture_of(Plan(long_chain(5), n_threads=1), lambda v: v.name or "t", "short")
    assert "folded" not in short.diagram.caption
    assert [b.times for b in short.diagram.boxes if b.kind == "product"] == [1] * 5


def test_side_chains_stand_low_only_if_asked():
    sizes = dict.fromkeys("abcdst", (10.0, 10.0))
    edges = [("a", "b"), ("b", "c"), ("c", "d"), ("s", "t"), ("t", "d")]
    early, late = (place(sizes, edges, late=x).cells["t"].rank for x in (False, True))
    assert (early, late) == (1, 2)
    for source, target in edges:
        cells = place(sizes, edges, late=True).cells
        assert cells[source].rank < cells[target].rank


def test_memory_of_a_step_before_and_after(trained, monkeypatch):
    pytest.importorskip("matplotlib", reason="needs the extra 'lab'")
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    plan = trained.memory_plan()
    for given in (trained, plan):
        figure = mg.viz.memory(given)
        left, right = figure.axes
        for axes, side in ((left, plan.before), (right, plan.after)):
            assert len(axes.patches) == len(side.rows)
            widths = sorted(p.get_width() for p in axes.patches)
            assert widths == sorted(r.last - r.first + 1 for r in side.rows)
            (dashed,) = axes.get_lines()
            scale = {"offset (KiB)": 1024, "offset (bytes)": 1}[left.get_ylabel()]
            assert dashed.get_ydata()[0] * scale == pytest.approx(side.peak)
            assert axes.get_xlim() == (0, side.moments)
        figure.canvas.draw()
        plt.close(figure)


def test_memory_refuses_other_things():
    with pytest.raises(mg.errors.ArgumentTypeError, match="a timeline, or a compiled step"):
        mg.viz.memory(3)
