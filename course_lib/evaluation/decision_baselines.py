"""What a Decision Transformer has to beat: the best of the data, a table by returns, and planning on the data.

Each is a policy as `course_lib.acting.rollouts.rollout` wants it. States are told apart by their numbers, so that these
are for worlds of few states; actions are ids.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from course_lib.batches.trajectories import Episode, returns_to_go

DIGITS = 9  # of a return: sums of the same rewards in another order are the same return


def best_fraction(episodes: Sequence[Episode], share: float) -> list[Episode]:
    """Of the episodes from each first state the share with the largest returns, one at least; in their order.

    Cloning these is "percentile behaviour cloning" (Chen et al. 2021, section 5.1), there for one kind of start.

    Raises
    ------
    ValueError : a share outside 0 ... 1.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share must lie above 0 and at 1 at most, got {share!r}")
    kept = []
    for rows in _by_start(episodes).values():
        rows = sorted(rows, key=lambda i: -episodes[i].total)
        kept += rows[: max(1, round(share * len(rows)))]
    return [episodes[i] for i in sorted(kept)]


class Replay:
    """Do what was done in the best episode from the same first state; beyond its end, its last action."""

    def __init__(self, episodes: Sequence[Episode]):
        self.best = {
            start: max((episodes[i] for i in rows), key=lambda episode: episode.total)
            for start, rows in _by_start(episodes).items()
        }

    def total(self, state) -> float:
        """The best return from a first state; KeyError if no episode began there."""
        return self.best[_key(state)].total

    def __call__(self, states, actions, rewards):
        done = self.best[_key(states[0])].actions
        return int(done[min(len(actions), len(done) - 1)])


class ReturnTable:
    """In a state, and with a return to go, do what was done most often: a Decision Transformer that only counts.

    Where a state was never seen with the return, the nearest one counts that was, of two the larger; where a state was
    never seen, action 0. Of actions that are level, the smaller id.

    Parameters
    ----------
    episodes : what is counted
    asked : the return of a whole episode; it is lowered by each reward that has come

    Raises
    ------
    TypeError : actions that are no ids.
    """

    def __init__(self, episodes: Sequence[Episode], asked: float = 0.0):
        self.asked, self.counts = asked, defaultdict(lambda: defaultdict(Counter))
        _check_ids(episodes)
        for episode in episodes:
            for state, action, to_go in zip(
                episode.states, episode.actions, returns_to_go(episode.rewards), strict=True
            ):
                self.counts[_key(state)][round(float(to_go), DIGITS)][int(action)] += 1

    def asking(self, asked: float) -> ReturnTable:
        """The same counts, asked for another return."""
        other = ReturnTable([], asked)
        other.counts = self.counts
        return other

    def __call__(self, states, actions, rewards):
        by_return = self.counts.get(_key(states[-1]))
        if by_return is None:
            return 0
        to_go = self.asked - sum(rewards)
        counts = by_return[min(by_return, key=lambda seen: (abs(seen - to_go), -seen))]
        return min(counts, key=lambda action: (-counts[action], action))


class Planner:
    """Dynamic programming on the data: the best action if the world is what the episodes say, and no more.

    Q(s, a) is the mean, over the times that a was done in s, of the reward and of the largest Q that a seen action has
    in the state that followed: value iteration (Sutton and Barto 2018, section 4.4) in the world that the data show. So
    pieces of different episodes join. The last step of an episode that was cut short says nothing, since what followed
    is not known; and an action that led somebody to a state from which no end is known has no known value, -inf,
    whatever it was worth to others. Where a state was never seen, action 0.

    Parameters
    ----------
    episodes : what is known of the world
    discount : of what a step later is worth; below 1, values exist whatever the data
    sweeps : times that all values are computed, at least as many as the longest way has steps

    Raises
    ------
    TypeError : actions that are no ids.
    """

    def __init__(self, episodes: Sequence[Episode], discount: float = 1.0, sweeps: int = 200):
        _check_ids(episodes)
        seen: dict = defaultdict(lambda: defaultdict(Counter))  # state -> action -> (reward, next state) -> times
        for states, actions, rewards, ended in episodes:
            keys = [_key(state) for state in states]
            last = len(keys) if ended else len(keys) - 1
            for t in range(last):
                seen[keys[t]][int(actions[t])][float(rewards[t]), keys[t + 1] if t + 1 < len(keys) else None] += 1
        known = _with_an_end(seen)
        values: dict = {state: 0.0 if state in known else -np.inf for state in seen}
        for _ in range(sweeps):
            before, self.q = values, {}
            for state, by_action in seen.items():
                self.q[state] = {action: _mean(follows, before, discount) for action, follows in by_action.items()}
            values = {state: max(q.values()) for state, q in self.q.items()}
            if values == before:
                break
        self.values = values

    def value(self, state) -> float:
        """The return that the plan promises from a state; KeyError if it was never seen."""
        return self.values[_key(state)]

    def __call__(self, states, actions, rewards):
        q = self.q.get(_key(states[-1]))
        return 0 if q is None else min(q, key=lambda action: (-q[action], action))


def _with_an_end(seen: dict) -> set:
    """The states from which actions that were seen lead to an end in the long run, whatever chance does."""
    known = set(seen)
    while True:
        follow = {
            state: [after for follows in by_action.values() if (after := {s for _, s in follows}) <= known | {None}]
            for state, by_action in seen.items()
            if state in known
        }
        reached, before = {None}, 0
        while len(reached) > before:
            before = len(reached)
            reached |= {state for state, found in follow.items() if any(after & reached for after in found)}
        if reached - {None} == known:
            return known
        known = reached - {None}


def _mean(follows: Counter, values: dict, discount: float) -> float:
    total = sum(
        n * (reward + (0.0 if after is None else discount * values.get(after, -np.inf)))
        for (reward, after), n in follows.items()
    )
    return total / follows.total()


def _check_ids(episodes: Sequence[Episode]) -> None:
    for episode in episodes:
        if not np.issubdtype(np.asarray(episode.actions).dtype, np.integer):
            raise TypeError(f"actions should be ids, integers, got {np.asarray(episode.actions).dtype}")


def _by_start(episodes: Sequence[Episode]) -> dict[bytes, list[int]]:
    found = defaultdict(list)
    for i, episode in enumerate(episodes):
        found[_key(episode.states[0])].append(i)
    return found


def _key(state) -> bytes:
    return np.asarray(state, np.float32).tobytes()
