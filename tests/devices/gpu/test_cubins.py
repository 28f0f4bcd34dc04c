"""Every kernel of the engine is compiled for real GPUs, here where there is none."""

import pytest

import minigrad as mg
from minigrad.devices.gpu import compiler, updates
from tests.devices.gpu import cubins
from tests.devices.gpu.needs import compiler_is_needed
from tests.optim.reference import FEW

compiler_is_needed()


@pytest.fixture(scope="module")
def made():
    return cubins.compiled()


def each(made):
    """(label, how it is used, Cubin) of every kernel and kind of GPU."""
    for label, kernels in made.items():
        for used, found in kernels:
            for cubin in found:
                yield f"{label}, sm_{cubin.capability[0]}{cubin.capability[1]}", used, cubin


def test_every_kernel_compiles_for_both(made):
    kinds = {cubin.capability for _, _, cubin in each(made)}
    assert kinds == set(cubins.CAPABILITIES)
    assert sum(map(len, made.values())) > 250
    for _, _, cubin in each(made):
        assert cubin.code.startswith(b"\x7fELF")
        assert cubin.name.encode() in cubin.code


def test_no_kernel_spills(made):
    assert [name for name, _, cubin in each(made) if cubin.spills or cubin.stack] == []


def test_no_float64_in_kernels_that_have_no_float64_array(made):
    plain = [(n, c.doubles) for n, used, c in each(made) if "f8*" not in used.signature]
    assert [name for name, doubles in plain if doubles] == []
    assert len(plain) > 400
    assert any(cubin.doubles for _, _, cubin in each(made)), "the count counts nothing"


def test_float64_in_steps_of_float32_is_for_the_numbers_of_the_step(made):
    """Besides casts, one kernel of a step has `.f64`: it counts steps, and touches no parameter.

    It has a few factors for each parameter of a launch. AdamW's is Adam's, and stands there.

    Systems of equations are solved in float64.
    """
    found = {
        label: [used for used, cubins in kernels if any(c.doubles for c in cubins)]
        for label, kernels in made.items()
        if "float64" not in label and not label.endswith(" f8")
    }
    found = {label: kernels for label, kernels in found.items() if kernels}
    steps = {label: [x.elements for x in found[label]] for label in found if "step" in label}
    optimizers = {name: row.make([mg.nn.Parameter([1.0])]) for name, row in FEW.items()}
    factors = {f"step of {n}": len(o.groups[0].update().of_steps) for n, o in optimizers.items()}
    assert steps["step of Adam"] == [2 * updates.MANY]
    assert steps == {
        **{label: [n * updates.MANY] for label, n in factors.items() if label in steps},
        "step of a transformer, compiled by mg.compile": [1],
        "step of an MLP, compiled by mg.compile": [1],
    }
    linalg = {"cholesky_factor, backward", "cholesky_factor, forward", "least_squares, forward"}
    assert set(found) - set(steps) == {"cast, backward", "cast, forward"} | linalg


def test_blocks_fit_into_a_multiprocessor(made):
    too_large = [
        f"{name}: {used.threads} threads of {cubin.registers} registers"
        for name, used, cubin in each(made)
        if used.threads > cubin.most_threads
    ]
    assert too_large == []
    shared = [name for name, used, c in each(made) if used.shared + c.shared > 48 * 1024]
    assert shared == []


def test_a_page_is_fresh_with_a_few_registers_more_and_not_with_other_kernels(made):
    page = cubins.page(made)
    label, (kernels, threads, registers, _) = next(iter(cubins.rows_of(page).items()))
    row = f"| {label} | {kernels} | {threads} | {registers} |"

    def with_registers(n):
        return page.replace(row, f"| {label} | {kernels} | {threads} | {n} |")

    assert cubins.same(with_registers(registers + 3), page)
    assert not cubins.same(with_registers(registers + 99), page)
    assert not cubins.same(page.replace(row, "| another "), page)


def test_threads_that_registers_allow():
    for registers, threads in ((16, 1024), (64, 1024), (65, 896), (128, 512), (255, 256)):
        assert compiler.Cubin(b"", "", (8, 0), registers, 0, 0, 0, 0, 0).most_threads == threads
