"""A learner's CUDA kernel in the engine's place: it runs while digits train on a simulated GPU."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors
from minigrad.course import parts

ROOT = Path(__file__).parents[1]
STEPS = 6
mine = runpy.run_path(str(ROOT / "solutions" / "13_cuda_kernels.py"))


def losses():
    """The losses of a small network on digits, with a softmax in it, on the simulated GPU."""
    images, labels = mg.data.load_digits()
    x = mg.variable(images[:32].reshape(32, 64).astype(np.float32)).to("simt")
    targets = mg.variable(np.eye(10, dtype=np.float32)[labels[:32]]).to("simt")
    rng = np.random.default_rng(3)
    w = mg.variable(rng.normal(0, 0.3, (64, 10)).astype(np.float32)).to("simt")
    w = w.detach().requires_grad_()
    found = []
    for _ in range(STEPS):
        loss = -(mg.log(mg.softmax(x @ w)) * targets).sum() / 32
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
