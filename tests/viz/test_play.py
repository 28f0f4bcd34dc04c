"""viz.graph(loss).play(): its numbers are the engine's, and its page needs nothing beside it."""

import gc
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import ArgumentError, GradientError, GraphFreedError, SavedValueModifiedError
from minigrad.viz.play import MOST_PLAYED
from tests.browser.lab import find_chromium
from tests.functions import Two


def leaf(*shape, name, seed=0):
    values = np.random.default_rng(seed).uniform(0.5, 1.5, shape)
    return mg.variable(values, requires_grad=True, name=name)


def diamond():
    x = leaf(name="x")
    a = x.tanh()
    return (a.exp() * a.sin() + a), [x]


def square():
    x = leaf(3, name="x")
    return (x * x).sum(), [x]


def product():
    w, x = leaf(3, 2, name="w"), leaf(4, 3, name="x", seed=1)
    return (x @ w).square().mean(), [w, x]


def broadcast():
    w, b = leaf(4, 3, name="w"), leaf(3, name="b", seed=1)
    return ((w * b + b) / b.sum()).mean(), [w, b]


def with_constants():
    w, frozen = leaf(3, name="w"), mg.variable(np.arange(3.0), name="frozen")
    return (frozen * w - 2.0).square().sum(), [w]


def layer():
    mg.manual_seed(0)
    model = mg.nn.Linear(4, 3)
    for name, p in model.named_parameters():
        p.name = name
    out = model(mg.variable(np.ones((5, 4), np.float32)))
    return mg.cross_entropy(out, mg.variable([0, 1, 2, 0, 1])), list(model.parameters())


def two_outputs():
    x = leaf(3, name="x")
    a, b = Two.apply(x)
    return (a * b + a).sum(), [x]


GRAPHS = (diamond, square, product, broadcast, with_constants, layer, two_outputs)


def by_title(player, found):
    return {player.titles[key]: value for key, value in found.items()}


def final(player):
    return by_title(player, player.frames[-1].gradients)


def lines(player, title):
    (box,) = (b for b in player.diagram.boxes if b.title == title)
    return [line if isinstance(line, str) else line.texts[-1][1] for line in box.lines]


@pytest.mark.parametrize("make", GRAPHS)
def test_gradients_of_the_leaves_are_those_of_backward(make):
    loss, leaves = make()
    found = final(mg.viz.graph(loss).play())
    loss.backward()
    for x in leaves:
        np.testing.assert_array_equal(found[x.name], x.grad.numpy())


@pytest.mark.parametrize("make", GRAPHS)
def test_playing_changes_no_grad_frees_nothing_and_can_be_repeated(make):
    loss, leaves = make()
    (leaves[0] * 2.0).sum().backward()
    before = [None if x.grad is None else x.grad.numpy().copy() for x in leaves]
    picture = mg.viz.graph(loss)
    assert str(picture.play()) == str(picture.play())
    for x, grad in zip(leaves, before, strict=True):
        np.testing.assert_equal(None if x.grad is None else x.grad.numpy(), grad)
    loss.backward()


def test_gradients_inside_the_graph_are_those_of_the_engine():
    loss, (x,) = diamond()
    player = mg.viz.graph(loss).play()
    x = mg.variable(x.numpy(), requires_grad=True)
    a = x.tanh()
    b, c = a.exp(), a.sin()
    d = b * c
    wanted = mg.gradients(d + a, [a, b, c, d])
    found = final(player)
    for title, g in zip(("tanh", "exp", "sin", "mul"), wanted, strict=True):
        np.testing.assert_allclose(found[title], g.numpy(), rtol=1e-12)


def test_values_are_those_that_forward_computed():
    w, b, x = leaf(3, 2, name="w"), leaf(2, name="b"), mg.variable(np.ones((4, 3)))
    loss = (x @ w + b).square().mean()
    values = by_title(player := mg.viz.graph(loss).play(), player_values(loss))
    product = x.numpy() @ w.numpy()
    np.testing.assert_allclose(values["matmul"], product)  # nobody kept it: computed again
    np.testing.assert_allclose(values["add"], product + b.numpy())
    np.testing.assert_allclose(values["a"], x.numpy())
    assert values["mean"] == loss.item()
    assert "(4, 2) float64" in lines(player, "matmul")


def player_values(loss):
    return mg.viz.graph(loss).play().frames[-1].values


def test_a_value_that_a_variable_still_holds_is_read_from_it():
    x = leaf(3, name="x")
    y = x + mg.ones(3, dtype="float64")  # add keeps nothing: without y nobody knows its output
    loss = (y * 2.0).sum()
    held = by_title(mg.viz.graph(loss).play(), player_values(loss))
    np.testing.assert_array_equal(held["add"], y.numpy())
    del y
    player = mg.viz.graph(loss).play()
    assert "add" not in by_title(player, player.frames[-1].values)
    assert "nobody holds" in str(player)


def test_a_leaf_that_was_written_to_gives_no_wrong_values():
    x, b = leaf(3, name="x"), leaf(3, name="b")
    loss = (x + b).square().sum()
    with mg.no_grad():
        b += 1.0
    player = mg.viz.graph(loss).play()
    values = by_title(player, player.frames[-1].values)
    np.testing.assert_allclose(values["add"], x.numpy() + b.numpy() - 1.0)  # as square saved it
    y = x + b
    loss = (y + x).sum()
    del y
    with mg.no_grad():
        b += 1.0
    player = mg.viz.graph(loss).play()
    assert "add #1" not in by_title(player, player.frames[-1].values)


def test_a_saved_value_that_was_written_to_is_the_error_of_backward():
    x = leaf(3, name="x")
    loss = (x * x).sum()
    with mg.no_grad():
        x += 1.0
    with pytest.raises(SavedValueModifiedError):
        mg.viz.graph(loss).play()


def test_local_derivatives_stand_on_the_ways_and_times_dy_give_what_is_sent():
    x = mg.variable(0.5, dtype="float64", requires_grad=True, name="x")
    y = (x * x).tanh() * 2.0
    player = mg.viz.graph(y).play()
    slopes = [b for b in player.diagram.boxes if b.kind == "slope"]
    tanh = 1.0 - np.tanh(0.25) ** 2
    wanted = [0.5, 0.5, tanh, 2.0]  # x is both factors
    assert [s.title for s in slopes] == [f"\u00d7 {slope:.4g}" for slope in wanted]
    sent = [s.lines[0].texts[0][1] for s in slopes]
    assert sent == [f"\u2191 {g:.4g}" for g in (tanh, tanh, 2 * tanh, 2.0)]


def test_local_derivative_of_a_broadcast_operand_is_not_summed():
    w, b = leaf(2, 2, name="w"), mg.variable([2.0, 3.0], dtype="float64", requires_grad=True)
    loss = (w * b).sum()
    player = mg.viz.graph(loss).play()
    slopes = [b for b in player.diagram.boxes if b.kind == "slope"]
    assert slopes[0].title == "\u00d7 [[2, 3], [2, 3]]"


def test_a_derivative_that_is_a_table_is_named_and_not_invented():
    loss, _ = product()
    titles = [b.title for b in mg.viz.graph(loss).play().diagram.boxes if b.kind == "slope"]
    assert titles[:2] == ["\u2202matmul/\u2202a", "\u2202matmul/\u2202b"]


def test_nodes_run_forward_inputs_first_and_backward_consumers_first():
    x = mg.variable(2.0, requires_grad=True, name="x")
    a = x * x
    c = a * (3.0 * a)
    player = mg.viz.graph(c).play()
    busy = [player.titles.get(frame.busy, "") for frame in player.frames]
    forward = ["mul #1", "mul #2", "mul #3"]
    assert busy == ["", *forward, "mul #3", *forward[::-1]]
    assert [f.gradients.get(key_of(player, "mul #1")) for f in player.frames[4:]] == [
        None, 12.0, 24.0, 24.0,
    ]  # fmt: skip
    assert final(player)["x"] == 96.0


def key_of(player, title):
    return next(key for key, name in player.titles.items() if name == title)


def test_inputs_without_gradient_have_a_value_and_no_way_back():
    loss, _ = with_constants()
    player = mg.viz.graph(loss).play()
    (box,) = (b for b in player.diagram.boxes if b.kind == "constant")
    assert box.lines == ["(3,) float64", "= [0, 1, 2]"]
    assert not any(box.key in edge for edge in player.diagram.back)


def test_hooks_run_and_observers_do_not_see_it():
    x = leaf(2, name="x")
    x.register_hook(lambda g: g * 10.0)
    loss = (x * 3.0).sum()
    with mg.debug.record_grad_function() as log:
        player = mg.viz.graph(loss).play()
    assert not log.records
    np.testing.assert_array_equal(final(player)["x"], [30.0, 30.0])


def test_dy_is_given_for_several_elements():
    x = leaf(3, name="x")
    y = x * 2.0
    dy = mg.variable([1.0, 0.0, -1.0], dtype="float64")
    np.testing.assert_array_equal(final(mg.viz.graph(y).play(dy))["x"], [2.0, 0.0, -2.0])
    with pytest.raises(GradientError, match="upstream gradient dy"):
        mg.viz.graph(y).play()


def test_a_player_and_its_picture_keep_no_graph_alive():
    loss, _ = diamond()
    gc.collect()
    before = mg.memory.stats()["live_nodes"]
    player = mg.viz.graph(loss).play()
    del loss
    assert mg.memory.stats()["live_nodes"] == before - 5
    assert "tanh" in str(player)


def test_a_graph_that_is_gone_says_that_its_output_owned_it():
    with pytest.raises(GraphFreedError, match="output owned it"):
        mg.viz.graph(square()[0]).play()


def test_a_freed_graph_says_what_to_do():
    loss, _ = square()
    loss.backward()
    with pytest.raises(GraphFreedError, match="play before backward"):
        mg.viz.graph(loss).play()


@pytest.mark.parametrize("x", [mg.variable(2.0), leaf(name="x")])
def test_a_variable_without_a_graph_says_so(x):
    with pytest.raises(GradientError, match="has no graph"):
        mg.viz.graph(x).play()


def test_too_many_operations_say_the_limit_and_what_to_do():
    y = leaf(name="x")
    for _ in range(MOST_PLAYED):
        y = y.tanh()
    mg.viz.graph(y).play()
    y = y.tanh()
    with pytest.raises(ArgumentError, match=f"at most {MOST_PLAYED} operations(?s:.)*play a part"):
        mg.viz.graph(y).play()


def test_several_outputs_are_refused():
    x = leaf(name="x")
    with pytest.raises(ArgumentError, match="the graph of one Variable"):
        mg.viz.graph([x.tanh(), x.exp()]).play()


# -- the page --------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", GRAPHS)
def test_html_is_well_formed_and_has_neither_script_nor_address(make):
    loss, leaves = make()
    leaves[0].name = '<w & "co">'
    text = mg.viz.graph(loss).play().to_html()
    root = ElementTree.fromstring(text)
    assert "<script" not in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    player = mg.viz.graph(loss).play()
    assert len(list(root.iter("input"))) == len(player.frames)
    assert mg.viz.graph(loss).play()._repr_html_() == text


def test_every_frame_stands_in_the_html():
    loss, _ = diamond()
    player = mg.viz.graph(loss).play()
    root = ElementTree.fromstring(player.to_html())
    said = [e.text for e in root.iter("span") if e.get("class", "").startswith("mg-t")]
    assert said == [frame.text for frame in player.frames]


def test_save_html_writes_a_page_and_names_the_suffix(tmp_path):
    loss, _ = diamond()
    player = mg.viz.graph(loss).play()
    player.save_html(tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    with pytest.raises(ArgumentError, match=r"\.html"):
        player.save_html(tmp_path / "a.svg")


def test_buttons_and_arrow_keys_step_through_the_picture(tmp_path):
    if not find_chromium():
        pytest.skip("needs Chromium")
    sync_api = pytest.importorskip("playwright.sync_api")
    loss, _ = diamond()
    player = mg.viz.graph(loss).play()
    player.save_html(tmp_path / "a.html")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        page.goto((tmp_path / "a.html").as_uri())

        def shown():
            (text,) = [e.inner_text() for e in page.query_selector_all(".mg-said span:visible")]
            return text

        texts = [frame.text for frame in player.frames]
        assert shown() == texts[0]
        for text in texts[1:]:
            page.click(".mg-go.mg-forth:visible")
            assert shown() == text
        page.click(".mg-go.mg-previous:visible")
        assert shown() == texts[-2]
        page.keyboard.press("ArrowLeft")
        assert shown() == texts[-3]
        page.keyboard.press("ArrowRight")
        assert shown() == texts[-2]
        dashed = page.query_selector_all(".mg-at:has(.mg-back)")
        visible = [e for e in dashed if e.evaluate("e => getComputedStyle(e).opacity") == "1"]
        assert 0 < len(visible) < len(dashed)
        browser.close()
