"""The same kernels by the machine and by Numba's own simulator, which runs in another process."""

import os
import pathlib
import subprocess
import sys

import numpy as np

from minigrad import simt
from tests.simt import numba_kernels


def test_kernels_give_what_numbas_simulator_gives(tmp_path):
    script = pathlib.Path(numba_kernels.__file__)
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    file = tmp_path / "results.npz"
    subprocess.run([sys.executable, str(script), str(file)], check=True, env=environment)
    with np.load(file) as theirs:
        for name, (kernel, blocks, threads, arguments, shared) in numba_kernels.cases().items():
            simt.launch(kernel, blocks, threads, arguments, shared=shared)
            mine = arguments[-1]
            assert mine.any(), name
            np.testing.assert_allclose(mine, theirs[name], rtol=3e-6, atol=1e-6, err_msg=name)
