# %% [markdown]
# # 17 · Something of your own
#
# **You need** the lessons that you have done, whichever they are; 04 and 09 help most. **It takes**
# about 60 minutes for the digits, and two hours more for each of the others; do one of the three,
# or all. **At the end** a training that you wrote from an empty function has reached a bar with
# five seeds, on minigrad's engine and on *your own*. Next: whatever you like.
#
# Your code goes into `exercises/17_capstone.py`.

# %% tags=["live"]
from minigrad.course import watch

watch("17")  # what you save in exercises/17_capstone.py is graded here at once

# %%
import matplotlib.pyplot as plt
import numpy as np

import minigrad as mg
from minigrad.course import capstone, check, engine, hint, load, needs, predict, scrub
from minigrad.course import capstone_tasks as tasks
from minigrad.course.l17_capstone.drawing import draw_beside, draw_pole, draw_reach, draw_wrong
from minigrad.grader.folder import find_folder

plt.style.use("minigrad.course.house")

# %% [markdown]
# ## 1. Three tasks, and two ways to be judged
#
# - `read_digits`: any network that reads 97 % of the digits it has not seen.
# - `write_text`: a small transformer that needs fewer bits a character than a table of trigrams.
# - `balance_pole`: deep Q-learning that keeps a pole on a cart upright.
#
# Each is one function in your file, and it is empty: there is what goes in, what comes out and what
# must hold. How you get there is yours.
#
# **Points** come from short trainings that the grader runs itself, as in all lessons. Each takes
# seconds; so for text and pole it has a smaller language and a smaller game; of the digits
# most is seen with 200 to 320 images. Only their 97 % is asked in full length.
#
# **The bar** is another matter: five trainings at full length, with the seeds 0 to 4. They take
# seconds for the digits and minutes for the others, so there is a command for them:
#
# ```sh
# minigrad capstone read_digits           # on minigrad's engine
# minigrad capstone read_digits --mine    # on yours: with all parts of it that have passed
# ```
#
# What a seed came to is kept until your code changes. Cut a run off with Ctrl-C, and the same
# command goes on with the seed that was not finished. When the bar is reached on both engines, the
# tile of your capstone is lit.
#
# Why five seeds? One training is one draw of weights and batches. A change that helps with one seed
# may only have drawn better.
#
# ## 2. Digits
#
# **Predict.** Of 1,797 digits, 359 are held out. How many of these will a small network read
# wrongly, after it has trained on the others?

# %% tags=["prediction"]
wrong = predict("17.wrong", "Of 359 digits held out: how many are read wrongly?")
wrong

# %% [markdown]
# **Write** `read_digits`, and run this cell until everything passes. `images` and `labels` are what
# you train with; those held out come only to the function that you return. Begin with one epoch,
# and look at the losses. (`minigrad hint 17.read_digits` says more.)

# %% tags=["exercise"]
check("17.read_digits")

# %%
needs("17.read_digits")
mine = load("17")
curves, readings = {}, {}
for seed in range(tasks.N_SEEDS):
    (images, labels), (new, right) = tasks.digits(seed)
    losses = []
    read = mine.read_digits(images, labels, seed, losses.append)
    curves[f"seed {seed}"], readings[seed] = losses, (new, read(new), right)

n_wrong = [int((found != right).sum()) for _, found, right in readings.values()]
wrong.reveal(int(np.median(n_wrong)), factor=2)
figure, axis = plt.subplots(figsize=(8, 3.6))
axis.set(xlabel="training step", ylabel="loss, mean of 15 steps", yscale="log")
draw_beside(axis, curves, -np.log(0.97), "a digit read with 97 % confidence")
axis.set_title("Five seeds, five trainings")
plt.show()
print("read wrongly:", ", ".join(f"seed {seed}: {n}" for seed, n in enumerate(n_wrong)))

# %% [markdown]
# **What to see.** Five trainings go down side by side, and yet they do not come out alike: each
# seed holds out other digits, and draws other weights. This is the spread against which an idea
# has to show that it helps.
#
# Here are the digits that were read wrongly, for each seed.

# %%
needs("17.read_digits")


def draw(axis, seed):
    """Draw what was read wrongly after the training with a seed."""
    draw_wrong(axis, *readings[seed])  # an image: xlabel and ylabel would name nothing


scrub(draw, list(readings), label="seed", show=[0, 1, 2])

# %% [markdown]
# **What to see.** Above each digit stands what was read, and what was right. Some of these a person
# would get wrong, too. For the others: would a network that sees neighbours (a CNN) know better?
#
# Now the same on your own engine: with all parts that have passed in their lessons.

# %%
needs("17.read_digits")
mine = load("17")
(images, labels), (new, right) = tasks.digits(0)
with engine("mine") as parts:
    my_losses = []
    my_read = mine.read_digits(images, labels, 0, my_losses.append)
    my_found = my_read(new)
print("your parts in this engine:", ", ".join(parts) or "none yet (they pass in their lessons)")
print(f"read correctly: {np.mean(my_found == right):.1%}")
figure, axis = plt.subplots(figsize=(8, 3.6))
axis.plot(curves["seed 0"], linewidth=4, alpha=0.4, label="minigrad's engine")
axis.plot(my_losses, "-", color="black", linewidth=0.6, label="your engine")
axis.set(xlabel="training step", ylabel="loss", yscale="log", title="Seed 0, on two engines")
axis.legend()
plt.show()

# %% [markdown]
# **What to see.** The black line lies in the wide one. Where your parts round in another order, the
# last digits of a loss differ, and after hundreds of steps such differences can be seen: training
# is sensitive to them. The digits read correctly are as many.
#
# ## 3. Text
#
# The text that comes with minigrad is what Python's `help()` shows: 211,028 characters. A
# **trigram** knows, for each two characters, how often which one followed. Each character that is
# held out then costs $-\log_2 p$ bits, if $p$ is the probability that the model gave it.
#
# **Predict.** There are 94 characters, so a model that knows nothing needs $\log_2 94 = 6.6$ bits
# for each. How many does a trigram need?

# %% tags=["prediction"]
bits = predict("17.bits", "Bits a character, for text that a trigram has not seen?")
bits

# %%
alphabet, tokens, held_out = tasks.text()
bits.reveal(tasks.text_baseline(), factor=1.15)

# %% [markdown]
# A transformer sees 32 characters instead of two. **Write** `write_text`. Begin without a cache,
# and see the loss fall; then add the cache.

# %% tags=["exercise"]
check("17.write_text")

# %% [markdown]
# The next cell makes half the steps of a whole run.

# %%
needs("17.write_text")
mine = load("17")
losses = []
model = mine.write_text(tokens, len(alphabet), tasks.TEXT_STEPS // 2, 0, losses.append)
in_bits = np.array(losses) / np.log(2)
figure, axis = plt.subplots(figsize=(8, 3.6))
draw_beside(axis, {"your transformer, on what it learns": in_bits}, tasks.text_baseline(),
            "a trigram, on text held out")  # fmt: skip
axis.set(xlabel="training step", ylabel="bits a character, mean of 15 steps")
axis.set_title("The first steps")
plt.show()
print(f"on the text held out: {tasks.held_out_bits(model):.2f} bits a character")

# %% [markdown]
# **What to see.** The first bits are cheap: which characters are frequent, and which pairs. Then
# the curve is nearly flat for a while, until attention finds out where to look, and it falls again.
# The dashed line is for text that is *held out*, where a model needs more bits than on what it
# learns: compare it with the number below the picture. The whole run has twice as many steps.
#
# Is it causal? Change one token at a time, and look which scores change, in any bit.

# %%
needs("17.write_text")


def scores(rows):
    """Return the scores of your model."""
    with mg.no_grad():
        return model(mg.variable(rows)).numpy()


figure, axis = plt.subplots(figsize=(4.2, 4.2))
draw_reach(axis, scores, held_out[0][: tasks.LENGTH])  # xlabel, ylabel: places
axis.set_title("Blue: the scores change")
plt.show()

# %% [markdown]
# **What to see.** A triangle with an edge as sharp as a knife: no change reaches to the left, to an
# earlier place. If only one number to the left differed in its last bit, there would be blue.
#
# And what does it write? It begins with the first words of the text, draws one character after the
# other, and hands each to the model with the cache, so that no character is computed twice.

# %%
needs("17.write_text")


def generate(model, begin, n=28, seed=0, sharpness=1.5):
    """Return a text that goes on from `begin` with n characters, at most 32 in all."""
    random, cache = np.random.default_rng(seed), {}
    written = [alphabet.index(c) for c in begin]
    with mg.no_grad():
        for place in range(len(begin) + n - 1):
            row = model(mg.variable(np.array([[written[place]]])), cache).numpy()[0, 0]
            if place >= len(begin) - 1:
                p = np.exp(sharpness * (row - row.max()))
                written.append(int(random.choice(len(p), p=p / p.sum())))
    return "".join(alphabet[i] for i in written)


for seed in range(3):
    print(repr(generate(model, "The ", seed=seed)))

# %% [markdown]
# ## 4. A pole on a cart
#
# CartPole is a game of gymnasium's (`pip install gymnasium`). A cart moves left or right on
# a rail, and a pole stands on it. Each step that the pole stands is worth 1; after 500 steps the
# game is cut off.
#
# **Predict.** Somebody pushes left and right at random. After how many steps has the pole fallen?

# %% tags=["prediction"]
random_play = predict("17.random", "Pushed at random: how many steps does the pole stand?")
random_play

# %%
game = tasks.cart_pole(tasks.POLE_STEPS)
game.reset(seed=0)
pushes = np.random.default_rng(0)
for _ in range(3000):
    _, _, ended, cut_off, _ = game.step(int(pushes.integers(2)))
    if ended or cut_off:
        game.reset()
random_play.reveal(float(np.mean(game.returns)), factor=1.5)

# %% [markdown]
# **Write** `balance_pole`. Lesson 05 has the target network, lesson 06 the leaks of such loops.

# %% tags=["exercise"]
check("17.balance_pole")

# %% [markdown]
# The next cell makes a quarter of the steps of a whole run.

# %%
needs("17.balance_pole")
mine = load("17")
few = tasks.POLE_STEPS // 4
game = tasks.cart_pole(few)
curve = []
act = mine.balance_pole(game, few, 0, lambda mean: curve.append((game.steps, mean)))
figure, axis = plt.subplots(figsize=(8, 3.6))
draw_pole(axis, *zip(*curve, strict=True), tasks.GOOD)  # xlabel, ylabel: steps, return
axis.set_title("Seed 0, the first steps")
plt.show()

# %% [markdown]
# **What to see.** For a long time nothing seems to happen: the agent explores. Then the returns
# rise steeply, and often they fall again. That is how deep Q-learning is: the data change with the
# network that makes them. Stop when it is good.
#
# > **Real bug: a game that was cut off is not over.** The pole that stands after 500 steps would
# > have gone on standing. If the cut counts as an end, the value of the best states is learned too
# > small. In Gym before 0.26 a step said only "done", so programs could not know, and many got it
# > wrong. Today `step` returns two flags:
# > [time limits](https://gymnasium.farama.org/tutorials/gymnasium_basics/handling_time_limits/).
#
# ## 5. Bug hunt: a training that does not learn
#
# No line is planted here; the bugs are your own. In this order you find most of them.
#
# | what you see | where to look |
# |---|---|
# | the loss does not change | is `step()` called, on the parameters of *this* model? |
# | it rises at once | sign of the loss; a learning rate that is ten times too large |
# | nan | what did the number before it say? Halve the rate; clip (lesson 08) |
# | it falls, but not on new data | images and labels shuffled apart; a future that leaks |
# | right in training, wrong afterwards | dropout, a batch's statistics: let `model.valid()` read |
# | each step is slower than the last | a graph that is kept (lesson 06): record `loss.item()` |
# | the same seed, another result | something drawn before the seed is set |
#
# > **Real bug: the same noise for everybody.** In 2018 somebody saw that `np.random` gave the same
# > numbers in each worker of PyTorch's DataLoader
# > ([pytorch#5059](https://github.com/pytorch/pytorch/issues/5059)): NumPy's state was copied with
# > the process. Trainings ran, and learned, with less variety than they thought they had. A loss
# > curve does not show this. Draw some batches.
#
# ## 6. How your capstones stand

# %%
for name in capstone.CAPSTONES:
    for which in capstone.ENGINES:
        print(f"{name:<13} {which:<10} {capstone.standing(find_folder(), name, which)}")

# %% [markdown]
# ## Where you are
#
# - A bar, five seeds, and a spread: this is how a result is told.
# - Points come from what is trained before the grader's eyes; a file of results proves nothing.
# - A training is repeated to the last bit, if all that is drawn hangs on one seed.
#
# **Next:** `minigrad capstone` says what is still to be run. And then: an idea of your own,
# measured against what you have here, with five seeds.

# %%
from minigrad.course.predictions import summary

print(summary("17"))

# %% tags=["exercise"]
check("17")
