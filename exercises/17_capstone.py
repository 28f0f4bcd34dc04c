"""Lesson 17: a capstone of your own, one of three.

Each function begins empty and is yours: which network, which optimizer, how
many steps. The docstring says what must come out.

    minigrad check 17.read_digits        grades a training, for points
    minigrad capstone read_digits        trains with seeds 0 to 4, and keeps
                                         what each came to
    minigrad capstone read_digits --mine the same on your own engine: with
                                         all parts that you have written

A training calls `record(number)` as it goes, with a float. Floats and ints
may be Python's or NumPy's. The engine is there (`import minigrad as mg`),
and so is NumPy.
"""

import numpy as np

import minigrad as mg


def read_digits(images, labels, seed, record):
    """Train a network (mg.nn) on handwritten digits; return what reads.

    Trained on four fifths of the digits with seeds 0 to 4, it reads 97 % or
    more of the last fifth in the median. (In a check the images are turned
    or mirrored, those to train with and those to read in the same way.) A
    training takes a few seconds.

    Args:
        images: (n, 8, 8) float32, from 0 (paper) to 1 (ink), n 200 or more.
            They are left as they were, and so are the labels.
        labels: (n,) ints from 0 to 9. Not all ten need occur, and some may
            be wrong: the network learns what most images like this say.
        seed: int. What you draw (weights, order of batches) depends on it
            alone: the same seed gives the same losses to the last bit, and
            another seed gives others.
        record: call record(loss) once after each step, with the loss of
            that step, a float, for 25 steps or more. The step's graph is
            gone by then. What record raises comes out (Ctrl-C, for one).

    Returns:
        read: a function. read(images) with (m, 8, 8) images, m 1 or more,
        leaves them as they were and returns a NumPy array of (m,) ints, the
        labels. An image gets the same label alone, among others, when it is
        read again, and when another network has been trained meanwhile.
    """
    raise NotImplementedError("read_digits is yours to write")


# The classes of your transformer stand here.


def write_text(tokens, n_kinds, steps, seed, record):
    """Train a small transformer to guess the next token; return it.

    On the text that comes with minigrad, with 1,000 steps, it needs fewer
    bits a character than a trigram does: a table of which character
    follows which two. A training takes half a minute or more.

    Args:
        tokens: (n,) ints from 0 to n_kinds - 1, n 400 or more. They are
            left as they were.
        n_kinds: how many kinds of tokens there are, even if some of them
            do not come in tokens.
        steps: how many steps to make, 1 or more.
        seed: int. The same seed gives the same losses to the last bit,
            and another seed gives others.
        record: call record(loss) after each step, with the loss of that
            step, a float, Python's or NumPy's. The graph of a step is gone
            once the next one ends.

    Returns:
        model: a mg.nn.Module. model(tokens) with a Variable of ints (batch,
        n), n from 1 to 32, returns scores (batch, n, n_kinds), those at
        place i for the token at place i + 1. They depend on the tokens at
        places 0 to i alone: a change of a later one changes no bit of them,
        and neither does one of another row, an earlier call or another
        training. In a shorter row, or alone, they are equal to 0.0001.

        model(tokens, cache) with a dict, empty at first, keeps in it what
        later calls need: called with one token (1, 1) at a time, it returns
        the scores that model returns for the whole row there, to 0.0001.
        Rows with caches of their own may take turns.
    """
    raise NotImplementedError("write_text is yours to write")


def balance_pole(env, steps, seed, record):
    """Learn a game by deep Q-learning; return what plays it.

    On gymnasium's CartPole-v1, with 40,000 steps and seeds 0 to 4, the last
    20 games of the training have a mean return of 195 or more, for 3 seeds
    or more. A training takes half a minute. (In a check it is another game:
    short, with 4,000 steps, places of its own and rewards of any size.)

    Args:
        env: a game with gymnasium's calls. env.reset(seed=seed), at first,
            and env.reset() return (observation, info); env.step(action)
            returns (observation, reward, ended, cut_off, info). After ended
            or cut_off comes a reset, and not before; after the last step it
            may be left out.
            env.observation_space.shape is that of an observation, a float32
            array (k,), which is left as it was; env.action_space.n is how
            many actions there are, the ints from 0. A game that was cut off
            would have gone on.
        steps: the most calls of env.step; it may be fewer, once it plays
            well. In the last tenth of those made, no more than one in ten
            is left to chance.
        seed: int. The same seed gives the same training to the last bit,
            whatever was trained before.
        record: call record(mean) at the end of each game, with the mean
            return (a float) of the last 20 games, or of all so far. The
            return of a game is the sum of its rewards. One that breaks off
            when the steps run out is not recorded.

    Returns:
        act: a function. act(observation) returns the action, an int, that
        the trained network holds for best: once the training is over,
        always the same for the same observation, when another network has
        been trained meanwhile, too.

    No step's graph is kept: live nodes do not grow. The target network is
    a clone without gradients, brought up to date from time to time.
    """
    raise NotImplementedError("balance_pole is yours to write")
