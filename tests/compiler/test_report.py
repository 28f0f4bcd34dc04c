"""step.report(), step.source() and the plan of memory: numbers that were counted by hand."""

import re

import pytest

import minigrad as mg
from minigrad.compiler.cpu.cpu_plan import Plan
from minigrad.compiler.program.program import CONSTANT, TEMPORARY
from minigrad.compiler.program.sketch import Sketch
from minigrad.compiler.program.traffic import distinct, instruction_bytes, lives, peak
from minigrad.compiler.report.memory_plan import MemoryPlan
from minigrad.compiler.report.report import ProgramReport
from minigrad.errors import ArgumentError
from tests.compiler.page_steps import adam, training


def chain():
    """w += sum over rows of exp(x) * 2, for x of (100, 8): four instructions, of float32."""
    s = Sketch()
    x, w = s.argument((100, 8)), s.captured("w", (8,))
    e = s.exp(x)
    twice = s.mul(e, 2.0)
    total = s.reduce("sum", twice, axes=(0,))
    s.add(w, total, out=w)
    return s.recording(total)


def test_a_chain_counted_by_hand():
    plan = Plan(chain(), n_threads=1)
    r = ProgramReport(plan)
    assert (r.instructions_before, r.instructions_after) == (4, 4)
    big, row = 100 * 8 * 4, 8 * 4
    # exp and mul read and write the big array, sum reads it, add reads two rows
    assert r.bytes_before == (3 * big + 2 * row, 2 * big + 2 * row)
    # e and twice are alive at once while mul runs
    assert r.peak_before == 2 * big
    assert r.results == row
    assert r.peak_after == r.arena + row
    # fused: x is read once, `twice` never reaches memory; the sum is read back for the add
    assert r.bytes_after == (big + 2 * row, 2 * row)
    assert (r.products, r.opaque) == (0, 0)
    assert r.calls == len(plan.items) == sum(f.calls for f in r.forms)
    assert [(a.name, a.how, a.nbytes) for a in r.aliases] == [("w", "in and out", row)]


def test_bytes_of_views_gathers_and_scatters():
    s = Sketch()
    table, index = s.captured("table", (50, 4)), s.argument((3,), "int64")
    picked = s.instruct("gather", (table, index), ((3, 4), "float32"))
    s.instruct("scatter_add", (picked, index), table)
    gather, scatter = s.instructions
    assert instruction_bytes(gather) == (3 * 4 * 4 + 3 * 8, 48)  # what it picks, and the index
    assert instruction_bytes(scatter) == (2 * 48 + 24, 48)  # what is added, to what, and the index
    assert distinct(picked._replace(strides=(0, 1))) == 16  # a row that is broadcast is read once


def test_peak_of_lifetimes():
    s = Sketch()
    x = s.argument((10,))
    a = s.exp(x)
    b = s.exp(a)
    c = s.exp(b)
    recording = s.recording(c)
    found = lives(recording)
    assert [found[v.value] for v in (a, b, c)] == [(0, 1), (1, 2), (2, 2)]
    assert peak(found) == (80, 1)
    assert peak({}) == (0, 0)


@pytest.fixture(scope="module")
def trained():
    """A step of an MLP with Adam, called four times."""
    x, y = mg.rand((32, 64)), mg.randint(0, 10, (32,))
    return training((64, 32, 10), adam, 4, x, y)


def test_the_report_of_a_training_step(trained):
    r = trained.report()
    assert len(r.programs) == 1
    assert r.traced == ["x (32, 64)", "y (32,) int64"]
    assert r.products == 5  # two layers forward, the input of the second, two weights
    assert r.opaque == 1  # the labels are checked
    assert r.calls < r.instructions_before
    assert sum(r.bytes_after) < sum(r.bytes_before)
    adam = next(f for f in r.forms if f.what == "Adam")
    assert adam.calls == 4
    n = 64 * 32 + 32 + 32 * 10 + 10
    assert adam.written == 3 * 4 * n  # a parameter and two moments, each once
    assert adam.read == 4 * 4 * n + 4 * 8  # those, the gradient, and two numbers for each
    assert [a.name for a in r.aliases if "." in a.name and " " not in a.name] == [
        "0.weight",
        "0.bias",
        "2.weight",
        "2.bias",
    ]
    assert {a.how for a in r.aliases if a.name == "0.weight"} == {"in and out"}
    fused = next(f for f in r.forms if "cross_entropy" in f.what)
    assert "cross_entropy + its gradient" in fused.what
    assert any("relu" in a and "linear" in b for a, b in r.taken_over)


def test_the_text_fits_and_adds_up(trained):
    text = str(trained.report())
    assert max(map(len, text.splitlines())) <= 100
    assert re.search(r"^instructions, calls +\d+ +\d+$", text, re.MULTILINE)
    r = trained.report()
    total = text[text.index(" all ") :].splitlines()[0].split()
    assert total[1] == str(r.calls)
    assert repr(r) == text
    assert re.match(r'<pre style="[^"]*white-space:pre', r._repr_html_())  # it scrolls, unbroken
    for f in r.forms:
        assert f.function in text


def test_it_has_no_more_temporaries_than_the_plan(trained):
    m = trained.memory_plan()
    plan = trained.traces[0].plan
    assert m.after.total == plan.arena.size
    assert len(m.after.rows) == len(plan.arena.offsets)
    assert m.before.peak == trained.report().peak_before
    # nothing that lives at the same time overlaps
    for side in (m.before, m.after):
        for k, a in enumerate(side.rows):
            for b in side.rows[k + 1 :]:
                if a.first <= b.last and b.first <= a.last:
                    assert a.offset + a.size <= b.offset or b.offset + b.size <= a.offset
        assert all(r.offset + r.size <= side.total for r in side.rows)
        assert all(0 <= r.first <= r.last < side.moments for r in side.rows)
    assert str(m).startswith("before:")


def test_memory_of_a_chain():
    plan = Plan(chain(), n_threads=1)
    m = MemoryPlan(plan, lambda value: value.name or "t")
    assert [(r.size, r.first, r.last) for r in m.before.rows] == [
        (3200, 0, 1),
        (3200, 1, 2),
        (32, 2, 3),
    ]
    assert (m.before.total, m.before.peak) == (6432, 6400)


def test_source_lists_the_calls_with_lines(trained):
    text = trained.source()
    plan = trained.traces[0].plan
    assert text.endswith(plan.text)  # what is compiled is as it was
    head = text.removesuffix(plan.text)
    assert "page_steps.py" in head
    assert "page_steps.py" not in plan.text
    assert "0.weight" in head
    assert re.search(r"^# kernel\d+: linear \+ relu$", head, re.MULTILINE)
    assert all(line.startswith("#") for line in head.split("\n\n")[0].splitlines())
    assert max(map(len, head.splitlines())) <= 102
    compile(text, "step", "exec")  # it is Python still


def test_source_of_a_long_step_is_decoded():
    ws = [mg.rand((8, 8)) for _ in range(30)]

    @mg.compile
    def deep(x):
        for w in ws:
            x = (x @ w).tanh()
        return x

    for _ in range(2):
        deep(mg.rand((4, 8)))
    plan = deep.traces[0].plan
    assert len(plan.code)  # written as a list of numbers
    lines = [x for x in deep.source().splitlines() if x.startswith("#") and "test_report" in x]
    assert sum("product_f4(" in x for x in lines) == 30
    assert sum("kernel" in x for x in lines) == 30


def test_arguments_results_and_donation():
    @mg.compile(donate=0)
    def shift(x, n):
        return x + n

    x, n = mg.zeros((1000,)), mg.ones((1000,))
    for _ in range(4):
        x = shift(x, n)
    r = shift.report()
    assert [name for name, _ in r.donated] == ["x"]
    assert r.donated[0][1] == "result 0 is written over it"
    assert r.results == 0 == r.peak_after  # the memory of x is that of the result
    assert x.tolist() == [4.0] * 1000
    assert "donated" in str(r)


def test_several_programs_and_none():
    @mg.compile
    def total(x):
        return x.exp().sum()

    for ask in (total.report, total.source, total.graph, total.memory_plan):
        with pytest.raises(ArgumentError, match="has no program yet"):
            ask()
    for n in (3, 3, 5):
        total(mg.ones((n,)))
    r = total.report()
    assert [p.traced for p in r.programs] == [["x (5,)"], ["x (3,)"]]
    assert re.match(r"compiled step '.*total': 2 programs", str(r))
    assert r.kernels == r.programs[0].kernels


def test_what_is_not_reused_says_why():
    s = Sketch()
    x = s.argument((64, 64))
    a = s.exp(x)
    b = s.matmul(a, a)
    c = s.add(a, b)
    d = s.matmul(c, a)  # a is read once more
    r = ProgramReport(Plan(s.recording(d), n_threads=1))
    assert any(why == "it is read later" for _, _, why in r.refused)


def test_every_kind_of_value_has_a_name(trained):
    trace = trained.traces[0]
    names = trained._names(trace)
    for i in trace.plan.before.instructions:
        for ref in (*i.reads, *i.writes):
            assert names(ref.value)
            if ref.value.kind not in (TEMPORARY, CONSTANT):
                assert "at 0x" not in names(ref.value)


def test_a_product_with_an_epilogue_and_a_step_that_does_nothing():
    s = Sketch()
    x, w, b = s.argument((256, 512)), s.captured("w", (512, 512)), s.captured("b", (512,))
    y = s.maximum(s.add(s.matmul(x, w), b), 0.0)
    plan = Plan(s.recording(y), n_threads=1)
    r = ProgramReport(plan)
    assert r.epilogues == 1 == r.products
    product = next(f for f in r.forms if f.kind == "product")
    assert product.what == "matmul + add + maximum"
    assert product.read == (256 * 512 + 512 * 512 + 512) * 4  # the product stays in the cache
    assert "1 matrix product (1 with an epilogue)" in str(r)
    empty = ProgramReport(Plan(Sketch().recording(), n_threads=1))
    assert empty.calls == 0 == empty.bytes_before[0]
    assert "calls             none" in str(empty)


def test_one_by_one_counts_what_was_recorded():
    s = Sketch()
    x = s.argument((100,))
    y = s.exp(x)
    s.log(x)  # nobody reads it: eager computes it all the same
    r = ProgramReport(Plan(s.recording(y), n_threads=1))
    assert (r.instructions_before, r.instructions_after) == (2, 1)
    assert r.bytes_before == (800, 800)
    assert r.bytes_after == (400, 400)
