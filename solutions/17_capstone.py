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
    ### BEGIN SOLUTION
    mg.manual_seed(seed)
    model = mg.nn.Sequential(
        mg.nn.Linear(64, 128), mg.nn.ReLU(), mg.nn.Linear(128, 10)
    )
    optimizer = mg.optim.Adam(model, learning_rate=2e-3)
    pixels = images.reshape(-1, 64)
    for epoch in range(30):
        order = 1000 * seed + epoch
        for x, y in mg.data.batches(
            pixels, labels, batch_size=32, seed=order
        ):
            loss = mg.cross_entropy(model(mg.variable(x)), mg.variable(y))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            record(loss.item())
    reader = model.valid()

    def read(images):
        scores = reader(mg.variable(images.reshape(-1, 64)))
        return scores.numpy().argmax(axis=1)

    return read
    ### END SOLUTION


### BEGIN SOLUTION
LENGTH = 32  # the most tokens that a model sees


class Block(mg.nn.Module):
    """Attention to what came before, then two layers at each place."""

    def __init__(self, size, heads, number):
        self.heads, self.number = heads, number
        self.attention_norm = mg.nn.LayerNorm(size)
        self.joint = mg.nn.Linear(size, 3 * size)  # q, k and v
        self.output = mg.nn.Linear(size, size)
        self.mlp_norm = mg.nn.LayerNorm(size)
        self.mlp = mg.nn.Sequential(
            mg.nn.Linear(size, 4 * size),
            mg.nn.GELU(),
            mg.nn.Linear(4 * size, size),
        )

    def forward(self, x, cache=None):
        """(batch, n, size) -> (batch, n, size)."""
        batch, n, size = x.shape
        joint = self.joint(self.attention_norm(x))
        joint = joint.reshape(batch, n, 3, self.heads, size // self.heads)
        q, k, v = joint.permute(2, 0, 3, 1, 4)  # (batch, heads, n, ...)
        if cache is not None:
            if self.number in cache:
                old_k, old_v = cache[self.number]
                k = mg.concatenate([old_k, k], axis=2)
                v = mg.concatenate([old_v, v], axis=2)
            cache[self.number] = (k, v)
        before = k.shape[2] - n
        sees = np.arange(before + n) <= before + np.arange(n)[:, None]
        y = mg.scaled_dot_product_attention(q, k, v, mg.variable(sees))
        y = y.permute(0, 2, 1, 3).reshape(batch, n, size)
        x = x + self.output(y)
        return x + self.mlp(self.mlp_norm(x))


class Transformer(mg.nn.Module):
    """Scores for the next token: model(tokens), or model(tokens, cache)."""

    def __init__(self, n_kinds, size=64, heads=2, blocks=2):
        self.tokens = mg.nn.Embedding(n_kinds, size)
        self.places = mg.nn.Embedding(LENGTH, size)
        for table in (self.tokens, self.places):
            mg.nn.init.normal_(table.weight, std=0.1)
        self.blocks = mg.nn.ModuleList(
            [Block(size, heads, number) for number in range(blocks)]
        )
        self.norm = mg.nn.LayerNorm(size)
        self.scores = mg.nn.Linear(size, n_kinds)

    def forward(self, tokens, cache=None):
        """(batch, n) ints -> (batch, n, n_kinds)."""
        n = tokens.shape[1]
        before = 0 if cache is None else cache.get("before", 0)
        if cache is not None:
            cache["before"] = before + n
        places = mg.variable(np.arange(before, before + n))
        x = self.tokens(tokens) + self.places(places)
        for block in self.blocks:
            x = block(x, cache)
        return self.scores(self.norm(x))


### STARTS AS
# # The classes of your transformer stand here.
### END SOLUTION


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
    ### BEGIN SOLUTION
    mg.manual_seed(seed)
    random = np.random.default_rng(seed)
    model = Transformer(n_kinds)
    highest = 3e-3
    optimizer = mg.optim.AdamW(model, learning_rate=highest)
    window = np.arange(LENGTH + 1)
    for step in range(steps):
        wave = 0.55 + 0.45 * np.cos(np.pi * step / steps)
        optimizer.learning_rate = highest * min((step + 1) / 50, wave)
        starts = random.integers(0, len(tokens) - LENGTH, (16, 1))
        rows = tokens[starts + window]
        scores = model(mg.variable(rows[:, :-1]))
        loss = mg.cross_entropy(
            scores.reshape(-1, n_kinds),
            mg.variable(rows[:, 1:].reshape(-1)),
        )
        loss.backward()
        mg.optim.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        record(loss.item())
    return model.valid()
    ### END SOLUTION


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
    ### BEGIN SOLUTION
    mg.manual_seed(seed)
    random = np.random.default_rng(seed)
    n_seen, n_actions = env.observation_space.shape[0], env.action_space.n
    online = mg.nn.Sequential(
        mg.nn.Linear(n_seen, 128),
        mg.nn.ReLU(),
        mg.nn.Linear(128, 128),
        mg.nn.ReLU(),
        mg.nn.Linear(128, int(n_actions)),
    )
    reader, target = online.valid(), online.clone()
    optimizer = mg.optim.Adam(online, learning_rate=5e-4)
    seen = np.zeros((steps, n_seen), np.float32)
    new = np.zeros_like(seen)
    done = np.zeros(steps, np.int64)
    rewards, goes_on = np.zeros((2, steps), np.float32)

    def act(observation):
        row = np.asarray(observation, np.float32)[None]
        return int(reader(mg.variable(row)).numpy().argmax())

    def learn(rows):
        with mg.no_grad():  # the trained network chooses, the target says
            after = mg.variable(new[rows])
            best = online(after).numpy().argmax(axis=1)
            best = target(after).numpy()[np.arange(len(rows)), best]
        wanted = rewards[rows] + 0.99 * goes_on[rows] * best
        scores = online(mg.variable(seen[rows]))
        scores = mg.gather(scores, mg.variable(done[rows][:, None]), 1)
        mg.huber(scores.squeeze(1), mg.variable(wanted)).backward()
        optimizer.step()
        optimizer.zero_grad()

    returns = [0.0]
    observation, _ = env.reset(seed=seed)
    for step in range(steps):
        if random.random() < max(0.02, 1 - 5 * step / steps):
            action = int(random.integers(n_actions))
        else:
            action = act(observation)
        seen[step], done[step] = observation, action
        observation, reward, ended, cut_off, _ = env.step(action)
        new[step], rewards[step], goes_on[step] = (
            observation,
            reward,
            not ended,
        )
        returns[-1] += reward
        if ended or cut_off:
            mean = float(np.mean(returns[-20:]))
            record(mean)
            if len(returns) >= 20 and mean >= 200:
                break
            returns.append(0.0)
            observation, _ = env.reset()
        optimizer.learning_rate = 5e-4 * (1 - step / steps)
        if step >= 200 and step % 2 == 0:
            learn(random.integers(0, step + 1, 128))
        if step % 500 == 0:
            target = online.clone()
    return act
    ### END SOLUTION
