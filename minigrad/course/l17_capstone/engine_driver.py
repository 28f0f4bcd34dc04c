"""Runs the trainings of lesson 17 in the learner's process; holds no expected values."""

import gc
import weakref
from typing import Any

import numpy as np

import minigrad

mg: Any = minigrad  # its names appear on first use
MOST_LOSSES = 2000
LOOKS = (5, 25)  # the steps at which live nodes are counted; the first have all kernels compiled


def weights():
    """Return the Variables that gradients arrive at: whatever learns has some alive."""
    everything = gc.get_objects()
    found = (one for one in everything if issubclass(type(one), mg.Variable))
    return [one for one in found if one.requires_grad]


def version_of(weight):
    """Return what changes when a weight is written to; None of one that another has replaced."""
    return None if weight is None else (id(weight.array.storage), weight.array.storage.version)


class Cut(BaseException):
    """Raised by record to cut a training off, as Ctrl-C does."""


class Log:
    """What a training records; looks at some of its steps what is alive, and cuts off at `cut`."""

    def __init__(self, asked=None, cut=0):
        self.losses, self.kinds, self.nodes, self.has_weights = [], set(), [], False
        self.asked, self.cut, self.states, self.saved = asked, cut, [], 0

    def __call__(self, loss):
        self.kinds.add(type(loss).__name__)
        number = isinstance(loss, float | int | np.floating | np.integer)
        self.losses.append(float(loss) if number else float("nan"))
        if len(self.losses) == LOOKS[0]:
            self.has_weights = bool(weights())
        if len(self.losses) in LOOKS:
            self.nodes.append(mg.memory.stats()["live_nodes"])
        if self.asked and len(self.losses) in (1, *LOOKS):
            self.states.append((len(self.losses), self.asked.states()))
            self.saved = max(self.saved, mg.memory.stats()["saved_bytes"])
        if len(self.losses) == self.cut:
            raise Cut

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


EARLIER: list[tuple] = []  # the last training's read, images, and the labels that it gave them


def read_all(read, batches):
    """Read batches, those of a shape in one array; return the labels, and what is wrong with it."""
    rooms, found, kept, wrote = {}, [], [], False
    for one in batches:
        room = rooms.setdefault(one.shape, np.empty_like(one))
        room[...] = one
        found.append(read(room))
        kept.append(np.copy(found[-1]) if isinstance(found[-1], np.ndarray) else found[-1])
        wrote = wrote or not np.array_equal(room, one)
    pairs = [pair for pair in zip(found, kept, strict=True) if isinstance(pair[0], np.ndarray)]
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
    with Asked() as asked:
        log, given = Log(asked, cut), (images.copy(), labels.copy())
        its_form = form(given)
        try:
            read = mine.read_digits(*given, seed, log)
        except Cut:
            return {**log.told(), "was_cut": True}
    before = mg.memory.stats()["live_nodes"]
    told = {
        **log.told(),
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
        return super().told() | {"moved": self.moved, "still": still, "weights": len(self.begun)}


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
    gradient has arrived, versions that a call recorded].
    """

    def __init__(self):
        self.networks, self.depth = {}, 0

    def __enter__(self):
        self.call = mg.nn.Module.__call__

        def call(module, *args, **kwargs):
            self.depth += 1
            try:
                out = self.call(module, *args, **kwargs)
            finally:
                self.depth -= 1
            if not self.depth:
                self.note(module, out)
            return out

        mg.nn.Module.__call__ = call
        return self

    def __exit__(self, *_):
        mg.nn.Module.__call__ = self.call

    def note(self, module, out):
        """Note a call of a network."""
        held = list(module.parameters())
        if not held or not isinstance(out, mg.Variable):
            return
        memory = frozenset(id(one.array.storage) for one in held)
        row = self.networks.setdefault(memory, [0, 0, set(), False, set()])
        row[0] += out.ndim > 1 and out.shape[0] > 1
        row[1] += out.requires_grad
        row[2].add(held[0].array.storage.version)
        row[3] = row[3] or any(one.grad is not None for one in held)
        if out.requires_grad:
            row[4].add(held[0].array.storage.version)

    def states(self):
        """Return how many states of its weights the network that learns has been asked in."""
        return max((len(row[4]) for row in self.networks.values()), default=0)

    def told(self):
        """Return as plain data how networks were asked, beside the one that changes most often."""
        learners = [item for item in self.networks.items() if item[1][1]]
        told = {"steps": 0, "batches": 0, "others": 0, "partly": 0, "flows": 0}
        if not learners:
            return told
        memory, (batches, _, versions, *_) = max(learners, key=lambda item: len(item[1][2]))
        told |= {"steps": len(versions), "batches": batches}
        for its, (_, recorded, changes, has_gradients, _) in self.networks.items():
            told["others"] += not its & memory
            told["partly"] += bool(its & memory and its - memory and not recorded)
            stands = not its & memory and 3 * len(changes) <= recorded
            told["flows"] += stands and has_gradients
        return told


class Space:
    """What a game says of its observations or actions, as gymnasium's spaces do."""

    def __init__(self, shape=(), n=0):
        self.shape, self.n = shape, n


class Game:
    """A stick on a hand, in one plane: a smaller game than CartPole, with the same calls.

    An observation is (lean, speed), a float32 array; action 0 or 1 pushes left or right. The stick
    has fallen once it leans by more than 1; a game is cut off after MOST steps. Counts what was
    done with it, and the live nodes at three of the steps: they grow once when learning begins.
    """

    MOST = 60

    def __init__(self, seed, looks):
        self.observation_space, self.action_space = Space((2,)), Space((), 2)
        self.random, self.looks = np.random.default_rng(seed), looks
        self.steps, self.since, self.returns, self.nodes, self.wrong = 0, -1, [], [], ""

    def reset(self, seed=None, options=None):
        """Begin another game; return (observation, {})."""
        del options
        if seed is not None:
            self.random = np.random.default_rng(seed)
        self.state = self.random.uniform(-0.1, 0.1, 2)
        self.since = 0
        return self.state.astype(np.float32), {}

    def step(self, action):
        """Return (observation, reward, fallen, cut off, {})."""
        if self.since < 0 or self.since is None:
            self.wrong = self.wrong or "step was called after the end of a game, before reset"
            self.reset()
        if not isinstance(action, int | np.integer) or isinstance(action, bool):
            self.wrong = self.wrong or f"an action was a {type(action).__name__}"
        lean, speed = self.state
        speed += 0.15 * lean + (0.1 if action == 1 else -0.1)
        self.state = np.array([lean + 0.2 * speed, speed])
        self.since += 1
        self.steps += 1
        if self.steps in self.looks:
            self.nodes.append(mg.memory.stats()["live_nodes"])
        fallen, cut = bool(abs(self.state[0]) > 1), self.since >= self.MOST
        observation = self.state.astype(np.float32)
        if fallen or cut:
            self.returns.append(float(self.since))
            self.since = -1
        return observation, 1.0, fallen, cut and not fallen, {}


def balance_pole(mine, steps, seed, games, plays, disturb):
    """Learn a small game; report what was done with it, and how games go that are then played.

    `disturb` seeds the engine and NumPy beforehand, and the game until a reset seeds it.
    """
    disturb_random(disturb)
    looks = (steps // 3, 2 * steps // 3, steps - 1)
    log, game, asked = Log(), Game(games + disturb, looks), Asked()
    with asked:
        act = mine.balance_pole(game, steps, seed, log)
    told = {
        **log.told(),
        "asked": asked.told(),
        "nodes": game.nodes,
        "looks": list(game.looks),
        "used": game.steps,
        "returns": game.returns[-20:],
        "games": len(game.returns),
        "wrong": game.wrong,
        "act": "" if callable(act) else type(act).__name__,
        "played": [],
        "answer": "",
    }
    fresh = Game(games + 1, ())
    for _ in range(plays if callable(act) else 0):
        (seen, _), is_over = fresh.reset(), False
        while not is_over:
            action = act(seen)
            if not isinstance(action, int | np.integer) or action not in (0, 1):
                told["answer"] = repr(action)[:60]
                return told
            seen, _, fallen, cut, _ = fresh.step(int(action))
            is_over = fallen or cut
        told["played"].append(fresh.returns[-1])
    return told
