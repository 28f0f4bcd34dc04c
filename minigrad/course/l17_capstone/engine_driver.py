"""Runs the trainings of lesson 17 in the learner's process; holds no expected values."""

import contextlib
import gc
import time
import weakref
from operator import lt
from typing import Any

import numpy as np

import minigrad

mg: Any = minigrad  # its names appear on first use
MOST_LOSSES = 2000
LOOKS = (5, 25)  # the steps at which live nodes are counted; the first have all kernels compiled
CLIMB = 3  # graphs may be held for an epoch, and be gone at both looks: they grow in between


def weights():
    """Return the Variables that gradients arrive at: whatever learns has some alive."""
    everything = gc.get_objects()
    variables = (one for one in everything if issubclass(type(one), mg.Variable))
    return [one for one in variables if one.requires_grad]


def version_of(weight):
    """Return what changes when a weight is written to; None of one that another has replaced."""
    return None if weight is None else (id(weight.array.storage), weight.array.storage.version)


class Cut(KeyboardInterrupt, ValueError):
    """Raised by record to cut a training off, as Ctrl-C does; and it is an error, too."""


class Log:
    """What a training records; looks at some of its steps what is alive, and cuts off at `cut`."""

    def __init__(self, asked=None, cut=0):
        self.losses, self.kinds, self.nodes, self.has_weights = [], set(), [], False
        self.level: list[int] = []
        self.asked, self.cut, self.states, self.saved = asked, cut, [], 0

    def __call__(self, loss):
        self.kinds.add(type(loss).__name__)
        number = isinstance(loss, float | int | np.floating | np.integer)
        self.losses.append(float(loss) if number else float("nan"))
        if len(self.losses) == LOOKS[0]:
            self.has_weights = bool(weights())
        if LOOKS[0] <= len(self.losses) <= LOOKS[1]:
            self.level.append(mg.memory.stats()["live_nodes"])
        if len(self.losses) in LOOKS:
            self.nodes.append(self.level[-1])
        if self.asked and len(self.losses) in (1, *LOOKS):
            self.states.append((len(self.losses), self.asked.states()))
            self.saved = max(self.saved, mg.memory.stats()["saved_bytes"])
        if len(self.losses) == self.cut:
            raise Cut

    def climb(self):
        """Return (calls, live nodes) where they grew CLIMB times in a row; () if they never did."""
        for i in range(len(self.level) - CLIMB):
            nodes = self.level[i : i + CLIMB + 1]
            if all(map(lt, nodes, nodes[1:])):
                return [LOOKS[0] + i + k for k in range(CLIMB + 1)], nodes
        return ()

    def told(self):
        """Return it as plain data."""
        kinds = sorted(self.kinds)[:8]
        losses = np.array(self.losses[:MOST_LOSSES])
        return {
            "losses": losses,
            "steps": len(self.losses),
            "kinds": kinds,
            "nodes": self.nodes,
            "has_weights": self.has_weights,
        }


def disturb_random(seed):
    """Seed the generators of the engine and of NumPy, from which a training may draw by mistake."""
    mg.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002


@contextlib.contextmanager
def another_day(function, days):
    """Have the clock of `time` go some days fast, and a function's file hash texts otherwise.

    Python draws anew in each process what a text's hash is; that of numbers stays.
    """
    names = getattr(getattr(function, "func", function), "__globals__", {})  # func: of a partial
    now, in_ns = time.time, time.time_ns

    def other_hash(value):
        if isinstance(value, tuple):
            value = tuple(map(other_hash, value))
        return hash((days, value) if isinstance(value, str | bytes) else value)

    is_free = "hash" not in names
    time.time = lambda: now() + 86_400 * days
    time.time_ns = lambda: in_ns() + 86_400 * 10**9 * days
    if is_free:
        names["hash"] = other_hash
    try:
        yield
    finally:
        time.time, time.time_ns = now, in_ns
        if is_free:
            names.pop("hash", None)


EARLIER: list[tuple] = []  # the last training's read, images, and the labels that it gave them


def read_all(read, batches):
    """Read batches, those of a shape in one array; return the labels, and what is wrong with it."""
    rooms, results, kept, wrote = {}, [], [], False
    for one in batches:
        room = rooms.setdefault(one.shape, np.empty_like(one))
        room[...] = one
        results.append(read(room))
        kept.append(np.copy(results[-1]) if isinstance(results[-1], np.ndarray) else results[-1])
        wrote = wrote or not np.array_equal(room, one)
    pairs = [pair for pair in zip(results, kept, strict=True) if isinstance(pair[0], np.ndarray)]
    return kept, wrote, not all(np.array_equal(*pair) for pair in pairs)


def form(arrays):
    """Return what can be changed of arrays beside their numbers."""
    return [(one.shape, one.dtype.name, one.flags.writeable) for one in arrays]


def read_digits(mine, images, labels, seed, batches, disturb, cut=0):
    """Train on images, then read batches of others; report both, and what was written to.

    `disturb` seeds the engine and NumPy beforehand: what a training draws is its own. With `cut`,
    record raises at that call. The reader of an earlier training reads once more, too.
    """
    disturb_random(disturb)
    with Asked() as asked, another_day(mine.read_digits, disturb):
        log, given = Log(asked, cut), (images.copy(), labels.copy())
        its_form = form(given)
        try:
            read = mine.read_digits(*given, seed, log)
        except Cut:
            return {**log.told(), "was_cut": True}
    before = mg.memory.stats()["live_nodes"]
    told = {
        **log.told(),
        "climb": log.climb(),
        "was_cut": False,
        "states": log.states,
        "all_states": asked.states(),
        "saved": log.saved,
        "returned": type(read).__name__,
        "found": None,
        "wrote": not (np.array_equal(given[0], images) and np.array_equal(given[1], labels)),
        "reformed": form(given) != its_form,
        "wrote_new": False,
        "overwrote": False,
        "strided": None,
        "earlier": [(labels, one(new.copy())) for one, new, labels in EARLIER],
    }
    if callable(read):
        told["found"], told["wrote_new"], told["overwrote"] = read_all(read, batches)
        if batches:
            told["strided"] = read(np.asfortranarray(batches[0]))
            EARLIER[:] = [(read, batches[0], told["found"][0])]
    told["left"] = mg.memory.stats()["live_nodes"] - before
    return told


def scores_of(model, tokens, *cache):
    """Return a model's scores as an array; the name of their type if they are no Variable."""
    with mg.no_grad():
        scores = model(mg.variable(tokens), *cache)
    return scores.numpy().copy() if isinstance(scores, mg.Variable) else type(scores).__name__


def again_of(model, rows):
    """Return the scores of rows that were asked about before; an error says that they were."""
    try:
        return scores_of(model, rows)
    except Exception as error:
        error.add_note("at the second call with the same tokens; the first one went well")
        raise


def ask(model, rows, changed, cuts):
    """Return what a model tells about two rows of tokens, and with one token of the first changed.

    Without changes, the rows also go token by token, in turn, each with a cache of its own; then
    each begins once more by itself, the last with a dict that lies where another one lay. `cuts`
    says how long a shorter row is, how many tokens go in turn, and how many begin once more.
    """
    shorter, in_turn, again = cuts
    told = {
        "whole": scores_of(model, rows),
        "again": again_of(model, rows),
        "short": scores_of(model, rows[:, :shorter]),
        "single": scores_of(model, rows[:, :1]),
        "alone": scores_of(model, rows[1:]),
        "changed": [scores_of(model, one) for one in changed],
        "changed_short": [scores_of(model, one[:, :shorter]) for one in changed],
        "cached": [],
        "fresh": [],
    }
    if changed:
        return told

    def step(row, place, cache):
        return scores_of(model, rows[row : row + 1, place : place + 1], cache)

    caches: list[dict] = [{} for _ in rows]
    turns = [[step(r, i, caches[r]) for r in range(len(rows))] for i in range(in_turn)]
    told["cached"] = [list(row) for row in zip(*turns, strict=True)]
    told["is_kept"] = all(caches)

    def begin(row):
        cache: dict = {}
        return [step(row, i, cache) for i in range(again)]

    told["fresh"] = [begin(row) for row in range(len(rows))]
    return told


class Stepped(Log):
    """A log that also notes between which records no weight was written, from the fifth on."""

    def __init__(self):
        super().__init__()
        self.weights, self.versions, self.moved = [], None, []
        self.begun = []

    def __call__(self, loss):
        super().__call__(loss)
        if len(self.losses) == LOOKS[0]:
            self.weights = [weakref.ref(one) for one in weights() if one.is_leaf]
        if len(self.losses) >= LOOKS[0]:
            now = [version_of(one()) for one in self.weights]
            if len(self.losses) > LOOKS[0]:
                self.moved.append(now != self.versions or None in now)
            self.begun, self.versions = self.begun or now, now

    def told(self):
        """Return it as plain data, and how many of the weights were never written."""
        pairs = zip(self.begun, self.versions or (), strict=True)
        still = sum(a is not None and a == b for a, b in pairs)
        its = {"moved": self.moved, "still": still, "weights": len(self.begun)}
        return super().told() | its | {"climb": self.climb()}


def spaced(tokens):
    """Return the same tokens as every second entry of an array."""
    return np.repeat(tokens, 2)[::2]


def write_text(mine, tokens, n_kinds, steps, seed, rows, changed, cuts, disturb):
    """Train on tokens; report what the model tells about rows of others (`ask`), if there are any.

    Between two times that the model is asked about the
    same rows, another training makes a step.
    """
    disturb_random(disturb)
    log, given = Stepped(), spaced(tokens)
    with another_day(mine.write_text, disturb):
        model = mine.write_text(given, n_kinds, steps, seed, log)
    told = {
        **log.told(),
        "wrote": np.flatnonzero(given != tokens),
        "model": type(model).__name__ if not isinstance(model, mg.nn.Module) else "",
    }
    if told["model"] or rows is None:
        return told
    told |= ask(model, rows, changed, cuts)
    if changed:
        mine.write_text(tokens.copy(), n_kinds, 1, seed + 1, Log())
        told["later"] = scores_of(model, rows)
    return told


def held_out(mine, tokens, n_kinds, steps, seed, windows):
    """Train on tokens; return what the training recorded, and the scores of windows of others."""
    log = Stepped()
    model = mine.write_text(spaced(tokens), n_kinds, steps, seed, log)
    return {**log.told(), "scores": scores_of(model, windows)}


class Asked:
    """Notes which networks are asked, and of what memory they are; a context around a training.

    A network is told by the memory of its parameters, so that a live view of it is the same one.
    Of a network that is asked inside another one, only the outer one counts. `networks` is, by the
    ids of its parameters' memory, [calls with a batch, calls that record, versions, whether a
    gradient has arrived, versions that a call recorded, calls with a batch that record nothing].
    """

    def __init__(self):
        self.networks, self.depth, self.learns, self.at, self.kept = {}, 0, [], None, 0

    def __enter__(self):
        self.call, self.backward = mg.nn.Module.__call__, mg.Variable.backward

        def call(module, *args, **kwargs):
            self.depth += 1
            try:
                out = self.call(module, *args, **kwargs)
            finally:
                self.depth -= 1
            if not self.depth:
                self.note(module, out)
            return out

        def backward(*args, **kwargs):
            self.look_for_gradients()
            return self.backward(*args, **kwargs)

        mg.nn.Module.__call__, mg.Variable.backward = call, backward
        return self

    def __exit__(self, *_):
        mg.nn.Module.__call__, mg.Variable.backward = self.call, self.backward
        self.learns = []

    def note(self, module, out):
        """Note a call of a network."""
        held = list(module.parameters())
        if not held or not isinstance(out, mg.Variable):
            return
        memory = frozenset(id(one.array.storage) for one in held)
        row = self.networks.setdefault(memory, [0, 0, set(), False, set(), 0])
        is_batch = out.ndim > 1 and out.shape[0] > 1
        row[0] += is_batch
        row[1] += out.requires_grad
        row[2].add(held[0].array.storage.version)
        row[3] = row[3] or any(one.grad is not None for one in held)
        row[5] += is_batch and not out.requires_grad
        if out.requires_grad:
            row[4].add(held[0].array.storage.version)
            self.learns = held

    def look_for_gradients(self):
        """Count a backward() that adds to gradients by which a step has already gone."""
        if not self.learns:
            return
        storage = self.learns[0].array.storage
        at = id(storage), storage.version
        if self.at and self.at[0] == at[0] and self.at != at:
            last = self.learns[-1].grad
            self.kept += last is not None and bool(last.numpy().any())
        self.at = at

    def begin_again(self):
        """Forget the calls so far."""
        self.networks = {}

    def states(self):
        """Return how many states of its weights the network that learns has been asked in."""
        return max((len(row[4]) for row in self.networks.values()), default=0)

    def told(self):
        """Return as plain data how networks were asked, beside the one that changes most often."""
        learners = [item for item in self.networks.items() if item[1][1]]
        names = ("steps", "batches", "others", "partly", "flows", "still", "states")
        told: dict[str, Any] = {**dict.fromkeys(names, 0), "kept": self.kept}
        if not learners:
            return told
        memory, (batches, _, versions, *_) = max(learners, key=lambda item: len(item[1][2]))
        told |= {"steps": len(versions), "batches": batches}
        moves = 0
        for its, (its_batches, recorded, changes, arrived, _, still) in self.networks.items():
            told["partly"] += bool(its & memory and its - memory and not recorded)
            if its & memory:
                continue
            told["others"] += 1
            told["still"] += still
            told["states"] += len(changes) if its_batches else 0
            told["flows"] += 3 * len(changes) <= recorded and arrived
            moves += arrived
        told["flows"] += bool(moves and not told["still"])
        return told


class Space:
    """What a game says of its observations or actions, as gymnasium's spaces do."""

    def __init__(self, shape=(), n=0, seed=0):
        self.shape, self.n = shape, n
        self.seed(seed)

    def seed(self, seed=None):
        """Seed what `sample` draws from; the game's own seed does not."""
        self.random = np.random.default_rng(seed)

    def sample(self):
        """Return an action by chance."""
        return self.random.integers(self.n)


class Games(Log):
    """A log that notes how many games were over at each call, and whether another had gone on."""

    def __init__(self, game):
        super().__init__()
        self.game, self.at = game, []

    def __call__(self, mean):
        self.at.append((len(self.game.returns), self.game.since > 0))
        super().__call__(mean)


class Game:
    """Places and the ways between them: a smaller game than CartPole, with the same calls.

    The table says, by place and action, what it pays, where it leads (-1: the game has ended; then
    `shown` is the place that is seen) and how often the game is cut off there. What is seen of a
    place is its code, and a little noise. A game begins at one of `starts`, at one of the last
    `late` of them only after LATE steps, and after a cut at `then`. Before that it waits in the
    last place, `delay` steps (from, below). Counts what was done with it, and the live nodes at
    three of the steps: they grow once when learning begins. `halfway` is a number of steps, and
    what to do then.
    """

    LATE, NOISE = 200, 0.05

    def __init__(self, table, seed, looks, halfway=(0, lambda: None)):
        self.table, self.looks, self.halfway = table, looks, halfway
        places, n_actions = table["pays"].shape
        self.observation_space = Space((table["codes"].shape[1],))
        self.action_space = Space((), n_actions, seed)
        self.random, self.waits_in = np.random.default_rng(seed), places - 1
        self.steps, self.since, self.place, self.waits, self.was_cut = 0, 0, None, 0, False
        self.returns, self.total, self.resets = [], 0.0, 0
        self.went, self.nodes, self.wrong, self.handed = [], [], {}, None
        self.first_seed = None

    def see(self, place):
        """Return the observation of a place; note if the last one was written to."""
        self.look_at_the_last()
        noise = self.random.uniform(-self.NOISE, self.NOISE, self.table["codes"].shape[1])
        observation = (self.table["codes"][place] + noise).astype(np.float32)
        self.handed = observation, observation.copy()
        return observation

    def look_at_the_last(self):
        """Note if the last observation was written to."""
        if self.handed and not np.array_equal(*self.handed):
            self.wrong.setdefault("wrote", f"what was seen after {self.steps} steps was written to")

    def reset(self, *, seed=None, options=None):
        """Begin another game; return (observation, {})."""
        del options
        self.resets += 1
        if (self.resets == 1) != (seed is not None):
            got = "without a seed" if seed is None else f"with seed={seed}"
            self.wrong.setdefault("reset_seed", f"reset {self.resets} {got}")
        if self.place is not None:
            got = f"reset {self.resets} of a game that went on, with {self.since} of its steps made"
            self.wrong.setdefault("reset_early", got)
        if seed is not None:
            self.first_seed = seed if self.resets == 1 else self.first_seed
            self.random = np.random.default_rng(seed)
        known = len(self.table["starts"]) - (self.table["late"] if self.steps < self.LATE else 0)
        self.room = int(self.table["starts"][self.random.integers(known)])
        if self.was_cut:
            self.room = self.table["then"]
        self.waits = int(self.random.integers(*self.table["delay"]))
        self.place = self.waits_in if self.waits else self.room
        self.since, self.total, self.was_cut = 0, 0.0, False
        return self.see(self.place), {}

    def step(self, action):
        """Return (observation, reward, ended, cut off, {})."""
        if self.place is None:
            got = "step was called " + ("after the end of a game" if self.resets else "at first")
            self.wrong.setdefault("after_end", f"{got}, before reset")
            self.reset()
        n_actions = self.action_space.n
        is_int = isinstance(action, int | np.integer) and not isinstance(action, bool)
        if not is_int or not 0 <= action < n_actions:
            self.wrong.setdefault("action", f"{action!r}, of type {type(action).__name__}"[:60])
            action = 0
        here, self.since, self.steps = self.place, self.since + 1, self.steps + 1
        self.went.append((here, int(action)))
        if self.steps == self.halfway[0]:
            self.halfway[1]()
        if self.steps in self.looks:
            self.nodes.append(mg.memory.stats()["live_nodes"])
        reward, to = float(self.table["pays"][here, action]), int(self.table["leads"][here, action])
        if self.waits:
            self.waits -= 1
            to = self.waits_in if self.waits else self.room
        ended = to < 0
        self.was_cut = bool(self.random.random() < self.table["cuts"][here, action])
        self.total += reward
        self.place = None if ended or self.was_cut else to
        if self.place is None:
            self.returns.append(self.total)
            self.since = 0
        seen = self.see(int(self.table["shown"][here, action]) if ended else to)
        return seen, reward, ended, self.was_cut, {}


ACTED: list[tuple] = []  # the last training's act, what it was asked and what it answered


def ask_act(act, observations, n_actions):
    """Ask act about observations, there and back; return its answers, and what is wrong with it."""
    told = {"answers": [], "answer": "", "wrote_seen": False, "changed": 0, "nodes": []}
    there = [*range(len(observations))]
    for again in (False, True):
        for i in reversed(there) if again else there:
            seen = observations[i].copy()
            action = act(seen)
            is_int = isinstance(action, int | np.integer) and not isinstance(action, bool)
            if not is_int or not 0 <= action < n_actions:
                return told | {"answer": f"{action!r}, of type {type(action).__name__}"[:60]}
            told["wrote_seen"] = told["wrote_seen"] or not np.array_equal(seen, observations[i])
            if again:
                told["changed"] += told["answers"][i] != action
            else:
                told["answers"].append(int(action))
            if i in (there[0], there[-1]) and (not again or i == there[0]):
                told["nodes"].append(mg.memory.stats()["live_nodes"])
    return told


def balance_pole(mine, table, steps, seed, games, observations, disturb):
    """Learn a small game; report what was done with it, and what act answers then.

    `disturb` seeds the engine and NumPy beforehand, and the game until a reset seeds it, and sets
    the clock. The act of an earlier training is asked once more, too.
    """
    disturb_random(disturb)
    looks = (steps // 3, 2 * steps // 3, steps - 1)
    asked = Asked()
    game = Game(table, games + disturb, looks, (steps // 2, asked.begin_again))
    log = Games(game)
    with asked, another_day(mine.balance_pole, disturb):
        act = mine.balance_pole(game, steps, seed, log)
    game.look_at_the_last()
    told = {
        **log.told(),
        "asked": asked.told(),
        "nodes": game.nodes,
        "looks": list(game.looks),
        "used": game.steps,
        "returns": np.array(game.returns[:MOST_LOSSES]),
        "games": len(game.returns),
        "at": np.array(log.at[:MOST_LOSSES]).reshape(-1, 2),
        "went": np.array(game.went, np.int64).reshape(-1, 2),
        "wrong": game.wrong,
        "first_seed": game.first_seed,
        "act": "" if callable(act) else type(act).__name__,
        "answers": [],
        "other": [],
    }
    for earlier, seen, answers in ACTED:
        told["other"] += [earlier(x.copy()) == y for x, y in zip(seen, answers, strict=True)]
    ACTED.clear()
    if callable(act):
        told["played"] = ask_act(act, observations, game.action_space.n)
        if told["played"]["answers"] and not told["played"]["answer"]:
            ACTED.append((act, observations, told["played"]["answers"]))
    return told
