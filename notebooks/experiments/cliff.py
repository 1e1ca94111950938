"""Why does a Decision Transformer that is asked for the best return beside a cliff not obtain it?

The world, the walkers and the networks are those of `decisions.py`, CliffWalking at a noise of 0.3. The ways of -13,
along the edge, and of -15 part at the first field beside the cliff, where whoever has asked for -13 asks for -12. Few
in the data stood there with -12 to go; all of these went right. Does a network go right, too?

Arms, by what they change: "as it is" nothing; "patient" has five times the updates; "more data" has ten times the
episodes, "both" has both; "best shown" has each episode of the best tenth ten times, in as many updates; "by 5" has
returns divided by 5, not by 20; "calm" has walkers with a noise of 0.1, "calm, patient" five times the updates, too.
Models read eight steps, or one. Each arm has the rate that was best of three by the loss on validation episodes of its
own kind, with a fourth seed; then three seeds train with it. The weights are those of the best validation; what the
last ones obtain is recorded beside it.

Recorded of each model: the return that it obtains for -13, and its way; the probabilities of the actions where the
ways part, from 100 to 100 updates; how many examples of it there were, steps at that field with -12 to go, and how
often they were shown; and of all steps at that field with 6 more or less to go, the share that went right. The table of
`decisions.py`, on the same data, stands beside it. The lecture *Decisions* tells what came out.
"""

import time
from importlib.metadata import version
from typing import NamedTuple

import numpy as np

from course_lib.acting.rollouts import rollout
from course_lib.batches.trajectories import returns_to_go
from course_lib.evaluation.decision_baselines import ReturnTable, best_fraction
from notebooks.experiments import decisions
from notebooks.experiments.harness import Experiment, Record, main, of_trials, table


class Arm(NamedTuple):
    """What a kind of training learns from, and for how long."""

    noise: str = "0.3"
    episodes: int = 300
    updates: int = decisions.UPDATES["cliff"]
    times: int = 1  # that the best tenth is there
    world: str = "cliff"  # as `decisions.SCALE` calls it


ARMS = {
    "as it is": Arm(),
    "patient": Arm(updates=3000),
    "more data": Arm(episodes=3000),
    "both": Arm(episodes=3000, updates=3000),
    "best shown": Arm(times=10),
    "by 5": Arm(world="cliff by 5"),
    "calm": Arm(noise="0.1"),
    "calm, patient": Arm(noise="0.1", updates=3000),
}
READS = {"eight steps": "asked", "one step": "last step"}  # and the kind that `decisions` calls it
PEAKS, SEEDS, TRIAL_SEED = decisions.PEAKS, decisions.SEEDS, decisions.TRIAL_SEED
HELD_OUT, EVERY = 60, 100  # validation episodes; updates between two looks
START, PARTING, UP, RIGHT = 36, 24, 0, 1  # the field where the ways part, and what is done before it and there
ASKED, THEN, NEAR = -13.0, -12.0, 6.0  # the return asked for, what is left of it there, and how far off is near it


class Run(NamedTuple):
    """One training; with a `peak` of the rate it is a trial of it, without one it takes the best of the trials."""

    arm: str
    reads: str
    seed: int
    peak: float | None = None

    @property
    def is_trial(self) -> bool:
        """Whether it serves to choose."""
        return self.peak is not None

    @property
    def name(self) -> str:
        """What the record calls this run."""
        arm = f"{self.arm}: {self.reads}"
        return f"{arm} trial {self.peak}" if self.is_trial else f"{arm} {self.seed}"

    @property
    def seconds(self) -> float:
        """Of one processor core, about."""
        return ARMS[self.arm].updates * (0.02 if self.reads == "eight steps" else 0.01)


TRIALS = [Run(arm, reads, TRIAL_SEED, peak) for arm in ARMS for reads in READS for peak in PEAKS]
RUNS = table([*TRIALS, *(Run(arm, reads, seed) for arm in ARMS for reads in READS for seed in SEEDS)])


def episodes_of(arm: Arm, seed: int, part: str, at) -> list:
    """The data that a seed draws, those of `decisions` where the arm changes nothing in them."""
    rng = np.random.default_rng([seed, 1 if part == "training" else 2])
    found = [
        rollout(at.env, decisions.cliff_walker(float(arm.noise), rng), at.state, at.max_steps)
        for _ in range(arm.episodes if part == "training" else HELD_OUT)
    ]
    found = [episode for episode in found if episode.ended]
    return found + (arm.times - 1) * best_fraction(found, decisions.TENTH)


def examples(episodes, within: float = 0.0) -> list[str]:
    """What was done, one letter each, where the ways part, with what is left of the return then, or nearly."""
    return [
        "URDL"[action]
        for states, actions, rewards, _ in episodes
        for state, action, to_go in zip(states, actions, returns_to_go(rewards), strict=True)
        if state[PARTING] == 1 and abs(to_go - THEN) <= within
    ]


def shown(batches, updates: int, scale: float) -> float:
    """How often a training reads an example, about: a step at the parting with the return to go of that wish."""
    there = sum(
        int(((batch.states[..., PARTING] == 1) & np.isclose(batch.returns[..., 0] * scale, THEN)).sum())
        for batch in batches
    )
    return round(there * updates / len(batches), 1)


def parting(model, at, context: int, scale: float) -> list[float]:
    """The probabilities of the actions where the ways part."""
    from course_lib.torch import NextAction

    states = np.stack([at.state(START), at.state(PARTING)])
    done, returns = np.eye(4, dtype=np.float32)[[UP, UP]], np.array([[ASKED], [THEN]], np.float32)
    done[1] = 0.0  # yet to be chosen
    last = slice(2 - min(context, 2), 2)
    logits = np.asarray(NextAction(model)(states[last], done[last], returns[last] / scale, np.arange(2)[last]), float)
    odds = np.exp(logits - logits.max())
    return [round(float(p), 4) for p in odds / odds.sum()]


def answer(policy, at) -> dict:
    """The return that a policy obtains, and the way it takes, a letter for each action."""
    episode = rollout(at.env, policy, at.state, decisions.OUT_OF_TIME)
    return {"obtained": episode.total, "way": "".join("URDL"[action] for action in episode.actions)}


def measure(run: Run, record: Record) -> dict:
    """Train a model and return what it answers, beside the table on the same data."""
    arm, at = ARMS[run.arm], decisions.world_of("cliff", run.seed)
    like = decisions.Run(arm.world, arm.noise, READS[run.reads], run.seed)
    context, scale = 1 if like.kind == "last step" else decisions.CONTEXT, decisions.SCALE[arm.world]
    episodes, held_out = (episodes_of(arm, run.seed, part, at) for part in ("training", "validation"))
    peak = run.peak if run.is_trial else chosen(run, record)
    begin, looks, last = time.process_time(), [], []

    def watch(model, step):
        if step % EVERY == 0:
            looks.append(parting(model, at, context, scale))
        if step == arm.updates - 1:  # the rate is next to nothing by then
            last.append(answer(decisions.asking(like, model, at)(ASKED), at))

    model, history = decisions.train(like, peak, episodes, held_out, at, arm.updates, watch)
    validations = [round(look.nll, 4) for look in history.validation]
    figures = {"peak": peak, "validation": min(validations), "validations": validations}
    if run.is_trial:
        return figures | {"seconds": round(time.process_time() - begin, 1), "version": version("torch")}
    done, near = examples(episodes), examples(episodes, NEAR)
    batches = decisions.batches_of(like, episodes, at, run.seed)
    return figures | {
        **answer(decisions.asking(like, model, at)(ASKED), at),
        "obtained_last": last[0]["obtained"],
        "parting": parting(model, at, context, scale),
        "partings": looks,
        "examples": {letter: done.count(letter) for letter in "URDL"},
        "near": round(near.count("R") / len(near), 4),
        "examples_held_out": len(examples(held_out)),
        "shown": shown(batches, arm.updates, scale),
        "steps": sum(len(episode.rewards) for episode in episodes),
        "had_it": sum(episode.total == ASKED for episode in episodes),
        "table": answer(ReturnTable(episodes, ASKED), at),
        "seconds": round(time.process_time() - begin, 1),
        "version": version("torch"),
    }


def chosen(run: Run, record: Record) -> float:
    """The peak of the arm's best trial, by the loss on validation episodes; the lower one of two that are level."""
    trials = of_trials((trial.name for trial in TRIALS if trial[:2] == run[:2]), record).values()
    return min(trials, key=lambda figures: (figures["validation"], figures["peak"]))["peak"]


EXPERIMENT = Experiment(__doc__, RUNS, measure, Record.of(__file__), "as it is: eight")

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
