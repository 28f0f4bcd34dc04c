"""Wrong solutions of lesson 16 that are changes of the solution."""

from minigrad.course.mutants import Mutant


def stages(key: str, *body: str) -> Mutant:
    """Return a train_replicas with another function among its stages."""
    code = "\n".join([*body, "STAGES = [number, initialise, take, differentiate, reduce, move]"])
    return Mutant("train_replicas", key, code)


TAKE = (
    "def take(workers):",
    "    for s in workers:",
    "        mine = s['batch'][s['rank'] :: len(workers)]",
    "        random = np.random.default_rng([s['seed'], s['rank'], s['step']])",
    "        noise = random.normal(scale=0.1, size=(len(mine), s['w'].size))",
    "        s['x'], s['y'] = s['rows'][mine] + noise, s['targets'][mine]",
)
BEGIN = (
    "def initialise(workers):",
    "    for s in workers:",
    "        s['w'] = np.random.default_rng(s['seed'] + s['rank']).normal(size=s['rows'].shape[1])",
)

MUTANTS = [
    Mutant("shard", "answer_used", "def shard(data, k):\n    return np.array_split(data, k)"),
    *(Mutant("train_replicas", "not_it", f'BUG = ("stage", {place})') for place in (0, 2, 3, 4, 5)),
    Mutant("train_replicas", "untouched", 'BUG = ("stage", None)'),
    Mutant("train_replicas", "named", 'BUG = ("stage", "initialise")'),
    Mutant("train_replicas", "form", "BUG = 0"),
    Mutant("train_replicas", "form", 'BUG = ("stage", 6)'),
    # as it was, and in other ways that do not repair it
    stages("other_seeds", *BEGIN),
    stages(
        "one_generator",
        *BEGIN[:1],
        "    random = np.random.default_rng(workers[0]['seed'])",
        *BEGIN[1:2],
        "        s['w'] = random.normal(size=s['rows'].shape[1])",
    ),
    stages(
        "mean_at_first",
        *BEGIN,
        "    mean = sum(s['w'] for s in workers) / len(workers)",
        "    for s in workers:",
        "        s['w'] = mean.copy()",
    ),
    stages(
        "other_worker", *BEGIN, "    for s in workers:", "        s['w'] = workers[-1]['w'].copy()"
    ),
    stages("fixed_seed", *BEGIN[:2], BEGIN[2].replace("s['seed'] + s['rank']", "0")),
    stages("zeros", *BEGIN[:2], "        s['w'] = np.zeros(s['rows'].shape[1])"),
    stages(
        "all_rank_0",
        "def number(workers):",
        "    for s in workers:",
        "        s['rank'], s['own_seed'] = 0, [s['seed'], 0]",
        *BEGIN,
    ),
    stages("same_noise", *TAKE[:3], TAKE[3].replace("s['rank'], ", "0, "), *TAKE[4:]),
    stages(
        "averaged_late",
        *BEGIN,
        "def move(workers):",
        "    for s in workers:",
        "        s['w'] = s['w'] - s['learning_rate'] * s['g']",
        "    mean = sum(s['w'] for s in workers) / len(workers)",
        "    for s in workers:",
        "        s['w'] = mean.copy()",
    ),
]
