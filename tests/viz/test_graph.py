"""viz.graph: what is in the picture, in each of its forms."""

import gc
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import minigrad as mg
from minigrad.course import executing
from minigrad.errors import ArgumentError, ArgumentTypeError
from tests.functions import Two

SVG = "{http://www.w3.org/2000/svg}"


def leaf(*shape, name=None):
    return mg.variable(np.ones(shape, np.float32), requires_grad=True, name=name)


def small_loss():
    x = mg.ones((4, 3))
    w, b = leaf(3, 2, name="w"), leaf(2, name="b")
    loss = (x @ w + b).square().mean()
    loss.name = "loss"
    return loss


def layers(count, same_weight=None):
    h = leaf(2, 4, name="x")
    for k in range(count):
        w = leaf(4, 4, name=f"layers.{k}.weight") if same_weight is None else same_weight
        h = (h @ w).tanh()
    return h.sum()


def all_boxes(diagram):
    for box in diagram.boxes:
        yield box
        if box.inside is not None:
            yield from all_boxes(box.inside)


def boxes(picture, kind=None):
    return [b for b in all_boxes(picture.diagram) if kind in (None, b.kind)]


def titles(picture, kind):
    return [b.title for b in boxes(picture, kind)]


def texts(svg):
    root = ElementTree.fromstring(svg)
    return [t.text for t in root.iter(f"{SVG}text")]


def test_graph_of_a_loss_has_ops_in_order_leaves_constants_and_root():
    picture = mg.viz.graph(small_loss())
    assert titles(picture, "op") == ["matmul", "add", "square", "mean"]
    assert titles(picture, "leaf") == ["w", "b"]
    assert titles(picture, "constant") == ["a"]  # the data: it takes no gradient
    assert titles(picture, "root") == ["loss"]


def test_graph_edges_point_from_inputs_to_what_uses_them():
    picture = mg.viz.graph(small_loss())
    name = {b.key: b.title for b in boxes(picture)}
    edges = {(name[a], name[b]) for a, b in picture.diagram.edges}
    assert edges == {
        ("a", "matmul"), ("w", "matmul"), ("matmul", "add"), ("b", "add"), ("add", "square"),
        ("square", "mean"), ("mean", "loss"),
    }  # fmt: skip


def test_graph_shows_shapes_and_what_is_saved_with_bytes():
    op = {b.title: b.lines for b in boxes(mg.viz.graph(small_loss()), "op")}
    assert op["matmul"] == ["(4, 2)", "saves a 48 B"]  # x for the gradient of w; w is not needed
    assert op["add"] == ["(4, 2)"]
    assert op["square"] == ["(4, 2)", "saves x 32 B"]
    assert op["mean"] == ["()"]


def test_graph_names_dtypes_other_than_float32():
    w = mg.variable(np.ones(3), requires_grad=True, name="w")
    picture = mg.viz.graph((w * 2.0).sum())
    assert boxes(picture, "leaf")[0].lines == ["(3,) float64"]
    assert boxes(picture, "op")[0].lines[0] == "(3,) float64"


def test_graph_caption_counts_each_storage_once():
    w = leaf(8, 8, name="w")
    y = w.tanh()
    picture = mg.viz.graph((y * y).sum())  # tanh and mul save the same y
    assert picture.diagram.caption == "3 operations · 1 leaf · saved for backward: 256 B"


def test_graph_caption_says_how_much_leaves_hold_anyway():
    w = leaf(8, 8, name="w")
    assert "saved for backward: 256 B, 256 B of it leaves" in str(mg.viz.graph((w * w).sum()))


def test_graph_tooltip_is_the_line_of_the_user():
    w = leaf(2)
    y = w.tanh()  # the line to be shown
    (box,) = boxes(mg.viz.graph(y), "op")
    assert "y = w.tanh()  # the line to be shown" in box.tooltip
    assert "test_graph.py:" in box.tooltip
    assert "the line to be shown" in mg.viz.graph(y).to_svg()


def test_graph_of_a_freed_graph_keeps_the_shapes_and_says_so():
    loss = small_loss()
    loss.backward()
    picture = mg.viz.graph(loss)
    op = {b.title: b.lines for b in boxes(picture, "op")}
    assert op["matmul"] == ["(4, 2)"]
    assert picture.diagram.caption.endswith("freed: backward has used up what was saved")


def test_graph_of_a_partly_freed_graph_counts_the_freed():
    w = leaf(2, name="w")
    y = w.tanh()
    a, b = y.sum(), (y * 2.0).sum()
    a.backward()
    assert "2 operations · 1 leaf" in mg.viz.graph(a).diagram.caption
    assert "1 operation freed" in mg.viz.graph(b).diagram.caption


def test_graph_shared_node_is_drawn_once():
    w = leaf(3, name="w")
    t = w.tanh()
    picture = mg.viz.graph((t * t.exp() + t.sin()).sum())
    assert titles(picture, "op").count("tanh") == 1
    assert titles(picture, "leaf") == ["w"]


def test_graph_of_several_roots_has_them_all():
    w = leaf(3, name="w")
    a, b = w.sum(), w.exp()
    a.name, b.name = "a", "b"
    assert titles(mg.viz.graph([a, b]), "root") == ["a", "b"]


def test_graph_of_a_leaf_is_one_box():
    picture = mg.viz.graph(leaf(3, name="w"))
    assert titles(picture, "leaf") == ["w"]
    assert "0 operations" in picture.diagram.caption


def test_graph_of_a_function_with_two_outputs_draws_both():
    a, b = Two.apply(leaf(3, name="w"))
    picture = mg.viz.graph((a * b).sum())
    assert titles(picture, "op")[:3] == ["Two", "Two[0]", "Two[1]"]
    assert str(picture).count("Two ") >= 1


def test_graph_does_not_keep_the_graph_alive():
    loss = small_loss()
    picture = mg.viz.graph(loss)
    gc.collect()  # what earlier tests left must not go away in between
    before = mg.memory.stats()["live_nodes"]
    del loss
    assert mg.memory.stats()["live_nodes"] == before - 4
    assert "matmul" in str(picture)


@pytest.mark.parametrize("wrong", [3.0, "loss", None, [1.0], np.ones(3)])
def test_graph_of_something_else_says_what_is_wanted(wrong):
    with pytest.raises(ArgumentTypeError, match="wanted a Variable"):
        mg.viz.graph(wrong)


def test_graph_of_nothing_says_what_is_wanted():
    with pytest.raises(ArgumentError, match="at least one"):
        mg.viz.graph([])


# -- repeated blocks -----------------------------------------------------------------------------


def test_fold_twelve_layers_are_drawn_as_one_block_with_its_count():
    picture = mg.viz.graph(layers(12))
    (group,) = boxes(picture, "group")
    assert group.title == "× 11"  # the first layer is fed by a leaf, not by a layer
    assert [b.title for b in group.inside.boxes if b.kind == "op"] == ["matmul", "tanh"]
    (weights,) = (b for b in group.inside.boxes if b.kind == "leaf")
    assert (weights.title, weights.times) == ("layers.1..11.weight", 11)
    assert picture.diagram.caption.startswith("25 operations · 13 leaves")


def test_fold_leaves_short_repetitions_alone_unless_asked():
    assert not boxes(mg.viz.graph(layers(3)), "group")
    assert [b.title for b in boxes(mg.viz.graph(layers(3), fold=True), "group")] == ["× 2"]


def test_fold_false_draws_everything():
    picture = mg.viz.graph(layers(40), fold=False)
    assert not boxes(picture, "group")
    assert len(boxes(picture, "op")) == 81


def test_fold_a_loop_with_one_weight_draws_that_weight_once_outside():
    w = leaf(4, 4, name="w")
    picture = mg.viz.graph(layers(12, same_weight=w))
    (group,) = boxes(picture, "group")
    assert [b.title for b in picture.diagram.boxes if b.kind == "leaf"] == ["x", "w"]
    key = next(b.key for b in picture.diagram.boxes if b.title == "w")
    assert (key, group.key) in picture.diagram.edges


def test_fold_a_value_that_every_step_reads_stays_outside():
    w, c = leaf(4, 4, name="w"), leaf(2, 4, name="c").exp()
    h = leaf(2, 4, name="h")
    for _ in range(10):
        h = (h @ w + c).tanh()
    picture = mg.viz.graph(h.sum())
    (group,) = boxes(picture, "group")
    assert group.title == "× 9"
    exp = next(b.key for b in boxes(picture, "op") if b.title == "exp")
    assert (exp, group.key) in picture.diagram.edges


def test_fold_blocks_of_other_shapes_are_not_the_same():
    h = leaf(2, 4, name="x")
    for k in range(12):
        h = (h @ leaf(4 + k, 5 + k)).tanh()
    assert not boxes(mg.viz.graph(h.sum(), fold=True), "group")


def test_fold_above_150_operations_folds_what_it_can():
    h = leaf(4)
    for _ in range(40):
        h = h.tanh().tanh().exp().sin()
    picture = mg.viz.graph(h.sum())
    assert len(boxes(picture)) < 20


def test_fold_every_node_is_in_the_picture_or_stands_in_a_block():
    picture = mg.viz.graph(layers(30))
    shown = 0
    for box in picture.diagram.boxes:
        if box.kind == "op":
            shown += 1
        elif box.kind == "group":
            shown += box.times * sum(b.kind == "op" for b in box.inside.boxes)
    assert shown == 61


def test_graph_too_long_to_draw_leaves_out_the_middle_and_says_so():
    rng, h = np.random.default_rng(0), leaf(4)
    for k in rng.integers(0, 3, 700):
        h = (h.tanh, h.sin, h.exp)[k]()
    picture = mg.viz.graph(h.sum(), fold=False)
    (more,) = boxes(picture, "more")
    assert more.lines == [f"{701 - 120:,} more operations"]
    assert len(boxes(picture, "op")) == 120


def test_graph_of_a_very_long_chain_neither_recurses_nor_stalls():
    h = leaf(1)
    for _ in range(20_000):
        h = h.tanh()
    picture = mg.viz.graph(h.sum())
    assert "× 19999" in str(picture)
    assert picture.to_svg()
    assert picture.to_dot()
    assert picture.to_mermaid()
    open_picture = mg.viz.graph(h.sum(), fold=False)
    assert "more operations" in str(open_picture)


# -- forms ---------------------------------------------------------------------------------------


def test_svg_is_well_formed_and_says_what_the_diagram_says():
    loss = small_loss()
    loss.name = '<loss & "co">'
    found = texts(mg.viz.graph(loss).to_svg())
    assert '<loss & "co">' in found
    assert {"matmul", "add", "square", "mean", "w", "b", "saves a 48 B"} <= set(found)


def test_svg_same_program_twice_gives_the_same_text():
    assert mg.viz.graph(small_loss()).to_svg() == mg.viz.graph(small_loss()).to_svg()


def test_svg_text_fits_into_its_box():
    loss = small_loss()
    loss.name = "a name that is much longer than any that one would give to a loss, really"
    root = ElementTree.fromstring(mg.viz.graph(loss).to_svg())
    groups = [g for g in root.iter(f"{SVG}g") if g.get("class", "").startswith("mg-")]
    assert len(groups) == 8
    for group in groups:
        (box,) = (r for r in group.findall(f"{SVG}rect"))
        for text in group.findall(f"{SVG}text"):
            size = 13 if text.get("class") == "mg-title" else 11
            half = 0.61 * size * len(text.text) / 2
            left, width = float(box.get("x")), float(box.get("width"))
            assert left <= float(text.get("x")) - half
            assert float(text.get("x")) + half <= left + width


def test_svg_boxes_of_a_folded_net_do_not_overlap():
    root = ElementTree.fromstring(mg.viz.graph(layers(12)).to_svg())
    found = []

    def visit(element, dx, dy):
        move = re.match(r"translate\((\S+) (\S+)\)", element.get("transform", ""))
        if move:
            dx, dy = dx + float(move[1]), dy + float(move[2])
        for child in element:
            if child.tag == f"{SVG}rect" and child.get("class") == "mg-box":
                x, y, w, h = (float(child.get(k)) for k in ("x", "y", "width", "height"))
                found.append((x + dx, y + dy, w, h))
            visit(child, dx, dy)

    visit(root, 0.0, 0.0)
    assert len(found) == 9
    for k, (x, y, w, h) in enumerate(found):
        for x2, y2, w2, h2 in found[:k]:
            assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y


def test_print_gives_a_tree_with_branches_and_references():
    w = leaf(3, name="w")
    t = (w - 1.0).tanh()
    text = str(mg.viz.graph((t * t.exp()).sum()))
    assert text == (
        "output ()  = 0\n"
        "sum ()\n"
        "mul (3,)  saves a 12 B, b 12 B\n"
        "├─ tanh (3,)  saves y 12 B  #1\n"
        "│  sub (3,)\n"
        "│  └─ w (3,)  leaf\n"
        "exp (3,)  saves y 12 B\n"
        "tanh #1, as above\n"
        "5 operations · 1 leaf · saved for backward: 24 B"
    )


def test_dot_has_every_box_and_edge_and_quotes_names():
    loss = small_loss()
    loss.name = 'the "loss"'
    text = mg.viz.graph(loss).to_dot()
    assert text.startswith("digraph minigrad {")
    assert text.count(" -> ") == 7
    assert r"the \"loss\"" in text
    assert text.count("{") == text.count("}")


def test_dot_and_mermaid_show_blocks_and_connect_what_stands_at_their_border():
    picture = mg.viz.graph(layers(12))
    keys = {b.key for b in boxes(picture) if b.kind != "group"}
    dot, mermaid = picture.to_dot(), picture.to_mermaid()
    assert "subgraph cluster_" in dot
    assert "subgraph g" in mermaid
    for ends in re.findall(r"(\w+) -+> (\w+)", dot) + re.findall(r"(\w+) -+> (\w+)", mermaid):
        assert set(ends) <= keys


def test_mermaid_escapes_what_would_end_a_label():
    loss = small_loss()
    loss.name = 'a "b" <c> #1'
    assert "a #quot;b#quot; #lt;c#gt; #35;1" in mg.viz.graph(loss).to_mermaid()


def test_mimebundle_has_picture_and_text_and_obeys_include_and_exclude():
    picture = mg.viz.graph(small_loss())
    bundle = picture._repr_mimebundle_()
    width = int(re.search(r'width="(\d+)"', bundle["image/svg+xml"])[1])
    shown = int(re.search(r'<svg style="min-width:(\d+)px"', bundle["text/html"])[1])
    assert shown == pytest.approx(0.7 * width, abs=1)  # it scrolls before it is too small to read
    assert set(bundle) == {"text/html", "image/svg+xml", "text/plain"}
    assert "<svg" in bundle["text/html"]
    assert set(picture._repr_mimebundle_(include={"text/plain"})) == {"text/plain"}
    assert "text/html" not in picture._repr_mimebundle_(exclude={"text/html"})
    assert picture._repr_svg_() == bundle["image/svg+xml"]


@pytest.mark.parametrize(
    ("suffix", "start"),
    [
        (".svg", "<svg"), (".dot", "digraph"), (".mmd", "flowchart"), (".txt", "loss"),
        (".html", "<!doctype html>"),
    ],
)  # fmt: skip
def test_save_writes_the_form_of_the_suffix(tmp_path, suffix, start):
    path = tmp_path / f"graph{suffix}"
    mg.viz.graph(small_loss()).save(path)
    assert path.read_text(encoding="utf-8").startswith(start)


def test_save_with_another_suffix_names_those_it_knows(tmp_path):
    with pytest.raises(ArgumentError, match=r"\.svg"):
        mg.viz.graph(small_loss()).save(tmp_path / "graph.png")


def test_graph_in_a_notebook_is_shown_as_a_picture(tmp_path):
    pytest.importorskip("nbclient", reason="needs the extra 'test'")
    nbformat = pytest.importorskip("nbformat", reason="needs the extra 'test'")
    pytest.importorskip("ipykernel", reason="needs the extra 'lab'")
    source = (
        "import minigrad as mg\n"
        "w = mg.variable([1.0, 2.0], requires_grad=True, name='w')\n"
        "mg.viz.graph((w * w).sum())"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    notebook, _ = executing.execute(nbformat.writes(notebook), tmp_path)
    (output,) = notebook.cells[0].outputs
    assert "<svg" in output["data"]["text/html"]
    assert output["data"]["image/svg+xml"].startswith("<svg")
    assert "mul (2,)" in output["data"]["text/plain"]
