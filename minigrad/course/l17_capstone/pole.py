"""Capstone B: a pole on a cart, balanced by deep Q-learning."""

from __future__ import annotations

from functools import partial
from operator import lt
from typing import Any

import numpy as np

import minigrad
from minigrad.course.l17_capstone import lesson
from minigrad.course.l17_capstone.common import LIMITS, keeps_nothing, recorded, same_numbers
from minigrad.grader.compare import agree
from minigrad.grader.message import a_kind, counted, show
from minigrad.grader.tester import Tester

mg: Any = minigrad  # its names appear on first use
balance_pole = lesson.exercise(
    "balance_pole",
    difficulty=5,
    minutes=120,
    returns="act, a function of an observation that returns an action",
    needs="engine",
    is_open=True,
    limits=LIMITS,
    hints=(
        "Write the loop without learning first: reset, random actions, record the mean of the last "
        "20 returns. Then keep (seen, action, reward, new, ended) in arrays.",
        "A step of learning: 128 rows drawn from the arrays; wanted = reward + 0.99 * best of the "
        "target network at new, and reward alone where the game ended (not where it was cut off). "
        "gather takes the scores of the actions that were done; mg.huber compares.",
        "target = online.clone() every 500 steps; two hidden layers of 128; Adam with 5e-4, "
        "which falls to 0, in every second step; all at random at first, hardly anything from a "
        "fifth of the steps on; and stop once the last 20 games are good: deep Q-learning "
        "forgets.",
    ),
)
STEPS, SHORT = 4000, 400
END, WAITS = -1, 11  # where an action leads: the game has ended; the place where nothing is decided
RICH, POOR, FAR = 0, 1, 9  # FAR: so many numbers are seen where places lie far apart
# Per place what two of its actions do, the best one and one that lures: what it pays, where it
# leads, how often the game is cut off there, and which place is seen when it has ended.
PLACES = (
    ((3.0, END, 0.0, WAITS), (0.0, END, 0.0, WAITS)),  # RICH
    ((0.9, END, 0.0, WAITS), (0.0, END, 0.0, WAITS)),  # POOR
    ((2.0, END, 0.0, WAITS), (1.0, END, 0.0, RICH)),
    ((0.0, RICH, 0.0, WAITS), (2.0, END, 0.0, WAITS)),
    ((1.0, RICH, 0.75, WAITS), (3.3, END, 0.0, WAITS)),
    ((2.5, END, 0.0, WAITS), (-1.0, RICH, 0.0, WAITS)),
    ((0.9, POOR, 0.0, WAITS), (1.2, END, 0.0, WAITS)),
    ((1.9, END, 0.0, WAITS), (0.4, POOR, 0.0, WAITS)),
    ((1.5, END, 0.0, WAITS), (0.0, END, 0.0, WAITS)),  # the last three are first seen late
    ((1.5, END, 0.0, WAITS), (0.0, END, 0.0, WAITS)),
    ((1.5, END, 0.0, WAITS), (0.0, END, 0.0, WAITS)),
)
N_LATE = 3
BETTER = (
    "Do the recorded means rise? Is what was seen and done remembered as it was, and is the score "
    "of that action moved towards its reward and what is to come?"
)
REWARDS = "Is a reward learned as it comes: below 0, a fraction, and as large as it is?"
LATE = (
    "seen_late",
    "1.5 held for more than 0",
    "0, in a place first seen late",
    "Can the memory still take what happens late? And is it learned from?",
)
# Which mistake a place shows where another action is held for best: key, wanted, got, what to ask
# oneself. One mistake may show at several places: the first of them tells it best.
SHOWN = {
    5: ("rewards", "2.5 at once held for more than -1, and 3 in the next place", "the -1", REWARDS),
    7: ("rewards", "1.9 at once held for more than 0.4, and 0.9 later", "the 0.4", REWARDS),
    POOR: ("rewards", "0.9 held for more than 0", "0", REWARDS),
    2: (
        "end_goes_on",
        "2 and the end held for more than 1 and the end",
        "1 and the end; what is seen after that end looks like a place that pays 3",
        "What is the future of a game that has ended worth?",
    ),
    3: (
        "no_future",
        "0, and 3 in the next place, held for more than 2 at once",
        "2 at once",
        "How does the worth of the next place come to this one? Does the target hear what the "
        "network has learned, and what is done in the next place?",
    ),
    4: (
        "cut_off",
        "1, and 3 in the next place, held for more than 3.3 at once",
        "3.3 at once; after the 1 most games are cut off before the next place's 3",
        "A game that was cut off would have gone on. What is kept of it, and of its last place?",
    ),
    6: ("rewards", "0.9 twice held for more than 1.2 at once", "1.2 at once", REWARDS),
    8: LATE,
    9: LATE,
    10: LATE,
}
TOO_MUCH = (  # places 5 and 7 at once
    "too_much_future",
    "1.9 at once held for more than 0.4, and 0.9 in the next place",
    "the 0.4; and in another place -1, and 3 in the next one, for more than 2.5 at once",
    "What leads on is held for too much. Of which place is the best that follows: of the next one "
    "of this very step? Each step has its own.",
)
MOST_MISSED = 4  # of the places; beyond, no single one says what is wrong
LEAST_TRIES = 0.015  # of the steps; and a fifth of what another action gets: else it is untried
MOSTLY = 0.75  # a player at random with every second action comes to 2/3, of three actions


def learned(env, steps, seed, record, *, kind=""):
    """Play without having learned much, in order or with a common mistake."""
    draw = int(np.random.default_rng().integers(2**31)) if kind == "unseeded" else seed
    random, n_actions = np.random.default_rng(draw), env.action_space.n
    online = mg.nn.Linear(env.observation_space.shape[0], n_actions)
    total, returns, held, since = mg.variable(0.0), [], [], 0.0
    env.reset(**({} if kind == "no_seed" else {"seed": 0 if kind == "one_seed" else seed}))
    for _ in range(steps + (20 if kind == "too_many_steps" else 0)):
        action = int(random.integers(n_actions)) + (kind == "from_one")
        seen, reward, ended, cut, _ = env.step(action)
        value = online(mg.variable(seen[None])).max()
        total = total + value if kind == "sum" else value
        since += 1.0 if kind == "lengths" else reward
        if kind == "list":
            held.append(value)
        if kind == "in_place":
            seen *= 0.5
        if kind == "each_step":
            record(float(np.mean([*returns, since][-20:])))
        if ended or (cut and kind != "no_reset"):
            returns.append(since)
            mean = float(np.mean(returns[-20:]))
            all_games, best = float(np.mean(returns)), float(np.mean(sorted(returns)[-20:]))
            mean = {"last_game": since, "all_games": all_games, "best": best}.get(kind, mean)
            if kind not in ("silent", "each_step"):
                record(mg.variable(mean) if kind == "variable" else mean)
            if kind == "one_game":
                break
            if kind == "seed_again":
                env.reset(seed=seed)
            elif kind != "after_end":
                env.reset()
            if kind == "twice":
                env.reset()
            since = 0.0
    if kind == "unfinished":
        record(since)
    scores = {"scores": np.zeros(2), "float": 1.0, "text": "left", "none": None, "always": 1}
    if kind == "no_player":
        return None
    acts = []

    def act(observation):
        answer = int(observation[0] > 0)
        if kind == "in_turns":
            acts.append(observation)
            answer = len(acts) % 2
        if kind == "act_keeps":
            acts.append(online(mg.variable(observation[None])))
        if kind == "act_writes":
            observation *= 0.5
        return scores.get(kind, answer)

    return act


def dqn(env, steps, seed, record, *, kind=""):
    """Learn by deep Q-learning, in order or with a common mistake."""
    mg.manual_seed(seed)
    random, rows, returns = np.random.default_rng(seed), [], [0.0]
    n_seen, n_actions = env.observation_space.shape[0], int(env.action_space.n)
    net = mg.nn.Sequential(mg.nn.Linear(n_seen, 48), mg.nn.ReLU(), mg.nn.Linear(48, n_actions))
    target, optimizer = net.clone(), mg.optim.Adam(net, learning_rate=2e-3)
    least = {"chance": 1.0, "half": 0.5}.get(kind, 0.05)

    def act(seen):
        with mg.no_grad():
            scores = net(mg.variable(np.array(seen)[None])).numpy()[0]
        return int(scores.argmin() if kind == "worst" else scores.argmax())

    seen, _ = env.reset(seed=seed)
    for step in range(steps):
        is_drawn = random.random() < max(least, 1 - 3 * step / steps)
        drawn = int(random.integers(n_actions - (kind == "not_the_last")))
        action = drawn if is_drawn else act(seen)
        new, reward, ended, cut_off, _ = env.step(action)
        returns[-1] += reward
        over = ended or (cut_off and kind == "cut_is_an_end")
        over = 0.0 if kind == "no_end" else float(over)
        told = {"signs": np.sign(reward), "ints": int(reward), "no_debts": max(reward, 0.0)}
        row = seen, action, np.float32(told.get(kind, reward)), new, np.float32(over)
        if kind != "full" or len(rows) < 150:
            rows.append(row)
        seen = new
        if ended or cut_off:
            record(float(np.mean(returns[-20:])))
            returns.append(0.0)
            seen, _ = env.reset()
        if step >= 100 and step % 2 == 0:
            some = [rows[i] for i in random.integers(0, len(rows), 32)]
            here, did, got, there, over = (np.array(one) for one in zip(*some, strict=True))
            with mg.no_grad():
                best = target(mg.variable(there)).numpy()
            best = best.mean(axis=1) if kind == "mean" else best.max(axis=1)
            best = np.full_like(best, best.max()) if kind == "best_of_all" else best
            wanted = got + (0.0 if kind == "short_sighted" else 0.97) * (1 - over) * best
            if kind == "nothing_at_the_end":
                wanted = wanted * (1 - over)
            scores = mg.gather(net(mg.variable(here)), mg.variable(did[:, None]), 1).squeeze(1)
            mg.huber(scores, mg.variable(wanted.astype(np.float32))).backward()
            optimizer.step()
            if kind != "kept_gradients":
                optimizer.zero_grad()
        if step % 100 == 0 and kind == "rebound":
            target = net
        elif step % 100 == 0 and (kind != "once" or step == steps // 4):
            target = target if kind == "never" else net.clone()
    return act


@balance_pole.mistake("no_network")
def rule(env, steps, seed, record):
    """Push to the side to which it falls."""
    returns, since = [], 0.0
    seen, _ = env.reset(seed=seed)
    for _ in range(steps):
        seen, reward, ended, cut, _ = env.step(int(sum(seen) > 0))
        since += reward
        if ended or cut:
            returns.append(since)
            record(float(np.mean(returns[-20:])))
            since = 0.0
            seen, _ = env.reset()
    return lambda observation: int(sum(observation) > 0)


for _key, _kinds in {
    "after_end": ("after_end", "no_reset"),
    "reset_early": ("twice",),
    "reset_seed": ("no_seed", "one_seed", "seed_again"),
    "action": ("from_one",),
    "wrote": ("in_place", "act_writes"),
    "too_many_steps": ("too_many_steps",),
    "no_player": ("no_player",),
    "answer": ("scores", "float", "text", "none"),
    "act_changes": ("in_turns",),
    "no_games": ("one_game",),
    "record_kind": ("variable",),
    "not_recorded": ("silent",),
    "record_when": ("each_step", "unfinished"),
    "wrong_mean": ("last_game", "all_games", "best", "lengths"),
    "grows": ("list", "sum", "act_keeps"),
    "not_repeated": ("unseeded",),
    "no_better": ("always", ""),
}.items():
    for _kind in _kinds:
        balance_pole.mistake(_key)(partial(learned, kind=_kind))
for _key, _kinds in {
    "target_shares": ("rebound",),
    "target_stale": ("never", "once"),
    "kept_gradients": ("kept_gradients",),
    "end_goes_on": ("no_end",),
    "untried": ("not_the_last",),
    "cut_off": ("cut_is_an_end",),
    "no_future": ("short_sighted", "mean"),
    "rewards": ("signs", "ints", "no_debts"),
    "too_much_future": ("best_of_all",),
    "seen_late": ("full",),
    "explores": ("chance", "half"),
    "no_better": ("worst", "nothing_at_the_end"),
}.items():
    for _kind in _kinds:
        balance_pole.mistake(_key)(partial(dqn, kind=_kind))


def small_game(
    random: np.random.Generator, n_seen: int, n_actions: int, waits: tuple[int, int]
) -> dict:
    """Return the table of a game (`engine_driver.Game`): codes and the order of actions are drawn.

    With FAR numbers the places are far apart, and yet two and two differ by size alone: those that
    cuts or rounds what it sees takes them for one.
    """
    n = len(PLACES) + 1
    shape = n, n_actions
    table = {
        "codes": random.normal(size=(n, n_seen)),
        "pays": np.zeros(shape),
        "leads": np.full(shape, END),
        "cuts": np.zeros(shape),
        "shown": np.full(shape, WAITS),
        "starts": [
            *random.permutation(len(PLACES) - N_LATE).tolist(),
            *range(len(PLACES))[-N_LATE:],
        ],
        "late": N_LATE,
        "then": POOR,
        "delay": waits,
        "asks": int(random.integers(2**31)),
        "best": np.zeros(n, int),
    }
    turn = int(random.integers(n_actions))
    for place, actions in enumerate(PLACES):
        best = (place + turn) % n_actions  # those that lie in one line differ in it
        others = [at for at in random.permutation(n_actions) if at != best]
        table["best"][place] = best
        for at, values in zip((best, others[0]), actions, strict=True):
            for name, value in zip(("pays", "leads", "cuts", "shown"), values, strict=True):
                table[name][place, at] = value
    table["pays"][WAITS], table["cuts"][WAITS] = 0.25, 0.05
    if n_seen == FAR:
        axes = random.permutation(n_seen)[[0, 1, 2, 3, 4, 5, 6, 5, 6, 7, 8]]
        table["codes"] = np.zeros((n, n_seen))
        sizes = [1.5, 1.5, 1.5, 1.5, 1.5, 1.0, 0.6, 3.0, 1.4, 1.5, 1.5]
        table["codes"][np.arange(n - 1), axes] = sizes
    return table


KEPT_RULES = {  # what the game noted: key, what was wanted, what to ask oneself
    "after_end": (
        "a reset after each game that has ended or was cut off",
        "Both end a game: ended or cut_off. What begins the next one?",
    ),
    "reset_early": (
        "a reset at first and after the end of a game, and at no other time",
        "Which game is begun here and never played to its end?",
    ),
    "reset_seed": (
        "env.reset(seed=seed) at first, and env.reset() from then on",
        "Which is to be repeated with the seed: the whole training, or each of its games?",
    ),
    "action": (
        "env.step(action) with an int from 0, below env.action_space.n",
        "Which actions can come of your draws, and which of the network?",
    ),
    "wrote": (
        "observations that stay as the game handed them out",
        "x *= 2 and x -= 1 write into the game's own array. What makes a new one?",
    ),
}


def training(
    t: Tester, game: dict, steps: int, seed: int, disturb: int = 1, per_place: int = 1
) -> Any:
    """Let the learner's function learn a small game; fail if it does not keep to its rules."""
    n_seen, n_actions = game["codes"].shape[1], game["pays"].shape[1]
    given = (
        f"balance_pole(env, steps={steps}, seed={seed}, record), env a smaller game: it shows "
        f"{counted(n_seen, 'number')} and has {n_actions} actions"
    )
    random = np.random.default_rng(game["asks"])  # a game is asked about by the same observations
    order = random.permutation(len(PLACES) * per_place)
    seen = np.repeat(game["codes"][:-1], per_place, axis=0)
    seen = (seen + random.uniform(-0.05, 0.05, seen.shape)).astype(np.float32)
    games = int(t.random.integers(1000))
    told = t.drive("balance_pole", game, steps, seed, games, seen[order], disturb, given=given)
    if told["used"] and told["first_seed"] != seed:
        told["wrong"].setdefault("reset_seed", f"reset 1 with seed={told['first_seed']}")
    for key, (wanted, attempt) in KEPT_RULES.items():
        if key in told["wrong"]:
            t.fail(key, wanted, told["wrong"][key], attempt)
    if told["used"] > steps:
        t.fail(
            "too_many_steps",
            f"env.step called {steps} times at most",
            counted(told["used"], "time"),
            "Count the steps, and not the games.",
        )
    if told["act"]:
        t.fail(
            "no_player",
            "act, a function of an observation",
            a_kind(told["act"]),
            "Define a function inside yours, and return it: return act",
        )
    plays(t, told, n_actions)
    told["answers"] = np.empty(len(order), int)
    told["answers"][order] = told["played"]["answers"]
    return told


def plays(t: Tester, told: Any, n_actions: int) -> None:
    """Fail if act's answers are no actions, or depend on more than the observation."""
    played = told["played"]
    if played["answer"]:
        t.fail(
            "answer",
            f"act(observation): an int, from 0 to {n_actions - 1}",
            played["answer"],
            "Which action has the largest score? Its place is an int.",
        )
    if played["wrote_seen"]:
        wanted, attempt = KEPT_RULES["wrote"]
        t.fail("wrote", wanted, "act wrote to the one that it was called with", attempt)
    asked = len(played["answers"])
    if played["changed"]:
        t.fail(
            "act_changes",
            "the same action whenever act is called with the same observation",
            f"another one the second time, for {played['changed']} of {asked} observations",
            "What else does act depend on: chance, earlier calls, a layer that trains?",
        )
    if not all(told["other"]):
        t.fail(
            "act_changes",
            "the same action of an act when another network has been trained meanwhile",
            f"another one for {told['other'].count(False)} of {len(told['other'])} observations",
            "Where is the network that act asks: with this training, or with all of them?",
        )
    if all(map(lt, played["nodes"], played["nodes"][1:])):
        t.fail(
            "grows",
            "as many live nodes after act was called as before",
            f"{played['nodes'][-1] - played['nodes'][0]} more after {2 * asked} calls",
            "Who holds the graphs of earlier calls?",
        )


def means_of(t: Tester, told: Any, least: int = 5) -> None:
    """Fail unless each game's end, and nothing else, was recorded, with the mean of the last 20."""
    if told["games"] < least:
        t.fail(
            "no_games",
            f"games one after the other, up to {SHORT} steps in all",
            f"{counted(told['games'], 'finished game')} in {counted(told['used'], 'step')}",
            "What ends your loop: the end of a game, or that of all steps?"
            if told["used"]
            else "Which game is it that your loop steps: env itself?",
        )
    recorded(t, told, least, "mean return")
    for call, (n_over, goes_on) in enumerate(told["at"].tolist(), 1):
        if n_over != call or goes_on:
            t.fail(
                "record_when",
                f"call {call} of record at the end of game {call}, before game {call + 1}",
                f"call {call} after {counted(n_over, 'finished game')}"
                + (", in the middle of the next one" if goes_on else ""),
                "When is a game over? By ended and by cut_off; a game that goes on has no return.",
            )
    if told["steps"] != told["games"] or len(told["losses"]) != len(told["at"]):
        t.fail(
            "record_when",
            f"record called {counted(told['games'], 'time')}, once a finished game",
            counted(told["steps"], "time"),
            "Which games are not recorded, or twice?",
        )
    for i, got in enumerate(told["losses"].tolist()):
        right = float(np.mean(told["returns"][max(0, i - 19) : i + 1]))
        if not agree(got, right, rtol=1e-6):
            last = told["returns"][max(0, i - 2) : i + 1].tolist()
            t.fail(
                "wrong_mean",
                f"after game {i + 1} the mean return of the last {min(i + 1, 20)}: {right:.5g}",
                f"{got:.5g}; the last returns are {show(last)}",
                "Which games are in the mean, and what is a return: the sum of which rewards?",
            )


@balance_pole.check(points=2)
def rules(t: Tester) -> None:
    """It keeps to the rules of the game, however few steps there are; what it returns plays it."""
    for n_seen, n_actions, steps in ((1, 3, SHORT), (4, 2, 1), (2, 4, 3)):
        waits = (0, 9) if steps == SHORT else (20, 40)
        game = small_game(t.random, n_seen, n_actions, waits)
        told = training(t, game, steps, int(t.random.integers(1, 100)))
        means_of(t, told, least=0 if steps < SHORT else 5)


@balance_pole.check(points=2)
def means(t: Tester) -> None:
    """Each game's end is recorded, with the mean return of the last 20, and no graph is kept."""
    told = training(t, small_game(t.random, 5, 4, (0, 9)), SHORT, 4)
    means_of(t, told)
    keeps_nothing(t, told, told["looks"])


@balance_pole.check(points=2)
def seeds(t: Tester) -> None:
    """A seed gives the same training to the last bit, whatever was trained before."""
    game, other = small_game(t.random, 3, 2, (0, 9)), int(t.random.integers(10, 90))
    runs = [training(t, game, SHORT, one, k) for k, one in enumerate((0, other, 0))]
    for told in runs:
        means_of(t, told)
    first, _, again = runs
    first["actions"], again["actions"] = first["went"], again["went"]
    for what in ("losses", "actions", "answers"):
        same_numbers(t, first, again, None, (0, other), what)


def stands_still(t: Tester, asked: dict[str, int]) -> None:
    """Fail if the values to be reached come from the memory that learns, or pass gradients on.

    A target that is no mg.nn.Module is not seen.
    """
    twice = not asked["others"] and asked["steps"] and asked["batches"] > 1.5 * asked["steps"]
    if twice or asked["partly"]:
        got = "one network, asked about both" if twice else "a target with some of its memory"
        t.fail(
            "target_shares",
            "a target network with memory of its own, which stands still while the other learns",
            got,
            "An optimizer's step writes into the online network's memory. Which call gives the "
            "target another: target = online, or online.clone()?",
        )
    if asked["flows"]:
        t.fail(
            "target_gradients",
            "a target network without gradients",
            "gradients that backward() brought to its parameters",
            "What the target says is a number to be reached, not one to be moved. online.clone() "
            "takes no gradients; copy.deepcopy does, unless it is asked under mg.no_grad().",
        )


def tries_all(t: Tester, told: Any, game: dict) -> None:
    """Fail if an action is hardly tried where it is not the best: chance does not come to it."""
    went = told["went"]
    others = went[went[:, 1] != game["best"][went[:, 0]]]
    tries = np.bincount(others[:, 1], minlength=game["pays"].shape[1]).tolist()
    few, most = min(tries), max(tries)
    if few < min(LEAST_TRIES * len(went), most / 5):
        t.fail(
            "untried",
            "each action tried about as often as another, where it is not the best",
            f"action {tries.index(few)} there {counted(few, 'time')}, "
            f"action {tries.index(most)} {counted(most, 'time')}",
            "Which actions can come of your draws: the first, and the last?",
        )


def is_lured(game: dict, place: int, answers: np.ndarray) -> bool:
    """Return whether most answers in a place do what lures there, as `SHOWN` says of it."""
    pays, leads = PLACES[place][1][:2]
    does = (game["pays"][place, answers] == pays) & (game["leads"][place, answers] == leads)
    return bool(does.mean() > 0.5)


@balance_pole.check(points=6)
def learns(t: Tester) -> None:
    """With a target network that stands still it learns a small game, at each of its places."""
    game = small_game(t.random, FAR, 3, (0, 1))
    told = training(t, game, STEPS, 5, per_place=5)
    asked = told["asked"]
    stands_still(t, asked)
    if asked["kept"]:
        t.fail(
            "kept_gradients",
            "each step by the gradient of its own loss",
            f"gradients of the step before still there at {counted(asked['kept'], 'backward()')}",
            "backward() adds to what is there. What takes it away, and when?",
        )
    tries_all(t, told, game)
    answers = told["answers"].reshape(len(PLACES), -1)
    missed = np.flatnonzero((answers == game["best"][:-1, None]).mean(axis=1) <= 0.5).tolist()
    if asked["steps"] > 10 and asked["others"] and asked["states"] < 2:
        t.fail(
            "target_stale",
            "a target network that is told from time to time what the network has learned",
            "the same numbers in its memory through the second half of the training",
            "When is the target copied anew: how often, and to the end?",
        )
    lured = [at for at in SHOWN if at in missed and is_lured(game, at, answers[at])]
    if {5, 7} <= set(lured):
        t.fail(*TOO_MUCH)
    if lured and len(missed) <= MOST_MISSED and RICH not in missed:
        t.fail(*SHOWN[lured[0]])
    if missed:
        t.fail(
            "no_better",
            f"in each of {len(PLACES)} places the action that is worth most",
            f"in {len(PLACES) - len(missed)} of them",
            BETTER,
        )
    means_of(t, told)
    keeps_nothing(t, told, told["looks"])
    last = told["went"][-max(len(told["went"]) // 10, 1) :]
    share = float((game["best"][last[:, 0]] == last[:, 1]).mean()) if len(last) else 0.0
    if not share >= MOSTLY:
        t.fail(
            "explores",
            f"in the last tenth of the steps the best action nearly always, {MOSTLY:.0%} at least",
            f"{share:.0%}",
            "How much is left to chance in the end? Does that fall with the share of steps made?",
        )
