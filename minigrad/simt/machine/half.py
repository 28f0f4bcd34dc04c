"""`cuda.fp16.*`: functions of half-precision numbers, computed in single and rounded once."""

import operator

import numpy as np

F2, F4 = np.float16, np.float32


def _half(function):
    return lambda *values: function(*[v.astype(F4) for v in values]).astype(F2)


def _fma(a, b, c):
    return (a.astype(np.float64) * b.astype(np.float64) + c).astype(F2)


def _compare(function):
    return lambda a, b: function(a.astype(F2), b.astype(F2))


FUNCTIONS = {
    "fp16.hadd": _half(operator.add),
    "fp16.hsub": _half(operator.sub),
    "fp16.hmul": _half(operator.mul),
    "fp16.hdiv": _half(operator.truediv),
    "fp16.hfma": _fma,
    "fp16.hneg": _half(operator.neg),
    "fp16.habs": _half(np.abs),
    "fp16.hmax": _half(np.fmax),
    "fp16.hmin": _half(np.fmin),
    "fp16.hexp": _half(np.exp),
    "fp16.hexp2": _half(np.exp2),
    "fp16.hexp10": _half(lambda x: np.power(F4(10), x)),
    "fp16.hlog": _half(np.log),
    "fp16.hlog2": _half(np.log2),
    "fp16.hlog10": _half(np.log10),
    "fp16.hsin": _half(np.sin),
    "fp16.hcos": _half(np.cos),
    "fp16.hsqrt": _half(np.sqrt),
    "fp16.hrsqrt": _half(lambda x: F4(1) / np.sqrt(x)),
    "fp16.hrcp": _half(lambda x: F4(1) / x),
    "fp16.hfloor": _half(np.floor),
    "fp16.hceil": _half(np.ceil),
    "fp16.htrunc": _half(np.trunc),
    "fp16.hrint": _half(np.rint),
    **{
        f"fp16.h{name}": _compare(getattr(operator, name))
        for name in ("eq", "ne", "gt", "ge", "lt", "le")
    },
}
