# %% [markdown]
# # 12 · What the compiler says, and what it does not say
#
# **You need** lesson 00, for how exercises are checked, and NumPy. Lesson 11 is about kernels that
# do compile. **It takes** about 120 minutes; after section 3 is a good place for a break. **At the
# end** you can read Numba's errors, you have repaired six functions from their messages alone, and
# you know three ways in which compiled code is wrong *without* an error: a race, a reduction that
# is none, and a value that was compiled in. Next: lesson 13, CUDA kernels.
#
# Your code goes into `exercises/12_numba_errors.py`.

# %% tags=["live"]
from minigrad.course import watch

watch("12")  # what you save in exercises/12_numba_errors.py is graded here at once

# %%
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numba
import numpy as np
from numba import njit, prange

import minigrad as mg
from minigrad import cuda
from minigrad.course import check, hint, load, needs, predict, scrub
from minigrad.course.l12_numba_errors.card import Table
from minigrad.course.l12_numba_errors.drawing import (
    draw_results,
    draw_rounds,
    draw_step,
    one_order,
)
from minigrad.course.l12_numba_errors.reading import read_error, types_of
from minigrad.simt.watch.loops import run_rounds

plt.style.use("minigrad.course.house")

# %% [markdown]
# ## 1. What happens at the first call
#
# `@njit` makes a compiled function of a Python function. But the line with `@njit` compiles
# nothing. Here is a function that adds up squares, with a loop over all elements.


# %%
@njit
def squares(x):
    """Add up the squares of all elements."""
    total = 0.0
    for i in range(len(x)):
        total += x[i] * x[i]
    return total


def seconds(function, *arguments):
    """Return how long one call takes."""
    started = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - started


x = np.linspace(0, 1, 1000)

# %% [markdown]
# **Predict.** The first call takes how many times as long as the second one?

# %% tags=["prediction"]
first = predict("12.first", "The first call takes how many times as long as the second?")
first

# %%
calls = [seconds(squares, x) for _ in range(4)]
calls.append(seconds(squares, x.astype(np.float32)))  # another type
calls.append(seconds(squares, x))
figure, axis = plt.subplots(figsize=(8, 2.8), layout="constrained")
axis.bar(range(len(calls)), calls, color=["C0"] * 4 + ["C1"] + ["C0"])
axis.set(yscale="log", xlabel="call (the fifth with a float32 array)", ylabel="seconds")
axis.set_xticks(range(len(calls)), [str(k + 1) for k in range(len(calls))])
plt.show()
first.reveal(calls[0] / calls[1], factor=10)

# %% [markdown]
# **What to see.** The scale is logarithmic. The first call is slow: Numba looks at the *types* of
# the arguments, finds the type of every name in the function, and compiles it for these types. The
# next calls run what is compiled. A float32 array is another type, so the fifth call compiles once
# more, and keeps both.
#
# These are the types that it found:

# %%
print(types_of(squares))

# %% [markdown]
# Everything else in this lesson comes from this picture. A name in compiled code has *one* type. It
# must be found before anything runs, without knowing any value. And what is compiled in stays.
#
# ## 2. Six messages
#
# Most of Numba's errors are about types that it could not find. Their messages are long, and
# people stop reading them. Four things help:
#
# 1. Skip `Failed in nopython mode pipeline`. The next line is the error itself. (Or it says
#    `Resolution failure`: then Numba has tried twice, and the same error stands there twice.)
# 2. `No implementation of function Function(<built-in function getitem>)` means: Python's `x[k]`
#    (`setitem` is `x[k] = v`, `add` is `+`) is there, but not for the *types* after `>>>`.
# 3. Skip the candidates. They are what Numba has tried. If one was `Rejected as the implementation
#    raised a specific error`, the line below that says why.
# 4. At the end are the file, the line, and a `^`. (A name that would have two types gets them in
#    two lines. For a loop, the `^` is at its head: there, both of them arrive.)
#
# Two ways around a message are no repair: `forceobj=True`, and a block `with objmode()`. Both give
# the lines back to Python, and they are as slow as before.
#
# `read_error` calls a function and shows the message as it is. Below stands what it means, in one
# sentence. Read the message first, and cover the last line with your hand.

# %%
mine = load("12")
rows = np.arange(6.0).reshape(3, 2)
print(read_error(mine.sum_rows, rows))

# %% [markdown]
# `total` begins as an int. What is it after the first round? **Repair** `sum_rows` in your file.
# (After you have saved it, run the cell above again: it loads the file anew.)

# %% tags=["exercise"]
check("12.sum_rows")

# %% [markdown]
# The next one takes an element from the middle.

# %%
mine = load("12")
print(read_error(mine.median_sorted, np.array([1.0, 2.0, 4.0, 8.0])))

# %% [markdown]
# The candidates are 22 ways to take something out of something. None of them takes an index of this
# type. **Repair** `median_sorted`.

# %% tags=["exercise"]
check("12.median_sorted")

# %% [markdown]
# Now a function that NumPy runs without a complaint.

# %%
mine = load("12")
print(read_error(mine.center_rows, rows))

# %% [markdown]
# `array_sum` is `x.sum`. NumPy's function is written in C, and Numba cannot compile C: somebody has
# written it again for Numba, with fewer arguments. **Repair** `center_rows`. (To leave the argument
# out compiles. Is it right?)

# %% tags=["exercise"]
check("12.center_rows")

# %% [markdown]
# The next function calls another one.

# %%
mine = load("12")
print(read_error(mine.gelu, x))

# %% [markdown]
# Python finds this name without any trouble, and no line of `gelu` itself is wrong. What is it that
# the name stands for? **Repair** `gelu`.

# %% tags=["exercise"]
check("12.gelu")

# %%
mine = load("12")
print(read_error(mine.moving_mean, x, 3))

# %% [markdown]
# Here x has a thousand elements and the width is 3, so the line that it complains about would never
# run. Numba does not know that: it looks at types, not at values. **Repair** `moving_mean`.

# %% tags=["exercise"]
check("12.moving_mean")

# %%
mine = load("12")
print(read_error(mine.ratios, np.ones(3), np.array([1.0, 0.0, 2.0])))

# %% [markdown]
# You may catch what Numba can catch. Or ask what `b[i]` is, before there is anything to catch.
# **Repair** `ratios`.

# %% tags=["exercise"]
check("12.ratios")

# %% [markdown]
# ## 3. No error, and the wrong number
#
# Errors are the pleasant case. The following kernel reads a global.

# %%
SLOPE = 0.5


@njit
def scale(v):
    """Multiply by the global SLOPE."""
    return SLOPE * v


print("with SLOPE 0.5:", scale(10.0))
SLOPE = 0.1

# %% [markdown]
# **Predict.** `SLOPE` is now 0.1. What does `scale(10.0)` return? And `scale(10)`, with an int?

# %% tags=["prediction"]
stale = predict(
    "12.stale",
    "SLOPE was 0.5 and is now 0.1: what are scale(10.0) and scale(10)?",
    choices=("1 and 1", "5 and 5", "5 and 1", "1 and 5"),
)
stale

# %%
print("scale(10.0):", scale(10.0))
print("scale(10):  ", scale(10))
stale.reveal(f"{scale(10.0):g} and {scale(10):g}")

# %% [markdown]
# A global is a constant for compiled code: its value is compiled in. The int is another type, so
# for it the function was compiled once more, *after* the change. Now one function gives two answers
# for the same number, and nobody said a word. (In an interactive session this happens all the time:
# you change a constant in a cell, run that cell, and go on.)
#
# A popular way out is a function that makes a kernel for each value. It is right, but see what it
# costs:


# %%
def make_leaky(slope):
    """Return a leaky ReLU with this slope compiled in."""

    @njit
    def leaky(x):
        out = np.empty_like(x)
        for i in range(len(x)):
            out[i] = x[i] if x[i] > 0.0 else slope * x[i]
        return out

    return leaky


# %% [markdown]
# **Write** `leaky`, for any number of slopes, and compiled once.

# %% tags=["exercise"]
check("12.leaky")

# %%
needs("12.leaky")
mine = load("12")
slopes = [0.01, 0.05, 0.1, 0.2, 0.3]
made = [seconds(lambda slope=slope: make_leaky(slope)(x)) for slope in slopes]
passed = [seconds(mine.leaky, x, slope) for slope in slopes]
figure, axis = plt.subplots(figsize=(8, 2.8), layout="constrained")
axis.plot(slopes, made, "o-", label="a kernel for each slope")
axis.plot(slopes, passed, "s-", label="yours")
axis.set(yscale="log", xlabel="slope, in the order of the calls", ylabel="seconds of the call")
axis.legend()
plt.show()

# %% [markdown]
# **What to see.** Both compile at the first slope. After that, a kernel for each slope compiles
# each time, and yours only computes.
#
# ### The cache on disk
#
# `@njit(cache=True)` keeps what was compiled in a file, for the next process. Here is a small
# program in two files. It runs three times, each time in a new process. Before the third run, we
# change the number in `settings.py`.

# %%
SETTINGS = "RATE = 2.0\n"
KERNELS = """
from numba import njit
from settings import RATE


@njit(cache=True)
def at_the_top(v):
    return RATE * v


@njit
def helper(v):
    return v + 1.0


def make(f):
    @njit(cache=True)
    def inside(v):
        return f(v)
    return inside


for kernel in (at_the_top, make(helper)):
    result = kernel(10.0)
    came = "from the cache" if sum(kernel.stats.cache_hits.values()) else "compiled"
    print(f"    {kernel.__name__:11} {result:5} {came}")
"""

# %% [markdown]
# **Predict.** In the third run, `RATE` is 5. What does `at_the_top(10.0)` return?

# %% tags=["prediction"]
cached = predict(
    "12.cached",
    "Third run, RATE is now 5 in settings.py: at_the_top(10.0)?",
    choices=("50, compiled anew", "20, from the cache", "an error"),
)
cached

# %%
with tempfile.TemporaryDirectory() as folder:
    place = Path(folder)
    (place / "kernels.py").write_text(KERNELS)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(place / "cache")}
    for run in (1, 2, 3):
        rate = SETTINGS if run < 3 else SETTINGS.replace("2.0", "5.0")
        (place / "settings.py").write_text(rate)
        program = [sys.executable, "kernels.py"]
        done = subprocess.run(program, cwd=place, env=environment, capture_output=True, text=True)
        files = len(list(place.rglob("*.nbc")))
        print(f"run {run}, with {rate.strip()}: then {files} files in the cache")
        print(done.stdout, end="")
third = done.stdout.split()
cached.reveal(
    "20, from the cache"
    if third[1] == "20.0" and third[2] == "from"
    else f"{float(third[1]):g}, compiled anew"
)

# %% [markdown]
# **What to see.** The cache hits, misses and lies.
#
# - *It hits* for `at_the_top`, a function of a module: the second run loads it.
# - *It misses* for `inside`, always. It was made around another compiled function, and that one is
#   a new object in each process. So it is compiled in each run, and each run leaves a file behind.
#   (Around a number alone, it would hit.)
# - *It lies* in the third run. Numba looks whether the file of the function has changed, and at
#   nothing else: neither at other files nor at globals. Its documentation says so. The result is
#   that of a program which is not there any more.
#
# So: pass numbers as arguments. Keep helpers in the file of their kernel. Cache what is finished,
# not what you are working on; and if a number makes no sense, delete the cache before you look for
# the mistake. (In exercises, `cache=True` is of no use: each check begins anew.)
#
# ---
#
# **This is a good place for a break.** When you come back, select the next cell, and choose *Run >
# Run All Above Selected Cell* once.
#
# ---

# %% [markdown]
# ## 4. Two threads, one element
#
# With `@njit(parallel=True)`, the rounds of a loop over `prange` are shared out among threads. Here
# are two sums.


# %%
@njit(parallel=True)
def sum_into_element(x, out):
    """Add up x in out[0]."""
    for i in prange(len(x)):
        out[0] += x[i]


@njit(parallel=True)
def sum_into_variable(x, out):
    """Add up x in a variable."""
    total = 0.0
    for i in prange(len(x)):
        total += x[i]
    out[0] = total


def results_of(function, n, runs=200):
    """Return the sums of n ones in so many runs."""
    x, results = np.ones(n), []
    for _ in range(runs):
        out = np.zeros(1)
        function(x, out)
        results.append(float(out[0]))
    return results


for function in (sum_into_element, sum_into_variable):
    function(np.ones(2), np.zeros(1))  # compiled here
print("threads:", numba.get_num_threads())

# %% [markdown]
# **Predict.** `sum_into_element` adds up 100 ones, 200 times. In how many of these runs is the sum
# right?

# %% tags=["prediction"]
luck = predict("12.luck", "A race over 100 elements: right in how many of 200 runs?")
luck

# %%
sizes = [10, 100, 1000, 10_000]
figure, axes = plt.subplots(1, 2, figsize=(9.5, 3), layout="constrained", sharey=True)
for axis, function in zip(axes, (sum_into_element, sum_into_variable), strict=True):
    found = [results_of(function, n) for n in sizes]
    draw_results(axis, sizes, [np.array(one) / n for one, n in zip(found, sizes, strict=True)])
    right = [sum(result == n for result in one) for one, n in zip(found, sizes, strict=True)]
    axis.set_xlabel("elements")
    axis.set_title(f"{function.__name__}: right in {right} of 200", fontsize=9)
    if function is sum_into_element:
        luck.reveal(right[1], factor=1.2)
axes[0].set(ylabel="sum, of the right one", ylim=(0, 1.1))
plt.show()

# %% [markdown]
# **What to see.** Each mark is one run. On the left, sums of few elements are right (dots), for one
# thread is done before the other begins. With more elements, they are wrong (crosses); with very
# many, each thread's sum overwrites the other's, and only one of them is left. Who tests with ten
# elements finds nothing. On the right, the sum is always right. (With a single thread, both are.)
#
# What happens is seen best in slow motion. `out[0] += v` is three steps: read, add, write. Here are
# two threads that take these steps in an order drawn at random, on the simulated machine of lesson
# 13.


# %%
def add_one(x):
    """Add an element of x to s[0]."""
    s = cuda.shared.array(1, np.float64)
    old = s[0]
    new = old + x[cuda.threadIdx.x]
    s[0] = new


moments = one_order(add_one, (np.ones(2),), seed=3)
scrub(
    lambda axis, step: draw_step(axis, add_one, moments, step),
    range(len(moments)),
    label="step",
    show=[3, 6, len(moments) - 1],
    columns=3,
    width=3.3,
    height=2.6,
)

# %% [markdown]
# **What to see.** Each colour is a thread, at the line that it runs next. Both have read `s[0]`
# while it was 0, so both write 1: one addition is lost. Move the slider through all steps.
#
# Why is `total` safe? Numba sees that the loop does nothing with it but add. It gives each thread a
# variable of its own, and adds these up after the loop. That is called a **reduction**. It does so
# for a variable, and for a whole array (`sums += x[i]`), with `+`, `-`, `*`, `/`, `max` and `min`.
# It does not do so for an *element* of an array. And not for everything that looks like a
# reduction:


# %%
@njit(parallel=True)
def largest_by_if(x):
    """Look for the largest element with an if."""
    largest = -1.0
    for i in prange(len(x)):
        if x[i] > largest:
            largest = x[i]
    return largest


@njit(parallel=True)
def largest_by_max(x):
    """Look for the largest element with max."""
    largest = -1.0
    for i in prange(len(x)):
        largest = max(largest, x[i])
    return largest


some = np.linspace(0, 1, 1000)
print("with an if:", largest_by_if(some), "   with max:", largest_by_max(some))

# %% [markdown]
# In the first loop, `largest` is a variable of each round, and what it became is dropped. There is
# no error, and no warning.
#
# > **Real bug: half of the light.** TARDIS computes the spectra of supernovas: packets of light fly
# > through the debris, millions of them, and each adds to arrays of *estimators* on its way. In
# > December 2020 its loop over packets became a parallel one: a run took 14 s instead of 30 s, on 8
# > cores ([tardis#1365](https://github.com/tardis-sn/tardis/pull/1365)). In May 2022 an issue said
# > that results may differ with several threads: adding to the estimators "is not an atomic
# > operation" ([tardis#2021](https://github.com/tardis-sn/tardis/issues/2021)). The repair, within
# > days, gave each thread estimators of its own, to be added up at the end
# > ([tardis#2030](https://github.com/tardis-sn/tardis/pull/2030)). It was not the whole repair: in
# > August 2023, more than one thread was made an *error*
# > ([tardis#2398](https://github.com/tardis-sn/tardis/pull/2398)). In October 2023 it was mended
# > once more, and now a run with 10 threads agreed with one of a single thread to the precision of
# > floats ([tardis#2447](https://github.com/tardis-sn/tardis/pull/2447)).
# >
# > It also happens the other way round. In 2025 somebody reported the first example of a parallel
# > loop in Numba's documentation as "obviously" a race: it adds up in a variable
# > ([numba#9938](https://github.com/numba/numba/issues/9938)). It is none. Numba's maintainers have
# > thought about a warning for elements that several threads write, and tried one out
# > ([numba#4170](https://github.com/numba/numba/pull/4170)). There is still none: our loop above
# > was compiled in silence.
#
# ## 5. A proof instead of luck
#
# A run that was right proves nothing. In lesson 13, a simulated machine notes for each element who
# has used it. `run_rounds` does that for a loop over `prange`. It runs the function as plain
# Python, one round after the other, and treats each round as a thread. Two rounds that use one
# element, of which one writes it, are a race, whatever came out.

# %%
for function in (sum_into_element, sum_into_variable):
    try:
        run_rounds(function, np.ones(4), np.zeros(1))
        print(f"{function.__name__}: no race")
    except mg.errors.DataRaceError as error:
        print(f"{function.__name__}: {error}\n")

# %% [markdown]
# Four elements are enough, on a computer with one core. (It sees what this run does: not a branch
# that no round took.)
#
# ## 6. Bug hunt
#
# At the end of your exercise file is `ink_of_digits`. It adds up how much ink there is on images of
# digits: on each, for each digit, and on all. Somebody tested it with four images, and it was right
# each time. Here it runs 200 times, with four of the digits and with all of them.

# %%
images, labels = mg.data.load_digits()
pixels = np.ascontiguousarray(images.reshape(-1, 64), dtype=np.float64)
labels = labels.astype(np.int64)
mine = load("12")


def ink_of(n):
    """Return the ink of digit 0 on the first n images."""
    ink = np.zeros(10)
    mine.ink_of_digits(pixels[:n], labels[:n], np.zeros(n), ink)
    return ink[0]


shares, sizes = [], [4, 200, 1797]
for n in sizes:
    right = pixels[:n][labels[:n] == 0].sum()
    shares.append([ink_of(n) / right for _ in range(200)])
figure, axes = plt.subplots(1, 2, figsize=(9.5, 3), layout="constrained")
draw_results(axes[0], sizes, shares)
axes[0].set(xlabel="images", ylabel="ink of digit 0, of the right")
draw_rounds(axes[1], labels[[0, 1, 10, 2, 11, 3, 20, 12]], 2, "eight images, two threads")
axes[1].set_xlabel("round of the loop: an image; below: its digit")
plt.show()

# %% [markdown]
# **What to see.** On the left, 200 runs each: dots are right, crosses are not. In the function as
# it came, four images go well; of 200 images, and of all, some ink is missing in most runs, each
# time another amount. On the right, each round is an image, in the colour of its thread, and goes
# to the element of its digit. The red elements are reached by both threads.
#
# Three lines of the loop add something up. One of them is a race. One is a reduction. One belongs
# to a single round. Find out *by reading* which is which, and write the letters into `BUG`. The
# next cell gives the proof after that. Then repair the function: the loop over images stays a
# `prange`.

# %%
mine = load("12")
if None in mine.BUG.values():
    print("First BUG, then the proof.")
else:
    try:
        run_rounds(mine.ink_of_digits, pixels[:12], labels[:12], np.zeros(12), np.zeros(10))
        print("no race in 12 rounds")
    except mg.errors.DataRaceError as error:
        print(error)

# %% tags=["exercise"]
check("12.ink_of_digits")

# %% [markdown]
# ## 7. The card
#
# Twenty errors that people meet, each with a few lines that provoke it. The words of Numba are here
# as they stand in the message: search this page for yours (in JupyterLab with *Ctrl F*).

# %%
Table()

# %% [markdown]
# ## Where you are
#
# - Compiling happens at the first call, for the types of the arguments. A name has one type.
# - In a message, the second line is the error. Candidates are what was tried. The line is at the
#   end.
# - What compiles is not yet right. Globals are compiled in; a cache does not notice other files.
# - Under `prange`, `total += …` is a reduction and `out[k] += …` a race, unless each round has its
#   own k. Few elements hide it. Reading finds it, and a watched run proves it.
#
# **Next:** lesson 13, where *all* code runs in thousands of threads, and the same question comes
# back for every line: who else uses this element, and who waits for whom?

# %%
from minigrad.course.predictions import summary

print(summary("12"))

# %% tags=["exercise"]
check("12")
