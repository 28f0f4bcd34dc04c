"""inspect: the report, its text and its pictures; and that looking changes nothing."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import minigrad as mg
from minigrad import cuda
from minigrad.errors import ArgumentTypeError, DataRaceError

f4 = np.float32


@cuda.jit
def shift(x, out, by):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i * by]


@cuda.jit
def through_tile(x, out):
    tile = cuda.shared.array((32, 32), f4)
    column, row = cuda.threadIdx.x, cuda.threadIdx.y
    tile[column, row] = x[row, column]
    cuda.syncthreads()
    out[row, column] = tile[row, column]


@pytest.fixture
def report():
    return cuda.inspect(shift[2, 32], np.zeros(128, f4), np.zeros(50, f4), 2)


def test_looking_changes_nothing(report):
    x, out = np.ones(64, f4), np.zeros(64, f4)
    cuda.inspect(shift[2, 32], x, out, 1)
    assert not out.any()
    v = mg.zeros(64, device="simt")
    cuda.inspect(shift[2, 32], mg.ones(64), v, 1)  # wherever Variables lie
    assert (v.version, v.tolist()) == (0, [0.0] * 64)


@cuda.jit
def shift_in_a_pair(pair, by):
    i = cuda.grid(1)
    if i < pair[1].size:
        pair[1][i] = pair[0][i * by]


def test_looking_changes_no_array_in_a_tuple():
    x, out = np.ones(64, f4), np.zeros(64, f4)
    cuda.inspect(shift_in_a_pair[2, 32], (x, out), 1)
    assert not out.any()
    with pytest.raises(DataRaceError):  # overlaps stay
        cuda.inspect(shift_in_a_pair[2, 32], (x[:63], x[1:]), 1)


def test_looking_records_nothing_and_takes_what_requires_gradients():
    w = mg.variable(np.ones(64, f4), requires_grad=True)
    for context in (mg.no_grad(), mg.enable_grad()):
        with context:
            report = cuda.inspect(shift[2, 32], w, np.zeros(64, f4), 1)
        assert report.counts.threads == 64
    assert (w.version, w.grad) == (0, None)


def test_copies_overlap_as_the_arguments_do():
    x = np.arange(65, dtype=f4)
    with pytest.raises(DataRaceError):
        cuda.inspect(shift[2, 32], x[:64], x[1:], 1)
    assert x.tolist() == list(range(65))
    cuda.inspect(shift[2, 32], x[:64:2], x[1:64:2][::-1], 1)
    cuda.inspect(shift[2, 32], x, x[60:64], 1)  # a part in the middle of the other one
    cuda.inspect(shift[2, 32], np.zeros((4, 0), f4)[0], np.zeros(0, f4), 1)


def test_text(report):
    text = str(report)
    assert text == repr(report)
    assert "shift[2, 32]: 2 blocks, 64 threads" in text
    assert re.search(r"load x\[i \* by\] +2 +78% +200 +13 / 7 sectors +54% of the bytes", text)
    assert re.search(r"store out\[i\] .* 7 / 7 sectors +coalesced", text)
    assert "a warp splits at `i < out.size`, 1 time" in text


def test_counts_are_open(report):
    assert [a.sectors for a in report.counts.accesses] == [13, 7]
    assert [p.access.kind for p in report.pictures] == ["load", "store"]


def parsed(svg):
    root = ElementTree.fromstring(svg)
    space = "{http://www.w3.org/2000/svg}"
    return root, lambda kind: [e for e in root.iter() if e.get("class") == kind], space


def test_picture_of_sectors(report):
    load, store = (p.to_svg() for p in report.pictures)
    _, of_kind, _ = parsed(load)
    assert len(of_kind("mg-lane")) == 32
    assert len(of_kind("mg-moved")) == 8  # 32 lanes, every other element of 4 bytes
    assert len(of_kind("mg-used")) == len(of_kind("mg-way")) == 32
    assert "8 sectors of 32 bytes, 4 would do" in load
    _, of_kind, _ = parsed(store)
    assert len(of_kind("mg-moved")) == 4
    assert "4 sectors of 32 bytes, the fewest possible" in store


def test_picture_of_banks():
    report = cuda.inspect(through_tile[1, (32, 32)], np.zeros((32, 32), f4), np.zeros((32, 32), f4))
    pictures = {(p.access.kind, p.access.space): p.to_svg() for p in report.pictures}
    _, of_kind, _ = parsed(pictures["store", "shared"])
    assert len(of_kind("mg-bank")) == 32
    assert (len(of_kind("mg-word")), len(of_kind("mg-clash"))) == (1, 31)  # one bank, 32 words
    assert "32 passes over the banks, 1 would do" in pictures["store", "shared"]
    _, of_kind, _ = parsed(pictures["load", "shared"])
    assert (len(of_kind("mg-word")), len(of_kind("mg-clash"))) == (32, 0)


def test_inactive_lanes_are_empty():
    report = cuda.inspect(shift[1, 32], np.zeros(64, f4), np.zeros(10, f4), 1)
    _, of_kind, _ = parsed(report.pictures[0].to_svg())
    assert (len(of_kind("mg-lane")), len(of_kind("mg-idle"))) == (10, 22)
    assert "10 of 32 lanes active" in report.pictures[0].to_svg()


def test_nothing_is_drawn_outside_of_the_picture():
    wide = np.zeros(40_000, f4)
    tall = cuda.inspect(shift[1, 32], wide, np.zeros(32, f4), 1000).pictures[0].to_svg()
    banks = cuda.inspect(through_tile[1, (32, 32)], np.zeros((32, 32), f4), np.zeros((32, 32), f4))
    for svg in (tall, *(p.to_svg() for p in banks.pictures)):
        root, _, _ = parsed(svg)
        width, height = float(root.get("width")), float(root.get("height"))
        for e in root.iter():
            if e.tag.endswith("rect") and e.get("x"):
                assert float(e.get("x")) >= 0
                assert float(e.get("x")) + float(e.get("width")) <= width
                assert float(e.get("y")) + float(e.get("height")) <= height


def test_html(report, tmp_path):
    page = report._repr_html_()
    assert page.count("<svg") == 2
    assert "13 / 7 sectors" in page
    assert "i &lt; out.size" in page
    assert "2 blocks, 64 threads" in page
    report.save(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_what_is_inspected_is_a_launch_that_did_not_happen():
    x = np.zeros(4, f4)
    with pytest.raises(ArgumentTypeError, match="without blocks and threads"):
        cuda.inspect(shift, x, x, 1)
    with pytest.raises(ArgumentTypeError, match="NoneType"):
        cuda.inspect(shift[1, 4](x, x.copy(), 1))
    with pytest.raises(ArgumentTypeError, match="3 arguments"):
        cuda.inspect(shift[1, 4], x)


@cuda.jit
def wide(p, q):
    tile = cuda.shared.array(128, f4)
    i = cuda.threadIdx.x * 4
    a, b, c, d = cuda.load4(p, i)
    cuda.store4(tile, i, a, b, c, d)
    cuda.syncthreads()
    q[cuda.threadIdx.x] = tile[i]


def test_wide_accesses_are_no_conflicts():
    report = cuda.inspect(wide[1, 32], np.zeros(128, f4), np.zeros(32, f4))
    load, store, column, _ = (p.to_svg() for p in report.pictures)
    _, of_kind, _ = parsed(load)
    assert (len(of_kind("mg-moved")), len(of_kind("mg-used"))) == (16, 32)
    _, of_kind, _ = parsed(store)
    assert (len(of_kind("mg-word")), len(of_kind("mg-clash"))) == (128, 0)
    _, of_kind, _ = parsed(column)
    assert (len(of_kind("mg-word")), len(of_kind("mg-clash"))) == (8, 24)


@cuda.jit
def broadcast(out):
    tile = cuda.shared.array(4, f4)
    if cuda.threadIdx.x < 4:
        tile[cuda.threadIdx.x] = f4(1)
    cuda.syncthreads()
    out[cuda.threadIdx.x] = tile[cuda.threadIdx.x // 16]


def test_one_word_serves_all_lanes_that_want_it():
    report = cuda.inspect(broadcast[1, 32], np.zeros(32, f4))
    (svg,) = (p.to_svg() for p in report.pictures if p.access.kind == "load")
    _, of_kind, _ = parsed(svg)
    assert (len(of_kind("mg-word")), len(of_kind("mg-clash")), len(of_kind("mg-way"))) == (2, 0, 32)
