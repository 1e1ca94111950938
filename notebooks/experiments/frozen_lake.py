"""What does a Decision Transformer obtain of what it asks for, where luck decides what is paid?

The world is gymnasium's FrozenLake-v1, 16 fields with four holes: whoever arrives is paid 1, whoever falls in 0. On
"ice", as the world comes, a step goes where it was meant to with probability 1/3, and to either side with the same; on
"land" it always goes where it was meant to. The ice divides the two, and with it what is best to do.

The data: 1,000 walks of 100 steps at most. At half of the steps a walker does something random, at the others it goes
right or down, whichever way is left, towards the goal, holes or no holes.

Networks, all of the sizes of `decisions.py`, which read eight steps: "asked" reads the return to go and is asked for 1;
"cloned" has zeros there; "best" clones the walks that arrived. Each has the rate that was best of three by the loss on
300 other walks, with a fourth seed; then three seeds train with it. Rivals without a network: the table of
`decisions.py`, asked for 1, and dynamic programming on what was seen ("planned"). Recorded is the share of 500 episodes
that arrive. On the ice the walkers' favourite ways are not the best ones: so "roamers" are the same two rivals on
10,000 walks of walkers who do something random at each step. The lecture *Decisions* tells what came out.
"""

import time
from importlib.metadata import version
from typing import NamedTuple

import numpy as np

from course_lib.acting.rollouts import rollout
from course_lib.evaluation.decision_baselines import Planner, ReturnTable
from notebooks.experiments import decisions
from notebooks.experiments.harness import Experiment, Record, main, of_trials, table

GROUNDS, KINDS = ("ice", "land"), ("asked", "cloned", "best")
PEAKS, SEEDS, TRIAL_SEED = decisions.PEAKS, decisions.SEEDS, decisions.TRIAL_SEED
WALKS, HELD_OUT, ROAMERS, LONGEST, NOISE, UPDATES = 1000, 300, 10_000, 100, 0.5, 600
TESTED = 500  # episodes
FIELDS, RIGHT, DOWN = 16, 2, 1
SWEEPS, DISCOUNT = 2000, 0.999  # of the planning; the discount says which of two ways that arrive is shorter


class Run(NamedTuple):
    """One training, or the rivals; with a `peak` of the rate it is a trial, without one it takes the best of these."""

    ground: str
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
        arm = f"{self.ground} {self.kind}"
        return f"{arm} trial {self.peak}" if self.is_trial else f"{arm} {self.seed}"

    @property
    def seconds(self) -> float:
        """Of one processor core, about."""
        return 10.0 if self.kind in KINDS else 5.0


TRIALS = [Run(ground, kind, TRIAL_SEED, peak) for ground in GROUNDS for kind in KINDS for peak in PEAKS]
ARMS = [(ground, kind) for ground in GROUNDS for kind in ("rivals", *KINDS)]
RUNS = table([*TRIALS, *(Run(*arm, seed) for arm in [*ARMS, ("ice", "roamers")] for seed in SEEDS)])


def world_of(ground: str) -> decisions.World:
    """The lake."""
    import gymnasium  # here, because reading the record does not need it

    env = gymnasium.make("FrozenLake-v1", is_slippery=ground == "ice", max_episode_steps=LONGEST)
    state = lambda seen: np.eye(FIELDS, dtype=np.float32)[seen]  # noqa: E731
    return decisions.World(env, state, {0: (env, 1.0)}, 4, LONGEST, decisions.CONTEXT)


def walker(rng: np.random.Generator, noise: float):
    """The behaviour: right or down, whichever way is left, and with the probability `noise` anything."""

    def act(states, actions, rewards):
        row, column = divmod(int(states[-1].argmax()), 4)
        ways = [way for way, is_left in ((RIGHT, column < 3), (DOWN, row < 3)) if is_left]
        return int(rng.integers(4) if rng.random() < noise else rng.choice(ways))

    return act


def episodes_of(seed: int, part: str, at: decisions.World) -> list:
    """The walks that a seed draws, and the luck of the ice with them."""
    source = [seed, 2 if part == "validation" else 1]
    rng = np.random.default_rng(source)
    at.env.reset(seed=int(rng.integers(2**31)))
    number = {"training": WALKS, "validation": HELD_OUT, "roamers": ROAMERS}[part]
    noise = 1.0 if part == "roamers" else NOISE
    return [rollout(at.env, walker(rng, noise), at.state, LONGEST) for _ in range(number)]


def arrived(policy, at: decisions.World, seed: int) -> float:
    """The share of episodes in which a policy arrives, which is its mean return."""
    luck = np.random.default_rng([seed, 3])
    return float(np.mean([
        rollout(at.env, policy, at.state, LONGEST, int(luck.integers(2**31))).total for _ in range(TESTED)
    ]))  # fmt: skip


def measure(run: Run, record: Record) -> dict:
    """Train a model, or make the rivals, and return how many of their episodes arrive."""
    at = world_of(run.ground)
    episodes = episodes_of(run.seed, "roamers" if run.kind == "roamers" else "training", at)
    begin = time.process_time()
    if run.kind in ("rivals", "roamers"):
        found = {"table": ReturnTable(episodes, 1.0), "planned": Planner(episodes, DISCOUNT, SWEEPS)}
        figures = {name: arrived(policy, at, run.seed) for name, policy in found.items()}
        figures["data"] = float(np.mean([episode.total for episode in episodes]))
        figures["steps"] = sum(len(episode.rewards) for episode in episodes)
        return figures | {"seconds": round(time.process_time() - begin, 1)}
    held_out = episodes_of(run.seed, "validation", at)
    peak = run.peak if run.is_trial else chosen(run, record)
    like = decisions.Run("lake", run.ground, "cloned" if run.kind == "best" else run.kind, run.seed)
    if run.kind == "best":
        episodes, held_out = ([one for one in part if one.total == 1] for part in (episodes, held_out))
    model, history = decisions.train(like, peak, episodes, held_out, at, UPDATES)
    looks = [round(look.nll, 4) for look in history.validation]
    figures = {"peak": peak, "validation": min(looks), "validations": looks}
    if not run.is_trial:
        ask = decisions.asking(like, model, at)
        policy = ask(1.0) if run.kind == "asked" else decisions.Silent(ask)
        figures["arrived"] = arrived(policy, at, run.seed)
    return figures | {"seconds": round(time.process_time() - begin, 1), "version": version("torch")}


def chosen(run: Run, record: Record) -> float:
    """The peak of the arm's best trial, by the loss on validation walks; the lower one of two that are level."""
    trials = of_trials((trial.name for trial in TRIALS if trial[:2] == run[:2]), record).values()
    return min(trials, key=lambda figures: (figures["validation"], figures["peak"]))["peak"]


EXPERIMENT = Experiment(__doc__, RUNS, measure, Record.of(__file__), "ice asked")

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
