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
    "fp16.hexp10": _half(lambda x: np.power(F4(10), x)),
    "fp16.hrsqrt": _half(lambda x: F4(1) / np.sqrt(x)),
    "fp16.hrcp": _half(lambda x: F4(1) / x),
}
for _name in (
    *("exp", "exp2", "log", "log2", "log10", "sin", "cos", "sqrt"),
    *("floor", "ceil", "trunc", "rint"),
):
    FUNCTIONS[f"fp16.h{_name}"] = _half(getattr(np, _name))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    FUNCTIONS[f"fp16.h{_name}"] = _compare(getattr(operator, _name))
