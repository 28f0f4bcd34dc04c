# %% [markdown]
# # One training step, file by file
#
# Generated from [tour.py](tour.py) by `python -m tests.pages`; a test fails when it is not
# fresh. `python docs/tour.py` runs all of its code.
#
# minigrad has many files, and 22 of them tell the whole story of a training step. Together they
# hold less than 5,000 lines. This page visits them in the order in which to read them. Each stop
# asks a question, answers it with code that runs, and says what to look at in the file.
#
# ![The 22 files and their imports](pictures/tour/files.svg)
#
# The numbers are those of the stops. An arrow leads from a file to one that imports it; arrows that
# other arrows imply are left out.
#
# This is the step: a layer, a tanh beside a shortcut, a layer, a loss, and SGD.

# %%
import minigrad as mg

mg.manual_seed(1)


class Net(mg.nn.Module):
    def __init__(self):
        self.enter, self.leave = mg.nn.Linear(4, 8), mg.nn.Linear(8, 3)

    def forward(self, x):
        h = self.enter(x)
        return self.leave(h + h.tanh())


model = Net()
optimizer = mg.optim.SGD(model, learning_rate=0.2)
x, labels = mg.randn((6, 4)), mg.variable([0, 1, 2, 0, 1, 2])


def step(x, labels):
    loss = mg.cross_entropy(model(x), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


print(*(f"{step(x, labels).item():.2f}" for _ in range(5)))

# %% [markdown]
# ## 1. What does one read when it goes wrong?
#
# Every error says what was wanted, what came instead, and on which line of *your* program. The line
# is found by walking up the call stack until a frame lies outside of minigrad.

# %%
try:
    model(mg.zeros((6, 5)))
except mg.errors.ShapeError as error:
    print(error)

# %% [markdown]
# Open [errors.py](../minigrad/errors.py): `user_frame` is the walk, `MinigradError` writes the
# text. The classes below it derive from it and from the built-in error that one would expect.
#
# ## 2. What are the numbers of a Variable made of?
#
# Of bytes. A *Buffer* is a piece of memory at one address on one device; `x.array` is the Array of
# stop 4, and `.buffer` its Buffer. Requests are rounded up to a few sizes, so that a freed Buffer
# fits the next request that is nearly as large.

# %%
from minigrad.memory.buffer import round_up

print(x.nbytes, "bytes in a Buffer of", x.array.buffer.nbytes)
print(*(f"{n} -> {round_up(n)}" for n in (1, 100, 1000, 10_000)), sep=",  ")

# %% [markdown]
# Open [memory/buffer.py](../minigrad/memory/buffer.py): `Buffer` counts its owners, and a `Bin` is
# a list of free Buffers of one size.
#
# ## 3. Why does a step ask the system for no memory?
#
# Because it finds the Buffers that the step before has freed. The *Pool* keeps freed Buffers in
# bins, one bin for each size. Taking a Buffer is a `pop`, giving it back is an `append`. (A *hit*
# is a request for which the pool need not ask the system.)

# %%
before = mg.memory.stats()
with mg.memory.timeline() as timeline:
    step(x, labels)
after = mg.memory.stats()
print(sum(event.kind == "alloc" for event in timeline), "buffers taken")
for name in ("hits", "system_allocations", "current_bytes"):
    print(f"{name:18} {after[name] - before[name]:+}")

# %% [markdown]
# This is what the step took, and when it gave it back. The values that backward needs live from the
# forward pass to their use on the way back.
#
# ![Bytes in use during a step](pictures/tour/memory.png)
#
# The Buffers are cut from one segment of 2 MiB. These are its first bytes between two steps: what
# was asked for, what rounding added, and what waits in a bin for the next step.
#
# ![The pool's first segment](pictures/tour/pool.svg)
#
# Open [memory/pool.py](../minigrad/memory/pool.py): `take` is the pop, `grow` what happens when a
# bin is empty, `_best_fit` and `_merge` how blocks are cut and put together again.
#
# ## 4. Who shares whose bytes?
#
# An *Array* is a Buffer with a shape, strides and a dtype. The first Array over some bytes is their
# *Storage*: it owns the bytes, and its version counts the writes. A view is another Array that
# points at this Storage. A clone is a second Storage over the same Buffer: the bytes are copied
# when one of the two is written.

# %%
a = mg.ones((2, 3))
turned, copy = a.T, a.clone()
print("a view has the same Storage:", turned.array.storage is a.array)
print("a clone has the same Buffer:", copy.array.buffer is a.array.buffer)
print("Storages over this Buffer:", a.refcount)

# %% [markdown]
# ![Three Variables over one Buffer](pictures/tour/arrays.svg)

# %%
copy.add_(1.0)
print("written, it has its own:", copy.array.buffer is not a.array.buffer)
print("versions:", a.version, copy.version)

# %% [markdown]
# Open [array/array.py](../minigrad/array/array.py): `Array` is a Storage, `View` any other Array.
# `fork` makes a clone, `unshare` copies. Backward compares versions, and raises if a value that it
# needs was overwritten.
#
# ## 5. How does one memory show several shapes?
#
# By strides: how far to go in memory for a step along each axis. Transposing swaps strides, slicing
# changes the offset, broadcasting sets a stride to 0. No byte moves.

# %%
numbers = mg.arange(12).reshape((3, 4))
views = {
    "numbers": numbers,
    "numbers.T": numbers.T,
    "numbers[:, 1:3]": numbers[:, 1:3],
    "numbers[0].expand((3, 4))": numbers[0].expand((3, 4)),
}
for name, view in views.items():
    print(f"{name:26} shape {view.shape}  strides {view.strides}  offset {view.array.offset}")

# %% [markdown]
# ![Four views of twelve numbers; a cell shows the place in memory](pictures/tour/layout.svg)
#
# Open [array/layout.py](../minigrad/array/layout.py): `broadcast_shapes`, `expand_strides` and
# `reshape_strides` find such strides; `collapse` merges axes, so that a kernel has few loops.
#
# ## 6. What is an operation before it is machine code?
#
# A formula: a Python function that is called once, with symbols in the place of numbers. What it
# does to them becomes a tree. This is `tanh`, and its gradient as a formula of the output `y` and
# of `dy`, the gradient that arrives.

# %%
from minigrad.ops.unary import Tanh

print(Tanh.program)
gradient = Tanh.plan(1).program
print(gradient)

# %% [markdown]
# ![The gradient of tanh as a tree](pictures/tour/expression.svg)
#
# Open [formulas/expression.py](../minigrad/formulas/expression.py): `call` applies an operation to
# whatever it is given. It computes with numbers; of symbols it makes a part of a tree; of Variables
# it makes Variables, as stop 13 needs it. Equal trees are one object, so `y` is in the picture
# once.
#
# ## 7. Who writes the kernel?
#
# The *Emitter* walks the tree and writes one statement for each node. `formulas/codegen.py` puts
# the loop around the statements, and Numba compiles the text. (`f4_at` makes an array of float32 of
# an address, `F4` a float32 of a number.) The same formula becomes another text for each dtype and
# layout, for the GPU and for compiled steps.

# %%
from minigrad.array.dtypes import float32
from minigrad.formulas.codegen import elementwise_text

print(elementwise_text(gradient, [float32] * 3, rank=0, inner=None)[0])

# %% [markdown]
# Open [formulas/emitter.py](../minigrad/formulas/emitter.py): `value` names each part of a tree
# once, `_code` writes an operation, `_convert` turns floats, ints and truth values into one
# another.
#
# ## 8. What does a Variable know beyond its numbers?
#
# Its gradient, and the node that made it. A leaf has no node: backward writes to its `.grad`.

# %%
h = model.enter(x)
print(h.node.op, "|", h.is_leaf, h.requires_grad)
weight = model.enter.weight
print(weight.node, "|", weight.is_leaf, weight.requires_grad, weight.grad)

# %% [markdown]
# Open [tape/variable.py](../minigrad/tape/variable.py): nothing in it computes, since operators are
# installed from a table. Look at what `requires_grad` and `.grad` refuse.
#
# ## 9. What does an operation leave behind?
#
# A *Node*: edges to the nodes of its inputs, the values that its gradient needs, their versions,
# and the line of your program. Nothing else keeps the forward pass alive: drop the loss, and all of
# it is freed.

# %%
loss = mg.cross_entropy(model(x), labels)
node = loss.node
print(node.op, "|", node.line)
print("saved ", {name: value.shape for name, value in node.saved.items()})
print("inputs", node.inputs)

# %% [markdown]
# ![The graph of the loss](pictures/tour/graph.svg)
#
# Open [tape/node.py](../minigrad/tape/node.py): a `Node` never holds a Variable that an operation
# made. `user_place` notes a place in the code, and `place_line` decodes it when somebody asks.
#
# ## 10. In which order do gradients flow?
#
# Consumers before producers: a node sends gradients on when all of its own have arrived. Nodes are
# numbered when they are made, so sorting by number is enough. Where two paths meet, gradients are
# added.

# %%
from minigrad.tape.order import ordered

order = ordered([loss.node])
print(*(node.op for node in order), sep=" -> ")
loss.backward()
print({name: p.grad.shape for name, p in model.named_parameters()})
try:
    loss.backward()
except mg.errors.GraphFreedError as error:
    print(error)

# %% [markdown]
# ![The order of backward](pictures/tour/backward.svg)
#
# Open [tape/backward.py](../minigrad/tape/backward.py) and read it from top to bottom: where a pass
# begins, the walk, and what is written to `.grad`. `ordered` stands in `tape/order.py`.
#
# ## 11. How does one write a backward of one's own?
#
# As a *Function*: two static methods. This one passes values on and turns gradients around. What
# `forward` and `backward` return is checked: how many values, their types and shapes.


# %%
class Reverse(mg.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, dy):
        return -dy


leaf = mg.variable([1.0, 2.0], requires_grad=True)
(Reverse.apply(leaf) * 3.0).sum().backward()
print(leaf.grad)

# %% [markdown]
# Open [tape/function.py](../minigrad/tape/function.py): `Function.apply` runs `forward` unrecorded
# and ties one node; `Context` is the `ctx`, which keeps what backward needs.
#
# ## 12. What does a formula become?
#
# An elementwise operation is a class that states a formula and a gradient. The base class calls
# both with symbols, so they have no `self`. It derives the rest: the kernels, the function, the
# graph, and derivatives of every order.

# %%
import inspect

print(inspect.getsource(Tanh))
at = mg.variable([0.5])
slope = mg.grad(lambda x: mg.tanh(x).sum())
curvature = mg.grad(lambda x: slope(x).sum())
print(mg.tanh(at), slope(at), curvature(at))

# %% [markdown]
# Open [ops/base.py](../minigrad/ops/base.py): `Elementwise.prepare` calls the two functions.
# `slow_path` is what runs, `record` ties the node. `apply`, which is called, is generated: once a
# kernel is known it does the same in one piece ([ops/fast.py](../minigrad/ops/fast.py); skip it at
# first). `RowWise` has formulas along a row, as at stop 16. `Structural` has no formula: it moves
# elements or multiplies matrices, as at stop 18. `samples` are shapes for tests; `result = "real"`
# says that ints become float32.
#
# ## 13. Where does the kernel of a derivative come from?
#
# From a *plan*: one for each operation and for each set of inputs that need a gradient. The set is
# a mask, with a bit for each input. The plan fuses the gradients into one kernel, and says which
# values must be saved for it.

# %%
from minigrad.ops.binary import Mul

for mask, needed in ((0b01, "a"), (0b10, "b"), (0b11, "a and b")):
    plan = Mul.plan(mask)
    print(f"a * b, gradient of {needed}: saves {plan.saved_names}")
    print("   ", plan.program)

# %% [markdown]
# Open [ops/gradient_plan.py](../minigrad/ops/gradient_plan.py): `general` runs the kernels for any
# layout. `_fast_path` writes a Python function for the common case: contiguous operands of one
# shape, one kernel, no loop over the inputs. `backward_graph` walks the same trees with Variables:
# so derivatives have derivatives.
#
# ## 14. Which value does a gradient save?
#
# The one that makes it cheap: the gradient names its arguments, and `y` is the output.

# %%
from minigrad.ops import unary

for op in (unary.Exp, unary.Sigmoid, unary.Sin, unary.Square, unary.Neg):
    (formula,) = op.gradient_formulas
    print(f"{op.name:8} saves {', '.join(op.plan(1).saved_names) or 'nothing':8} {formula}")

# %% [markdown]
# Open [ops/unary.py](../minigrad/ops/unary.py): all operations of one input, each with its formula.
#
# ## 15. What is the gradient of something that was broadcast?
#
# A sum: each element of the smaller operand was used several times.

# %%
a = mg.ones((6, 3), requires_grad=True)
b = mg.variable([1.0, 2.0, 3.0], requires_grad=True)
(a * b).sum().backward()
print(b.grad, "is the sum over", a.shape[0], "rows")

# %% [markdown]
# Open [ops/binary.py](../minigrad/ops/binary.py): the formulas know nothing of broadcasting. Their
# plan sums, in the kernel that computes the gradient: `sum_program` in the file of stop 13.
#
# ## 16. How many times does softmax go over a row?
#
# Three times. A formula may have sums and maxima along a row. Each level of them needs a pass over
# the row, and one more pass writes the result. Softmax has two levels: the sum needs the maximum.
# (`order_f4` turns a float into an int of the same order: a maximum of ints becomes vector code,
# and one of floats does not, because of NaN. `plus` is an addition that may be reordered, so that a
# sum becomes vector code, too.)

# %%
from minigrad.formulas.row_codegen import rows_text
from minigrad.ops.rows import SoftmaxRow

print(SoftmaxRow.program.depth, SoftmaxRow.program)
print(rows_text(SoftmaxRow.program, ("store",), [float32] * 2, [1, 1])[0])

# %% [markdown]
# Open [ops/rows.py](../minigrad/ops/rows.py): softmax, cross entropy and the normalisations are a
# few lines each. Look at how they avoid overflow.
#
# ## 17. What is the gradient of a sum?
#
# The same number for each element that was added. It is not copied: a view shows it with stride 0.

# %%
from minigrad.ops.reduction import spread

dy = mg.variable([1.0, 2.0, 3.0, 4.0])
view = spread(dy, (6, 4), axis=0, keepdims=False)
print(view.shape, view.strides, mg.memory.shares_storage(dy, view))

# %% [markdown]
# Open [ops/reduction.py](../minigrad/ops/reduction.py): `reduced` runs all reductions. Their
# gradients are functions of Variables, so they have gradients themselves.
#
# ## 18. What does a layer cost on the way back?
#
# Two matrix products, where the forward pass has one: a product for the gradient of the input, and
# one for that of the weight. A node saves only what the gradients need that somebody asked for.
# Nobody asked for the gradient of `x`, so the first layer does not save its weight.

# %%
loss = mg.cross_entropy(model(x), labels)
for node in ordered([loss.node]):
    if node.op == "linear":
        print(node.op, {name: value.shape for name, value in node.saved.items()})

# %% [markdown]
# Open [ops/linear.py](../minigrad/ops/linear.py): `Linear` states its gradients twice, over
# Variables for all orders and over Arrays for speed. The latter can write a weight's gradient
# straight into its place in `.grad`.
#
# ## 19. How does a model know its parameters?
#
# A Module registers what is set as an attribute. Names follow the attributes.

# %%
print(model)
for name, p in model.named_parameters():
    print(f"{name:14} {p.shape}")

# %% [markdown]
# Open [nn/module.py](../minigrad/nn/module.py): `__call__` runs `forward`. `state_dict`, `valid`
# and `clone` give three kinds of copies, and their docstrings say what is shared.
#
# ## 20. Where does a weight begin?
#
# Uniform within 1 / sqrt(inputs): a sum of many terms must not grow with their number.

# %%
fresh = mg.nn.Linear(256, 64)
print(f"largest {fresh.weight.abs().max().item():.4f}, bound {256**-0.5:.4f}")
print(f"inputs vary by 1, outputs by {fresh(mg.randn((1000, 256))).std(ddof=0).item():.1f}")

# %% [markdown]
# Open [nn/linear.py](../minigrad/nn/linear.py): a layer is a constructor, a `forward` and a `repr`.
#
# ## 21. How much code is an optimizer?
#
# A formula, again: the new parameter `p` and the new state from the old ones and the gradient `g`.
# This is SGD as the step above uses it, and Adam. `s0` and `s1` are the old state. What depends on
# hyperparameters alone, as `1 - beta1` does, is a number that is computed once a step: `n0`, `n1`,
# and so on.

# %%
for rule in (optimizer, mg.optim.Adam(model)):
    update = rule.groups[0].update()
    for name, formula in zip(("p", *update.slots), update.program.outputs, strict=True):
        print(f"{rule.algorithm:4} {name:13} = {formula}")

# %% [markdown]
# Open [optim/rules.py](../minigrad/optim/rules.py): each optimizer is its defaults, the names of
# what it keeps, and the formula.
#
# ## 22. How many launches does an update take?
#
# One for all parameters. A table says where each parameter, its gradient and its state lie. One
# kernel goes through the table and calls a function for each row. The emitter writes the body of
# that function; this is Adam's.

# %%
from minigrad.devices.cpu.updates import update_text

text, _ = update_text(update, float32)
print(text.split("\n\n\n")[0])

# %% [markdown]
# ![One launch updates four parameters](pictures/tour/optimizer.svg)
#
# Open [optim/optimizer.py](../minigrad/optim/optimizer.py): `step` runs the kernel. Most of the
# file is about what becomes of state when a model gets other parameters.
#
# ## The same step, compiled
#
# `mg.compile` makes one program of it. The first call is traced: the same files run, but on a
# device that computes nothing and writes down what it is asked for.

# %%
compiled = mg.compile(step)
weights = model.state_dict()
print(f"eager    {step(x, labels).item():.4f}")
model.load_state_dict(weights)
print(f"compiled {compiled(x, labels).item():.4f}")
report = compiled.report()
print(report.instructions_before, "instructions recorded,", report.instructions_after, "kept")
print(report.calls, "calls of kernels")

# %% [markdown]
# *Passes* first remove what nobody reads. This is what they kept, a box for each instruction: at
# the top the forward pass, below it the gradients and the updates. No `.grad` is written, since
# `zero_grad` ends the step.
#
# ![The recording of the step](pictures/tour/recording.svg)
#
# *Fusion* puts formulas over the same elements into one kernel. The first bias, tanh and the
# shortcut are one loop; so are the second bias, the loss, its gradient, and the gradient of that
# bias.
#
# ![The program after fusion](pictures/tour/program.svg)
#
# The emitter of stop 7 writes these kernels, too. This one was `linear`, `tanh` and `add`. Threads
# share its rows, each from `b` to `e`. It writes tanh over the value that it read for the last time
# (`f0`), so tanh needs no memory of its own:

# %%
kernels = compiled.source().split("\n\n\n")
print(next(text for text in kernels if "tanh" in text and "def kernel" in text))

# %% [markdown]
# The program knows when each value is read for the last time. So its temporaries share one buffer,
# the *arena*, and the pool is asked twice.

# %%
before = mg.memory.stats()["hits"]
loss = compiled(x, labels)
print(mg.memory.stats()["hits"] - before, "buffers taken: the arena and the loss")

# %% [markdown]
# ![Temporaries before and after planning](pictures/tour/plan.png)
#
# Open [compiler/](../minigrad/compiler): `trace` writes down, `passes` and `fuse` change what was
# written, `cpu` and `gpu` write the program, `call` looks whether it still fits.
# [compile.md](compile.md) goes on from here.
#
# ## Where would you open to add …
#
# … **an operation**? [ops/unary.py](../minigrad/ops/unary.py) or its neighbours: a class with a
# formula and a gradient. Stops 6, 7, 12 and 13 say what becomes of it. It runs on all devices, and
# compiled steps fuse it.
#
# … **an optimizer**? [optim/rules.py](../minigrad/optim/rules.py): a class with a formula, as in
# stop 21. The kernel of stop 22 comes from it.
#
# … **a pass of the compiler**? [compiler/passes/](../minigrad/compiler/passes): a function from a
# recording to a recording, and its place in `ORDER`. `compiler/program/sketch.py` writes small
# recordings to try it on.
#
# … **a layer**? A file of [nn/](../minigrad/nn) such as [nn/linear.py](../minigrad/nn/linear.py):
# parameters in `__init__`, operations in `forward`.
#
# … **a kernel that is no formula**? [devices/table.py](../minigrad/devices/table.py) says what
# every device has, `devices/source/` has the kernels, and
# [devices/cpu/structural.py](../minigrad/devices/cpu/structural.py) calls those of the CPU.
#
# … **an exercise**? A module of its lesson's package in [course/](../minigrad/course). If the
# learner's function runs in the engine, [seams.py](../minigrad/seams.py) declares the place, and
# [course/seams.py](../minigrad/course/seams.py) fills it.
#
# [CONTRIBUTING.md](../CONTRIBUTING.md) has a recipe for each, with the tests that then hold it.
#
# … **or to change what an error says**? The words stand where the check is made, in the file of the
# operation. Operands that do not broadcast meet theirs in
# [array/layout.py](../minigrad/array/layout.py), a layer's input in
# [nn/check.py](../minigrad/nn/check.py). What a name of PyTorch is called here is in
# [hints.py](../minigrad/hints.py).
