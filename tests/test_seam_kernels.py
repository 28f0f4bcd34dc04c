"""A learner's kernels in the engine's place: they run while digits train, on a GPU or the CPU."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numba import njit

import minigrad as mg
from minigrad import errors
from minigrad.course import parts

ROOT = Path(__file__).parents[1]
STEPS = 6
mine = runpy.run_path(str(ROOT / "solutions" / "13_cuda_kernels.py"))
on_cpu = runpy.run_path(str(ROOT / "solutions" / "11_cpu_kernels.py"))
SIGMOID = ["-x", "math.exp(x)", "1.0 + x", "1.0 / x"]


def losses(device="simt"):
    """The losses of a small network on digits: a product, a sigmoid, a softmax."""
    images, labels = mg.data.load_digits()
    x = mg.variable(images[:32].reshape(32, 64).astype(np.float32)).to(device)
    targets = mg.variable(np.eye(10, dtype=np.float32)[labels[:32]]).to(device)
    rng = np.random.default_rng(3)
    w = mg.variable(rng.normal(0, 0.3, (64, 10)).astype(np.float32)).to(device)
    w = w.detach().requires_grad_()
    found = []
    for _ in range(STEPS):
        loss = -(mg.log(mg.softmax(4.0 * mg.sigmoid(x @ w))) * targets).sum() / 32
        [g] = mg.gradients([loss], [w])
        with mg.no_grad():
            w = (w - g * 0.5).detach().requires_grad_()
        found.append(loss.item())
    return found


def test_a_softmax_kernel_runs_while_digits_train_and_gives_the_same_losses():
    reference = losses()
    with mg.use(kernels={"softmax": mine["k_softmax_row"]}) as used:
        ours = losses()
    assert used.launches["softmax"] == STEPS
    np.testing.assert_allclose(ours, reference, rtol=1e-5)
    assert reference[-1] < reference[0]
    assert losses() == reference
    assert used.launches["softmax"] == STEPS


def wrong(x, out):
    """Write x itself."""
    row = mg.cuda.blockIdx.x
    for column in range(mg.cuda.threadIdx.x, x.shape[1], 128):
        out[row, column] = x[row, column]


def test_what_the_kernel_computes_is_what_the_engine_goes_on_with():
    x = mg.variable(np.ones((2, 3, 4), np.float32)).to("simt")
    with mg.use(kernels={"softmax": wrong}):
        assert mg.softmax(x).tolist() == x.tolist()
    assert mg.softmax(x).tolist() != x.tolist()


def forgets_a_barrier(x, out):
    """Read what another thread has just written."""
    s = mg.cuda.shared.array(128, np.float32)
    t = mg.cuda.threadIdx.x
    s[t] = x[mg.cuda.blockIdx.x, 0]
    out[mg.cuda.blockIdx.x, 0] = s[127 - t]


def test_faults_of_the_kernel_say_where_it_ran():
    x = mg.variable(np.ones((2, 4), np.float32)).to("simt")
    with (
        mg.use(kernels={"softmax": forgets_a_barrier}),
        pytest.raises(errors.DataRaceError) as caught,
    ):
        mg.softmax(x)
    assert any(
        "runs in the engine as kernels['softmax']" in note for note in caught.value.__notes__
    )


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (wrong, "wanted a dict"),
        ({"layer_norm": wrong}, "wanted kernels"),
        ({"softmax": lambda x: x}, "two arguments"),
        ({"softmax": 3}, "two arguments"),
    ],
)
def test_what_is_no_table_of_kernels_is_refused(table, text):
    with pytest.raises(errors.SeamError, match=text):
        mg.use(kernels=table)


def test_other_devices_and_dtypes_are_refused_with_what_to_do():
    with mg.use(kernels={"softmax": wrong}):
        with pytest.raises(errors.SeamError, match="move them there"):
            mg.softmax(mg.variable([[1.0, 2.0]]))
        with pytest.raises(errors.SeamError, match="float32"):
            mg.softmax(mg.variable(np.ones((1, 2))).to("simt"))


def test_an_engine_of_ones_own_leaves_the_cpu_to_the_reference():
    adapted = parts.ADAPTERS["13.k_softmax_row"](wrong)
    with mg.use(kernels={"softmax": adapted}) as used:
        assert mg.softmax(mg.variable([[0.0, 0.0]])).tolist() == [[0.5, 0.5]]
        assert used.launches["softmax"] == 0
        x = mg.variable(np.ones((1, 2), np.float32)).to("simt")
        assert mg.softmax(x).tolist() == [[1.0, 1.0]]
        assert used.launches["softmax"] == 1


def test_kernels_of_the_cpu_run_while_digits_train_and_give_the_same_losses():
    reference = losses("cpu")
    table = {
        "softmax": on_cpu["k_softmax_fused"],
        "sigmoid": on_cpu["fuse"](SIGMOID),
        "matmul": on_cpu["k_matmul_blocked"],
    }
    with mg.use(kernels=table) as used:
        ours = losses("cpu")
    # the product runs in the backward pass, too, on a view of x with its axes exchanged
    assert used.launches == {"softmax": STEPS, "sigmoid": STEPS, "matmul": 2 * STEPS}
    np.testing.assert_allclose(ours, reference, rtol=1e-5)
    assert reference[-1] < reference[0]
    assert losses("cpu") == reference


@njit
def wrong_product(a, b, c):
    """Write 7 into the first element alone."""
    c[0, 0] = 7


@njit
def wrong_sigmoid(x, out):
    """Write the place of each element."""
    for i in range(out.size):
        out[i] = i


def test_what_a_kernel_of_the_cpu_writes_is_what_the_engine_goes_on_with():
    a = mg.variable(np.ones((2, 3)))
    with mg.use(kernels={"matmul": wrong_product, "sigmoid": wrong_sigmoid}):
        c = (a @ a.T).numpy()
        assert mg.sigmoid(a.T).tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
        assert (mg.variable(np.ones((4, 2, 3))) @ a.T).tolist()[0] == [[3.0, 3.0], [3.0, 3.0]]
    assert c[0, 0] == 7
    assert np.isnan(c[0, 1])
    assert (a @ a.T).tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_a_kernel_for_each_machine_takes_what_lies_there():
    with mg.use(kernels={"softmax": (wrong, on_cpu["k_softmax_fused"])}) as used:
        assert mg.softmax(mg.variable([[0.0, 0.0]])).tolist() == [[0.5, 0.5]]
        x = mg.variable(np.ones((1, 2), np.float32)).to("simt")
        assert mg.softmax(x).tolist() == [[1.0, 1.0]]
        assert used.launches["softmax"] == 2


def test_kernels_of_the_cpu_refuse_what_they_cannot_take_and_say_what_to_do():
    with mg.use(kernels={"softmax": on_cpu["k_softmax_fused"]}):
        with pytest.raises(errors.SeamError, match="cpu"):
            mg.softmax(mg.variable(np.ones((1, 2), np.float32)).to("simt"))
        with pytest.raises(errors.SeamError, match="float32 or float64"):
            mg.softmax(mg.variable(np.ones((1, 2)), dtype="float16"))
    with pytest.raises(errors.SeamError, match="put @njit above it"):
        mg.use(kernels={"matmul": wrong_product.py_func})
    with pytest.raises(errors.SeamError, match="three arguments"):
        mg.use(kernels={"matmul": wrong_sigmoid})


def test_an_engine_of_ones_own_has_kernels_of_both_lessons(monkeypatch):
    modules = {"11": SimpleNamespace(**on_cpu), "13": SimpleNamespace(**mine)}
    monkeypatch.setattr(parts, "load", modules.__getitem__)
    taken = parts.replacements(["11.k_softmax_fused", "11.fuse", "13.k_softmax_row"])
    with mg.use(**taken) as used:
        assert mg.softmax(mg.variable([[0.0, 0.0]])).tolist() == [[0.5, 0.5]]
        assert mg.sigmoid(mg.variable([0.0])).tolist() == [0.5]
        x = mg.variable(np.zeros((1, 2), np.float32)).to("simt")
        assert mg.softmax(x).tolist() == [[0.5, 0.5]]
    assert used.launches == {"softmax": 2, "sigmoid": 1}
