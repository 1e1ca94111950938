"""What does a Decision Transformer obtain of the return it is asked for, and what do cheap rivals obtain?

Three worlds, whose best returns are known. Each seed draws its own data, and on the graph its own graph.

graph: random walks of at most 10 steps on a graph of 20 nodes with 3 successors each (the example of Chen et al. 2021,
in sizes of ours), 1,000 or 100 of them. A step costs 1, and whoever has not arrived pays 10 more. A run is measured
from each of the 19 nodes.

crossing: 800 walks on `course_lib.acting.graph_walks.crossing`, where the best way from the start is made of pieces of
two walks, but for a share of the walkers, 0 to 0.1, who have gone it whole.

cliff: gymnasium's CliffWalking-v1, 300 episodes. The behaviour: a walker draws the row along which it goes to the goal,
the third, beside the cliff, with probability 0.1, the second with 0.3, the first with 0.6; after a fall it keeps to the
first. At each step, with the probability `noise`, it does something random of the four actions instead. The best return
is -13. Models are trained at a noise of 0.3, with twice the updates of the crossing.

Kinds of model, all the same network of two layers: "asked" reads the return to go; "cloned" has zeros there
(behaviour cloning); "best" clones the tenth of the episodes from each first state with the largest returns;
"last step" is asked, too, and reads the step at hand alone. All take the likeliest action. Each kind has the rate that
was best of three by the loss on validation episodes, drawn anew by the same recipe, with a fourth seed, for 1,000 and
for 100 walks and at a share of 0.02; then three seeds train with it. In a world all have the same number of updates,
and keep the weights of their best validation.

Rivals without a network, on the same data: the best episode replayed, a table of what was done most often in a state
with a return to go, and dynamic programming (`course_lib.evaluation.decision_baselines`). The lecture *Decisions* tells
what came out.
"""

import time
from importlib.metadata import version
from typing import NamedTuple

import numpy as np

from course_lib.acting import graph_walks
from course_lib.acting.rollouts import Asking, rollout
from course_lib.batches.trajectories import Episode, TrajectoryBatches
from course_lib.evaluation.decision_baselines import Planner, Replay, ReturnTable, best_fraction
from course_lib.models.decision import DecisionConfig
from notebooks.experiments.harness import Experiment, Record, main, of_trials, table

GRAPHS, SHARES, NOISES = ("1000", "100"), ("0", "0.02", "0.1"), ("0.1", "0.3", "0.5")
SETTINGS = [("graph", n) for n in GRAPHS] + [("crossing", p) for p in SHARES] + [("cliff", e) for e in NOISES]
KINDS = ("asked", "cloned", "best", "last step")
PEAKS, SEEDS, TRIAL_SEED = (1e-3, 3e-3, 1e-2), (1, 2, 3), 0
TRAINED = [at for at in SETTINGS if at[0] != "cliff" or at[1] == "0.3"]
TUNED_AT = {"crossing": "0.02"}
BATCH, UPDATES, WARMUP = 32, {"graph": 500, "crossing": 300, "cliff": 600}, 50
VALIDATE_EVERY, TENTH = 100, 0.1
SCALE = {"graph": 10.0, "crossing": 10.0, "cliff": 20.0}  # what returns are divided by
SCALE |= {"cliff by 5": 5.0, "lake": 1.0}  # of cliff.py and frozen_lake.py
CONTEXT, CLIFF_STEPS, OUT_OF_TIME = 8, 200, 60  # steps that are read on the cliff; of an episode there; when tested
ASKED = {
    "graph": tuple(-float(n) for n in range(1, 11)),
    "crossing": (-1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0),
    "cliff": (-9.0, -11.0, -13.0, -15.0, -17.0, -21.0, -30.0, -120.0),
}


class Run(NamedTuple):
    """One training; with a `peak` of the rate it is a trial of it, without one it takes the best of the trials."""

    world: str
    setting: str
    kind: str
    seed: int
    peak: float | None = None

    @property
    def is_trial(self) -> bool:
        """Whether it serves to choose."""
        return self.peak is not None

    @property
    def name(self) -> str:
        """What the record calls this run."""
        arm = f"{self.world} {self.setting} {self.kind}"
        return f"{arm} trial {self.peak}" if self.is_trial else f"{arm} {self.seed}"

    @property
    def seconds(self) -> float:
        """Of one processor core, about."""
        return 1.0 if self.kind == "rivals" else {"graph": 7.0, "crossing": 4.0, "cliff": 14.0}[self.world]


class World(NamedTuple):
    """An environment, how its observations become states, and what is known of it."""

    env: object
    state: object  # observation -> numbers (d_state,)
    starts: dict  # of each first state: the environment that begins there, and the best return
    n_actions: int
    max_steps: int
    context: int | None  # steps that a model reads


TUNED = [at for at in TRAINED if at[1] == TUNED_AT.get(at[0], at[1])]
TRIALS = [Run(*at, kind, TRIAL_SEED, peak) for at in TUNED for kind in KINDS for peak in PEAKS]
RUNS = table(
    [
        *(Run(*at, "rivals", seed) for at in SETTINGS for seed in SEEDS),
        *TRIALS,
        *(Run(*at, kind, seed) for at in TRAINED for kind in KINDS for seed in SEEDS),
    ]
)


def world_of(world: str, seed: int) -> World:
    """The world that a seed draws; the cliff and the crossing are always the same."""
    if world == "cliff":
        import gymnasium  # here, because reading the record does not need it

        env = gymnasium.make("CliffWalking-v1")
        return World(env, lambda seen: np.eye(48, dtype=np.float32)[seen], {36: (env, -13.0)}, 4, CLIFF_STEPS, CONTEXT)
    graph = graph_walks.random_graph(20, 3, np.random.default_rng([seed, 0]))
    graph = graph if world == "graph" else graph_walks.crossing()
    steps, starts = graph.distances(), graph.starts if world == "graph" else (graph_walks.START,)
    truth = {node: (graph.starting(node), -float(steps[node])) for node in starts}
    return World(graph, graph.state, truth, len(graph.edges), graph.limit, None)


def episodes_of(world: str, setting: str, seed: int, part: str, at: World) -> list[Episode]:
    """The data that a seed draws: of the part "training" or "validation"."""
    rng = np.random.default_rng([seed, 1 if part == "training" else 2])
    if world == "graph":
        return graph_walks.random_walks(at.env, int(setting) if part == "training" else 300, rng)
    if world == "crossing":
        return graph_walks.crossing_walks(800, float(setting), rng)
    found = [
        rollout(at.env, cliff_walker(float(setting), rng), at.state, at.max_steps)
        for _ in range(300 if part == "training" else 60)
    ]
    return [episode for episode in found if episode.ended]


def cliff_walker(noise: float, rng: np.random.Generator):
    """The behaviour on the cliff: along a row to the last column, then down, and now and then something random."""
    row = rng.choice(3, p=[0.6, 0.3, 0.1])

    def act(states, actions, rewards):
        if rng.random() < noise:
            return int(rng.integers(4))
        along = 0 if min(rewards, default=-1.0) < -50 else row  # after a fall, far from the cliff
        at_row, at_column = divmod(int(states[-1].argmax()), 12)
        return 2 if at_column == 11 else 0 if at_row > along else 2 if at_row < along else 1

    return act


def of_kind(kind: str, episodes: list[Episode]) -> list[Episode]:
    """What a kind learns from, its rewards included: what is cloned has none, so that all its returns are zeros."""
    episodes = best_fraction(episodes, TENTH) if kind == "best" else episodes
    if kind in ("cloned", "best"):
        return [episode._replace(rewards=np.zeros_like(episode.rewards)) for episode in episodes]
    return episodes


def batches_of(run: Run, episodes: list[Episode], at: World, seed: int | None) -> TrajectoryBatches:
    """Windows of what a run learns from."""
    length = 1 if run.kind == "last step" else at.context
    size = BATCH if seed is not None else 512
    return TrajectoryBatches(of_kind(run.kind, episodes), size, length, SCALE[run.world], seed)


def rate(step: int, peak: float, updates: int) -> float:
    """Up over the first updates, level for half of all, and down to 0."""
    return peak * min(1.0, (step + 1) / WARMUP, 2 * (updates - step) / updates)


def config_of(at: World) -> DecisionConfig:
    """The sizes of all models."""
    d_state = len(at.state(next(iter(at.starts))))
    return DecisionConfig(d_state, at.n_actions, 64, 2, 4, 128, CLIFF_STEPS, action_tanh=False, dropout=0.1)


def train(run: Run, peak: float, episodes, held_out, at: World, updates: int | None = None, watch=None):
    """A trained model, and the history of its training; `watch(model, step)` is called before each update."""
    import torch  # here, because it takes seconds, and no reader of the record needs it

    from course_lib.torch import DecisionTransformer
    from course_lib.torch.training import decisions, loop

    torch.manual_seed(run.seed)
    torch.set_flush_denormal(True)  # numbers below 1e-38 take ten times as long
    updates = updates or UPDATES[run.world]
    model = DecisionTransformer(config_of(at))

    def rate_at(step):
        if watch is not None:
            watch(model, step)
        return rate(step, peak, updates)

    history = loop.train(
        model,
        batches_of(run, episodes, at, run.seed).epoch,
        decisions.actions(),
        batches_of(run, held_out, at, None),
        rate=rate_at,
        max_norm=1.0,
        steps=updates,
        validate_every=VALIDATE_EVERY,
        seed=run.seed,
        progress=False,
    )
    return model, history


def obtained(policy, at: World) -> list[float]:
    """The return that a policy obtains from each start."""
    return [rollout(env, policy, at.state, OUT_OF_TIME).total for env, _ in at.starts.values()]


def asking(run: Run, model, at: World):
    """Asked return -> policy."""
    from course_lib.torch import NextAction

    context = 1 if run.kind == "last step" else at.context
    return lambda asked: Asking(NextAction(model), asked, SCALE[run.world], context)


class Silent:
    """A cloned model as a policy: it is asked for nothing, whatever has been paid."""

    def __init__(self, ask):
        self.policy = ask(0.0)

    def __call__(self, states, actions, rewards):
        return self.policy(states, actions, [0.0] * len(rewards))


def answers(ask, at: World, asked: tuple[float, ...], best: Replay) -> dict:
    """What is obtained, from each start, for each return asked for; for the best possible; for the best of the data."""
    figures = {"for_asked": [obtained(ask(one), at) for one in asked]}
    each = [(World(*at[:2], {start: pair}, *at[3:]), start, pair[1]) for start, pair in at.starts.items()]
    figures["for_truth"] = [obtained(ask(truth), one)[0] for one, _, truth in each]
    figures["for_best"] = [obtained(ask(best_return(best, at, start, truth)), one)[0] for one, start, truth in each]
    return figures


def best_return(best: Replay, at: World, start: int, otherwise: float) -> float:
    """The best return of the data from a start; where no episode began there, what is possible."""
    try:
        return best.total(at.state(start))
    except KeyError:
        return otherwise


def measure(run: Run, record: Record) -> dict:
    """Train a model, or make the rivals, and return what is obtained."""
    at = world_of(run.world, run.seed)
    episodes = episodes_of(run.world, run.setting, run.seed, "training", at)
    best, truth = Replay(episodes), [value for _, value in at.starts.values()]
    begin = time.process_time()
    if run.kind == "rivals":
        return rivals(run, at, episodes) | {"seconds": round(time.process_time() - begin, 1)}
    peak = run.peak if run.is_trial else chosen(run, record)
    held_out = episodes_of(run.world, run.setting, run.seed, "validation", at)
    model, history = train(run, peak, episodes, held_out, at)
    looks = [round(look.nll, 4) for look in history.validation]
    figures = {"peak": peak, "validation": min(looks), "validations": looks}
    if not run.is_trial:
        ask = asking(run, model, at)
        if run.kind in ("cloned", "best"):
            figures["obtained"] = obtained(Silent(ask), at)
        else:
            figures |= answers(ask, at, ASKED[run.world], best)
    figures |= {"parameters": sum(weight.numel() for weight in model.parameters()), "possible": truth}
    return figures | {"seconds": round(time.process_time() - begin, 1), "version": version("torch")}


def rivals(run: Run, at: World, episodes: list[Episode]) -> dict:
    """What is obtained without a network, and what the data are like."""
    best, counted = Replay(episodes), ReturnTable(episodes)
    totals = np.array([episode.total for episode in episodes])
    planner = Planner(episodes)
    return {
        "possible": [value for _, value in at.starts.values()],
        "best_of_data": [best_return(best, at, start, -np.inf) for start in at.starts],
        "planned": obtained(planner, at),
        **{f"table_{key}": value for key, value in answers(counted.asking, at, ASKED[run.world], best).items()},
        "mean_of_data": round(float(totals.mean()), 2),
        "quantiles_of_data": np.quantile(totals, [0, 0.25, 0.5, 0.75, 1]).tolist(),
        "episodes": len(episodes),
    }


def chosen(run: Run, record: Record) -> float:
    """The peak of the arm's best trial, by the loss on validation episodes; the lower one of two that are level."""
    arm = (run.world, TUNED_AT.get(run.world, run.setting), run.kind)
    trials = of_trials((trial.name for trial in TRIALS if trial[:3] == arm), record).values()
    return min(trials, key=lambda figures: (figures["validation"], figures["peak"]))["peak"]


EXPERIMENT = Experiment(__doc__, RUNS, measure, Record.of(__file__), "graph 100 asked")

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
