"""Small steps as people write them who come from PyTorch: losses of RL, masks, indices, schedules.

`STEPS` holds functions of a numpy Generator: each makes (step, [what it may change], [arguments of
a call, ...]) for `twins.check`. Arrays among the arguments become Variables.
"""

import math

import numpy as np

import minigrad as mg
from minigrad import nn

STEPS = {}
N, C = 6, 4


def kind(function):
    """Adds a kind of step under its name."""
    STEPS[function.__name__] = function
    return function


def floats(rng, *shape):
    """Normal float32 numbers."""
    return rng.standard_normal(shape).astype(np.float32)


def parameter(rng, *shape):
    """A leaf that requires gradients."""
    return mg.variable(floats(rng, *shape), requires_grad=True)


def trained(loss, w):
    """The loss and the gradient of w, which is then dropped."""
    loss.backward()
    gradient, w.grad = w.grad.detach(), None
    return loss.detach(), gradient


# -- picking by labels and actions -----------------------------------------------------------------


@kind
def negative_log_likelihood_by_range_and_labels(rng):
    w = parameter(rng, 3, C)

    def step(x, labels):
        logp = mg.log_softmax(x @ w)
        return trained(-logp[range(N), labels].mean(), w)

    return step, [w], [(floats(rng, N, 3), rng.integers(0, C, N)) for _ in range(3)]


@kind
def negative_log_likelihood_by_arange(rng):
    w = parameter(rng, 3, C)

    def step(x, labels):
        logp = mg.log_softmax(x @ w)
        return trained(-logp[mg.arange(N), labels].mean(), w)

    return step, [w], [(floats(rng, N, 3), rng.integers(0, C, N)) for _ in range(3)]


@kind
def negative_log_likelihood_by_numpys_arange(rng):
    w = parameter(rng, 3, C)

    def step(x, labels):
        logp = mg.log_softmax(x @ w)
        return trained(-logp[np.arange(len(labels)), labels].mean(), w)

    return step, [w], [(floats(rng, N, 3), rng.integers(0, C, N)) for _ in range(3)]


@kind
def q_learning_gathers_actions(rng):
    w = parameter(rng, 3, C)

    def step(x, actions, rewards, after, done):
        q = mg.gather(x @ w, actions[:, None], 1)[:, 0]
        best = (after @ w).detach().max(axis=1)
        target = rewards + 0.9 * best * (1.0 - done)
        return trained(((q - target) ** 2).mean(), w)

    def arguments():
        done = (rng.random(N) < 0.3).astype(np.float32)
        actions = rng.integers(0, C, N)
        return floats(rng, N, 3), actions, floats(rng, N), floats(rng, N, 3), done

    return step, [w], [arguments() for _ in range(3)]


@kind
def clipped_policy_ratio(rng):
    w = parameter(rng, 3, C)

    def step(x, actions, old, advantages):
        logp = mg.log_softmax(x @ w)[mg.arange(N), actions]
        ratio = (logp - old).exp()
        clipped = ratio.clip(0.8, 1.2)
        return trained(-mg.minimum(ratio * advantages, clipped * advantages).mean(), w)

    return (
        step,
        [w],
        [
            (floats(rng, N, 3), rng.integers(0, C, N), floats(rng, N), floats(rng, N))
            for _ in range(3)
        ],
    )


@kind
def reinforce_with_entropy(rng):
    w = parameter(rng, 3, C)

    def step(x, actions, returns, beta):
        logp = mg.log_softmax(x @ w)
        entropy = -(logp.exp() * logp).sum(axis=1).mean()
        return trained(-(logp[range(N), actions] * returns).mean() - beta * entropy, w)

    return (
        step,
        [w],
        [
            (floats(rng, N, 3), rng.integers(0, C, N), floats(rng, N), 0.1 * 0.9**t)
            for t in range(5)
        ],
    )


@kind
def discounted_returns_backwards_in_time(rng):
    def step(rewards, gamma):
        returns, running = mg.zeros_like(rewards), 0.0
        for t in reversed(range(N)):
            running = rewards[t] + gamma * running
            returns[t] = running
        return (returns - returns.mean()) / (returns.var(ddof=0) + 1e-6).sqrt()

    return step, [], [(floats(rng, N), 0.9 + 0.01 * t) for t in range(4)]


@kind
def bandit_counts_of_the_action_taken(rng):
    counts, totals = mg.zeros((C,)), mg.zeros((C,))

    def step(action, reward):
        counts[action] += 1.0
        totals[action] += reward
        return totals / mg.maximum(counts, 1.0)

    return step, [counts, totals], [(np.array(k % C), floats(rng)) for k in range(5)]


@kind
def embedding_by_computed_ids(rng):
    table = parameter(rng, 8, 3)

    def step(x):
        ids = (x.abs() * 2.0).floor().to("int64")
        ids = mg.minimum(ids, 7)
        return trained((mg.embedding(table, ids) ** 2).sum() + table[ids].sum(), table)

    return step, [table], [(floats(rng, 2, 5),) for _ in range(3)]


@kind
def embedding_by_argmax_of_logits(rng):
    table = parameter(rng, C, 3)

    def step(x):
        return trained((table[x.argmax(axis=1)] * table[x.argmin(axis=1)]).sum(), table)

    return step, [table], [(floats(rng, N, C),) for _ in range(3)]


@kind
def one_hot_by_rows_of_eye(rng):
    w = parameter(rng, 3, C)

    def step(x, labels):
        wanted = mg.eye(C)[labels]
        return trained(-(wanted * mg.log_softmax(x @ w)).sum(axis=1).mean(), w)

    return step, [w], [(floats(rng, N, 3), rng.integers(0, C, N)) for _ in range(3)]


@kind
def label_smoothing(rng):
    w, smooth = parameter(rng, 3, C), 0.1

    def step(x, labels):
        logp = mg.log_softmax(x @ w)
        wanted = mg.full((N, C), smooth / (C - 1))
        wanted[mg.arange(N), labels] = 1.0 - smooth
        return trained(-(wanted * logp).sum(axis=1).mean(), w)

    return step, [w], [(floats(rng, N, 3), rng.integers(0, C, N)) for _ in range(3)]


@kind
def class_balanced_weights(rng):
    w, weights = parameter(rng, 3, C), np.array([0.5, 1.0, 2.0, 4.0], np.float32)

    def step(x, labels):
        each = mg.variable(weights)[labels]
        logp = mg.log_softmax(x @ w)[range(N), labels]
        return trained(-(each * logp).sum() / each.sum(), w)

    return step, [w], [(floats(rng, N, 3), rng.integers(0, C, N)) for _ in range(3)]


@kind
def class_means_by_scattering(rng):
    def step(x, labels):
        sums, counts = mg.zeros((C, 3)), mg.zeros((C,))
        wide = labels[:, None].expand(N, 3)
        sums = mg.scatter_add(sums, wide, x, 0)
        counts = mg.scatter_add(counts, labels, mg.ones((N,)), 0)
        return sums / mg.maximum(counts, 1.0)[:, None]

    return step, [], [(floats(rng, N, 3), rng.integers(0, C, N)) for _ in range(3)]


@kind
def focal_loss_of_the_true_class(rng):
    w = parameter(rng, 3, C)

    def step(x, labels, gamma):
        p = mg.softmax(x @ w)[mg.arange(N), labels]
        return trained((-((1.0 - p) ** gamma) * p.log()).mean(), w)

    return step, [w], [(floats(rng, N, 3), rng.integers(0, C, N), g) for g in (2.0, 1.5, 1.0, 2.5)]


@kind
def accuracy_per_class(rng):
    def step(logits, labels):
        hit = (logits.argmax(axis=1) == labels).to("float32")
        rows = (labels[:, None] == mg.arange(C)).to("float32")
        return (rows * hit[:, None]).sum(axis=0) / mg.maximum(rows.sum(axis=0), 1.0)

    return step, [], [(floats(rng, N, C), rng.integers(0, C, N)) for _ in range(3)]


# -- masks -----------------------------------------------------------------------------------------


@kind
def causal_attention_by_numpys_tril(rng):
    w, mask = parameter(rng, C, C), np.tril(np.ones((N, N), bool))

    def step(x):
        scores = (x @ w) @ x.T / math.sqrt(C)
        scores = mg.where(mg.variable(mask), scores, -math.inf)
        return trained((mg.softmax(scores) @ x).sum(), w)

    return step, [w], [(floats(rng, N, C),) for _ in range(3)]


@kind
def causal_attention_by_writing_where_a_mask_says(rng):
    w, mask = parameter(rng, C, C), np.triu(np.ones((N, N), bool), 1)

    def step(x):
        scores = (x @ w) @ x.T
        scores[mask] = -math.inf
        return trained((mg.softmax(scores) @ x).sum(), w)

    return step, [w], [(floats(rng, N, C),) for _ in range(3)]


@kind
def padding_mask_of_lengths(rng):
    w = parameter(rng, 3, C)

    def step(x, lengths):
        mask = mg.arange(5)[None, :] < lengths[:, None]
        h = mg.where(mask[..., None], (x @ w).tanh(), 0.0)
        return trained((h.sum(axis=1) / lengths[:, None].to("float32")).sum(), w)

    return step, [w], [(floats(rng, N, 5, 3), rng.integers(1, 6, N)) for _ in range(3)]


@kind
def padding_is_zeroed_in_place(rng):
    w = parameter(rng, 3, C)

    def step(x, lengths):
        h = x @ w
        h[mg.arange(5)[None, :] >= lengths[:, None]] = 0.0
        return trained((h * h).sum(), w)

    return step, [w], [(floats(rng, N, 5, 3), rng.integers(1, 6, N)) for _ in range(3)]


@kind
def last_state_of_each_length(rng):
    w = parameter(rng, 3, C)

    def step(x, lengths):
        h = x @ w
        return trained((h[mg.arange(N), lengths - 1] ** 2).sum(), w)

    return step, [w], [(floats(rng, N, 5, 3), rng.integers(1, 6, N)) for _ in range(3)]


@kind
def loss_that_ignores_an_index(rng):
    w = parameter(rng, 3, C)

    def step(x, labels):
        is_there = labels != -1
        safe = mg.where(is_there, labels, 0)
        each = mg.where(is_there, -mg.log_softmax(x @ w)[range(N), safe], 0.0)
        return trained(each.sum() / mg.maximum(is_there.sum(), 1).to("float32"), w)

    return step, [w], [(floats(rng, N, 3), rng.integers(-1, C, N)) for _ in range(3)]


@kind
def relu_by_a_mask_of_itself(rng):
    w = parameter(rng, 3, C)

    def step(x):
        h = x @ w
        h[h < 0] = 0.0
        return trained((h**2).sum(), w)

    return step, [w], [(floats(rng, N, 3),) for _ in range(3)]


@kind
def masked_rows_get_a_learned_token(rng):
    token = parameter(rng, 3)

    def step(x, hidden):
        h = x * 1.0
        h[hidden] = token
        return trained((h**2).sum(), token)

    return step, [token], [(floats(rng, N, 3), rng.random(N) < 0.5) for _ in range(3)]


@kind
def rows_that_a_fixed_mask_picks(rng):
    w, mask = parameter(rng, 3, C), np.array([True, False] * 3)

    def step(x):
        return trained((x[mask] @ w).sum() + (x[~mask] @ w).exp().mean(), w)

    return step, [w], [(floats(rng, N, 3),) for _ in range(3)]


@kind
def top_2_by_repeated_argmax(rng):
    def step(x):
        rest, rows, found = x * 1.0, mg.arange(N), []
        for _ in range(2):
            best = rest.argmax(axis=1)
            found.append(x[rows, best])
            rest[rows, best] = -math.inf
        return mg.stack(found, axis=1), mg.where(rest == -math.inf, x, 0.0)

    return step, [], [(floats(rng, N, C),) for _ in range(3)]


@kind
def dropout_by_hand(rng):
    w = parameter(rng, 3, C)

    def step(x, p):
        keep = (mg.rand((N, C)) >= p).to("float32") / (1.0 - p)
        return trained(((x @ w) * keep).sum(), w)

    return step, [w], [(floats(rng, N, 3), p) for p in (0.5, 0.4, 0.3, 0.25)]


@kind
def huber_loss(rng):
    w = parameter(rng, 3)

    def step(x, y, delta):
        error = x @ w - y
        small = error.abs() <= delta
        return trained(
            mg.where(small, 0.5 * error**2, delta * (error.abs() - 0.5 * delta)).mean(), w
        )

    return step, [w], [(floats(rng, N, 3), floats(rng, N), d) for d in (1.0, 0.7, 0.5, 0.2)]


# -- slices ----------------------------------------------------------------------------------------


@kind
def teacher_forcing_by_slices(rng):
    w, u = parameter(rng, 3, C), mg.variable(floats(rng, C, C))

    def step(x):
        h = mg.zeros((2, C))
        total = 0.0
        for t in range(4):
            h = (x[:, t] @ w + h @ u).tanh()
            total = total + ((h[..., :3] - x[:, t + 1]) ** 2).mean()
        return trained(total, w)

    return step, [w], [(floats(rng, 2, 5, 3),) for _ in range(3)]


@kind
def next_token_loss(rng):
    table = parameter(rng, 8, 8)

    def step(tokens):
        logits = table[tokens[:, :-1]]
        wanted = tokens[:, 1:]
        return trained(mg.cross_entropy(logits.reshape(-1, 8), wanted.reshape(-1)), table)

    return step, [table], [(rng.integers(0, 8, (2, 6)),) for _ in range(3)]


@kind
def strides_new_axes_and_the_last_element(rng):
    w = parameter(rng, 3)

    def step(x):
        even, odd = x[:, ::2], x[:, 1::2]
        pairs = even[:, :, None] * odd[:, None, :]
        ends = (x[..., -1] @ x[::-1, 0]) * w[0]
        return trained((pairs.sum(axis=(1, 2))[:, None] * w).sum() + ends, w)

    return step, [w], [(floats(rng, N, 6),) for _ in range(3)]


@kind
def rotary_halves_written_into_slices(rng):
    w = parameter(rng, 6)

    def step(x, angle):
        h, out = x * w, mg.zeros_like(x)
        c, s = math.cos(0.3), math.sin(0.3)
        out[..., 0::2] = h[..., 0::2] * c - h[..., 1::2] * s * angle
        out[..., 1::2] = h[..., 0::2] * s * angle + h[..., 1::2] * c
        return trained((out**2).sum() + out[0, 0], w)

    return step, [w], [(floats(rng, N, 6), a) for a in (1.0, 0.9, 0.8, 0.7)]


@kind
def window_of_a_data_set_at_a_place_that_moves(rng):
    data, w = mg.variable(floats(rng, 20, 3)), parameter(rng, 3)

    def step(start):
        batch = data[start + mg.arange(4)]
        return trained(((batch @ w) ** 2).mean(), w)

    return step, [w], [(np.array(k),) for k in (0, 4, 8, 16)]


@kind
def cache_of_keys_at_a_position(rng):
    keys, values = mg.zeros((5, C)), mg.zeros((5, C))

    def step(q, k, v, position):
        keys[position] = k
        values[position] = v
        seen = mg.arange(5) <= position
        return mg.softmax(mg.where(seen, keys @ q, -math.inf)) @ values

    cases = [(floats(rng, C), floats(rng, C), floats(rng, C), np.array(t)) for t in range(5)]
    return step, [keys, values], cases


@kind
def position_encoding_of_a_position(rng):
    table, w = mg.variable(floats(rng, 16, 3)), parameter(rng, 3)

    def step(x, positions):
        return trained(((x + table[positions]) @ w).sum(), w)

    return step, [w], [(floats(rng, N, 3), rng.integers(0, 16, N)) for _ in range(3)]


# -- permutations and pairs ------------------------------------------------------------------------


@kind
def mixup_with_a_permutation(rng):
    w = parameter(rng, 3, C)

    def step(x, labels, share):
        perm = mg.randperm(N)
        mixed = share * x + (1.0 - share) * x[perm]
        logits = mixed @ w
        first, second = mg.cross_entropy(logits, labels), mg.cross_entropy(logits, labels[perm])
        return trained(share * first + (1.0 - share) * second, w)

    return step, [w], [(floats(rng, N, 3), rng.integers(0, C, N), s) for s in (0.3, 0.6, 0.45, 0.8)]


@kind
def minibatch_drawn_in_the_step(rng):
    data, w = mg.variable(floats(rng, 20, 3)), parameter(rng, 3)

    def step():
        rows = mg.randint(0, 20, (5,))
        return trained(((data[rows] @ w) ** 2).mean(), w)

    return step, [w], [()]


@kind
def contrastive_loss_of_a_diagonal(rng):
    w = parameter(rng, 3, C)

    def step(a, b, temperature):
        sim = (a @ w) @ (b @ w).T / temperature
        logp = mg.log_softmax(sim)
        return trained(-logp[range(N), range(N)].mean(), w)

    return step, [w], [(floats(rng, N, 3), floats(rng, N, 3), 1.0 / (t + 1)) for t in range(4)]


@kind
def triplets_of_hardest_negatives(rng):
    w, same = parameter(rng, 3, C), np.eye(N, dtype=bool)

    def step(a, b):
        h, k = a @ w, b @ w
        apart = ((h[:, None] - k[None]) ** 2).sum(axis=-1)
        right = apart[np.arange(N), np.arange(N)]
        apart[same] = math.inf
        wrong = apart[mg.arange(N), apart.argmin(axis=1)]
        return trained(mg.relu(right - wrong + 0.5).mean(), w)

    return step, [w], [(floats(rng, N, 3), floats(rng, N, 3)) for _ in range(3)]


@kind
def pairs_above_the_diagonal(rng):
    w, pairs = parameter(rng, 3, C), np.triu_indices(N, 1)

    def step(x):
        h = x @ w
        return trained((h @ h.T)[pairs].mean(), w)

    return step, [w], [(floats(rng, N, 3),) for _ in range(3)]


@kind
def moves_of_rows_by_a_table(rng):
    order = [2, 0, 1]

    def step(x, rows):
        y = x[:, order] * 1.0
        y[rows[0], rows[1]] += 1.0
        y[-1, [0, 2]] = x[0, [True, False, True]]
        return y, y[rows[0]], x[[0, int(np.int64(1))], np.int64(2)] * 1.0

    return step, [], [(floats(rng, N, 3), rng.integers(0, 3, 2)) for _ in range(3)]


# -- numbers that change ---------------------------------------------------------------------------


@kind
def annealed_temperature(rng):
    w = parameter(rng, 3, C)

    def step(x, labels, temperature):
        return trained(mg.cross_entropy(x @ w / temperature, labels), w)

    return (
        step,
        [w],
        [(floats(rng, N, 3), rng.integers(0, C, N), max(0.5, 0.9**t)) for t in range(6)],
    )


@kind
def update_by_hand_with_a_rate(rng):
    w = parameter(rng, 3)

    def step(x, rate, t):
        loss, gradient = trained((x @ w).square().mean(), w)
        with mg.no_grad():
            w.sub_(rate / (1.0 + 0.1 * t) * gradient)
        return loss

    return step, [w], [(floats(rng, N, 3), 0.1 * 0.97**t, t) for t in range(6)]


@kind
def moving_average_with_bias_correction(rng):
    mean = mg.zeros((3,))

    def step(x, beta, t):
        mean.mul_(beta)
        mean.add_((1.0 - beta) * x.mean(axis=0))
        return mean / (1.0 - beta**t)

    return step, [mean], [(floats(rng, N, 3), 0.9 + 0.001 * t, t + 1) for t in range(6)]


@kind
def weights_of_a_sum_that_warms_up(rng):
    model = nn.Linear(3, 1)
    optimizer = mg.optim.SGD(model, learning_rate=0.1)

    def step(x, weight):
        y = model(x)[:, 0]
        loss = weight["fit"] * (y - x[:, 0]).square().mean() + weight["size"] * y.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return (
        step,
        [model],
        [(floats(rng, N, 3), {"fit": 1.0 - 0.1 * t, "size": 0.01 * t}) for t in range(6)],
    )


# -- sorting, remainders, systems of equations, draws ----------------------------------------------


@kind
def top_classes_with_wrapped_positions(rng):
    w = parameter(rng, 3, C)

    def step(x, k):
        scores = mg.sort(x @ w, descending=True)
        values, places = mg.topk(x @ w, 2)
        order = mg.argsort(x.sum(axis=1)) % 3 + k // 2
        loss, gradient = trained(
            (scores[:, 0] - values[:, 1]).mean() + mg.cumprod(values, 1).mean(), w
        )
        return loss, gradient, places, order

    return step, [w], [(floats(rng, N, 3), k) for k in (3, 4, 5)]


@kind
def ridge_regression_and_its_gradient(rng):
    w = parameter(rng, 3)

    def step(x, y):
        gram = x.T @ x + mg.eye(3) * (w * w + 0.5)
        beta = mg.linalg.solve(gram, x.T @ y)
        factor = mg.linalg.cholesky(gram)
        return trained(
            ((x @ beta - y) ** 2.0).mean() + mg.log(mg.diagonal(factor, axis1=0, axis2=1)).sum(), w
        )

    return step, [w], [(floats(rng, N, 3), floats(rng, N)) for _ in range(3)]


@kind
def classes_drawn_and_rolled(rng):
    w = parameter(rng, 3, C)

    def step(x):
        drawn = mg.random.categorical((x @ w).detach())
        logp = mg.log_softmax(mg.normalize(x @ w, axis=1))
        picked = mg.masked_fill(mg.gather(logp, drawn[:, None], 1), x[:, :1] > 0, -1.0)
        return *trained(-mg.roll(picked, 1, 0).mean(), w), mg.index_add(x, drawn, x, 0)

    return step, [w], [(floats(rng, N, 3),) for _ in range(3)]
