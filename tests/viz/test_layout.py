"""The layered layout: nothing overlaps, edges point down and stay clear of boxes."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from minigrad.viz.layout import place


@st.composite
def graphs(draw):
    count = draw(st.integers(1, 25))
    sizes = {k: (draw(st.sampled_from((30.0, 80.0, 200.0))), draw(st.sampled_from((20.0, 60.0))))
             for k in map(str, range(count))}  # fmt: skip
    edges = draw(
        st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=40)
    )
    forward = {(str(min(e)), str(max(e))) for e in edges if e[0] != e[1]}
    return sizes, sorted(forward)


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_place_any_graph_no_two_boxes_overlap(graph):
    cells = place(*graph).cells.values()
    for a, b in itertools.combinations(cells, 2):
        apart_x = abs(a.x - b.x) >= (a.width + b.width) / 2 - 1e-6
        apart_y = a.y + a.height <= b.y or b.y + b.height <= a.y
        assert apart_x or apart_y


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_place_any_graph_edges_point_down_rank_by_rank_and_pass_beside_boxes(graph):
    placed = place(*graph)
    for (source, target), route in placed.routes.items():
        assert route[0] is placed.cells[source]
        assert route[-1] is placed.cells[target]
        assert [c.rank for c in route] == list(range(route[0].rank, route[-1].rank + 1))
        for passing in route[1:-1]:
            for box in placed.cells.values():
                if box.rank == passing.rank:
                    assert abs(box.x - passing.x) > box.width / 2


@settings(max_examples=30, deadline=None)
@given(graphs())
def test_place_any_graph_stays_within_its_size(graph):
    placed = place(*graph)
    for c in placed.cells.values():
        assert c.x - c.width / 2 >= -1e-6
        assert c.x + c.width / 2 <= placed.width + 1e-6
        assert -1e-6 <= c.y <= c.y + c.height <= placed.height + 1e-6


def test_place_a_chain_stands_upright_whatever_hangs_on_it():
    sizes = dict.fromkeys("abcdxyz", (60.0, 30.0))
    edges = [("a", "b"), ("b", "c"), ("c", "d"), ("x", "b"), ("y", "c"), ("z", "d")]
    cells = place(sizes, edges).cells
    assert max(cells[k].x for k in "bcd") - min(cells[k].x for k in "bcd") < 10


def test_place_a_leaf_stands_just_above_its_first_user():
    sizes = dict.fromkeys("abcw", (60.0, 30.0))
    cells = place(sizes, [("a", "b"), ("b", "c"), ("w", "c")]).cells
    assert cells["w"].rank == cells["b"].rank


def test_place_the_same_graph_twice_gives_the_same_places():
    sizes = dict.fromkeys("abcdef", (60.0, 30.0))
    edges = [("a", "d"), ("b", "d"), ("a", "e"), ("c", "f"), ("d", "f"), ("e", "f")]
    first, second = place(sizes, edges).cells, place(sizes, edges).cells
    assert [(c.x, c.y) for c in first.values()] == [(c.x, c.y) for c in second.values()]


def test_place_crossing_edges_are_untangled():
    sizes = dict.fromkeys("abcd", (60.0, 30.0))
    cells = place(sizes, [("a", "d"), ("b", "c")]).cells
    assert (cells["a"].x < cells["b"].x) == (cells["d"].x < cells["c"].x)
