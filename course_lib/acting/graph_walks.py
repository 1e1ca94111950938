"""Walks on a directed graph, whose best returns are known: the example with which Chen et al. (2021) begin.

A walker pays 1 for each step until it stands on the goal. Whoever has not arrived when the steps are over pays more: a
walk that was cut short would else look as cheap as one that arrived. `GraphWalk` is an environment as gymnasium's are;
an observation is a node, an action the node to go to. Where no edge leads there, the walker stays and pays.

`crossing` is a construction: of whole walks and of their pieces it is known what the best is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index

import numpy as np

from course_lib.acting.rollouts import rollout
from course_lib.batches.trajectories import Episode
from course_lib.checks import check_count

# The nodes of `crossing`: from START by way of HALL in 2 steps or in 7, by way of MEADOW in 4.
GOAL, START, HALL, MEADOW = 0, 1, 2, 8
_ROADS = ((START, HALL, GOAL), (HALL, 3, 4, 5, 6, 7, GOAL), (START, MEADOW, 9, 10, GOAL))


class GraphWalk:
    """An environment: walk along edges to the goal.

    Parameters
    ----------
    edges : boolean (N, N), True where an edge leads from the node of the row to that of the column
    goal : the node where a walk ends
    starts : the nodes where it may begin
    limit : steps of a walk at most
    missed : what is paid besides by whoever has not arrived by then

    Raises
    ------
    ValueError : edges that are not (N, N), no start, a goal or a start that is no node, or a limit below one.
    """

    def __init__(self, edges, goal: int, starts: Sequence[int], limit: int = 10, missed: float = 10.0):
        self.edges = np.asarray(edges, bool)
        if self.edges.ndim != 2 or len(set(self.edges.shape)) != 1:
            raise ValueError(f"edges must have shape (N, N), got {self.edges.shape}")
        if not len(starts):
            raise ValueError("there must be a node to start from")
        for name, nodes in (("goal", (goal,)), ("starts", starts)):
            if min(nodes) < 0 or max(nodes) >= len(self.edges):
                raise ValueError(f"nodes are 0 ... {len(self.edges) - 1}, got {name}={nodes}")
        check_count("limit", limit)
        self.goal, self.starts, self.limit, self.missed = goal, tuple(starts), limit, missed
        self.rng, self.node, self.steps = np.random.default_rng(0), goal, 0

    def starting(self, *starts: int) -> GraphWalk:
        """The same graph with other starts."""
        return GraphWalk(self.edges, self.goal, starts, self.limit, self.missed)

    def reset(self, seed: int | None = None, options=None) -> tuple[int, dict]:
        """Stand on one of the starts, drawn with the seed if there is one: the node, and nothing else."""
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.node, self.steps = int(self.rng.choice(self.starts)), 0
        return self.node, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict]:
        """Go to a node: where one stands then, the reward, whether it is the goal, whether the steps are over.

        Raises
        ------
        ValueError : no node. TypeError : no integer.
        """
        action = index(action)
        if not 0 <= action < len(self.edges):
            raise ValueError(f"an action is the node to go to, 0 ... {len(self.edges) - 1}, got {action}")
        self.steps += 1
        if self.edges[self.node, action]:
            self.node = action
        arrived = self.node == self.goal
        over = not arrived and self.steps >= self.limit
        return self.node, -1.0 - self.missed * over, arrived, over, {}

    def state(self, node: int) -> np.ndarray:
        """A node as numbers: float32 (N,), a 1 at its place."""
        return np.eye(len(self.edges), dtype=np.float32)[node]

    def distances(self) -> np.ndarray:
        """The steps of the shortest way from each node to the goal, by dynamic programming: (N,), inf for none."""
        steps = np.where(np.arange(len(self.edges)) == self.goal, 0.0, np.inf)
        for _ in self.edges:
            steps = np.minimum(steps, 1 + np.where(self.edges, steps, np.inf).min(axis=1))
        return steps


def random_graph(n_nodes: int, n_successors: int, rng: np.random.Generator, limit: int = 10) -> GraphWalk:
    """A graph whose nodes have so many successors each, drawn until the goal, node 0, is near enough to all others."""
    check_count("n_successors", n_successors)
    check_count("n_nodes", n_nodes, n_successors + 1)
    while True:
        edges = np.zeros((n_nodes, n_nodes), bool)
        for node in range(n_nodes):
            others = np.delete(np.arange(n_nodes), node)
            edges[node, rng.choice(others, n_successors, replace=False)] = True
        env = GraphWalk(edges, 0, range(1, n_nodes), limit)
        if env.distances().max() < limit:
            return env


def random_walks(env: GraphWalk, n: int, rng: np.random.Generator) -> list[Episode]:
    """n walks from random starts, each step along a random edge; `env` itself stays where it is."""
    env = env.starting(*env.starts)
    env.rng = rng

    def wander(states, actions, rewards):
        return int(rng.choice(np.flatnonzero(env.edges[states[-1].argmax()])))

    return [rollout(env, wander, env.state, env.limit) for _ in range(n)]


def crossing() -> GraphWalk:
    """Eleven nodes, two places to choose: at START the HALL or the MEADOW, in the HALL the short or the long way."""
    edges = np.zeros((11, 11), bool)
    for road in _ROADS:
        edges[road[:-1], road[1:]] = True
    return GraphWalk(edges, GOAL, (START, HALL))


def crossing_walks(n: int, share: float, rng: np.random.Generator) -> list[Episode]:
    """n walks on `crossing`, half of them from START.

    These choose HALL and MEADOW alike. Of those that come to the HALL from START a `share` takes the short way; of
    those that begin there, half. With a share of 0 no walk from START is better than 4 steps, and pieces of two walks
    make one of 2.
    """
    env = crossing()
    env.rng = rng
    return [rollout(env, _crosser(share, rng), env.state, env.limit) for _ in range(n)]


def _crosser(share: float, rng: np.random.Generator) -> Callable:
    def choose(states, actions, rewards):
        node = states[-1].argmax()
        if node == START:
            return HALL if rng.random() < 0.5 else MEADOW
        if node == HALL:
            return GOAL if rng.random() < (0.5 if len(states) == 1 else share) else 3
        return int(np.flatnonzero(crossing().edges[node])[0])

    return choose
