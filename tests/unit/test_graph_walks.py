"""Walks on a graph: the environment, the true distances, and the construction whose best way nobody has gone whole."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from course_lib.acting.graph_walks import (
    GOAL,
    HALL,
    MEADOW,
    START,
    GraphWalk,
    crossing,
    crossing_walks,
    random_graph,
    random_walks,
)

EDGES = np.array([[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0]], bool)  # 3 <-> 2 -> 1 -> 0


def test_a_walk_by_hand():
    env = GraphWalk(EDGES, 0, [3], limit=5, missed=7.0)
    assert env.reset(seed=1) == (3, {})
    assert env.step(1) == (3, -1.0, False, False, {})  # no edge leads there
    assert env.step(2) == (2, -1.0, False, False, {})
    assert env.step(1) == (1, -1.0, False, False, {})
    assert env.step(0) == (0, -1.0, True, False, {})
    env.reset()
    for _ in range(4):
        assert env.step(1)[1:4] == (-1.0, False, False)
    assert env.step(1) == (3, -8.0, False, True, {})  # the steps are over
    env.reset()
    for action in (2, 3, 2, 1):
        env.step(action)
    assert env.step(0) == (0, -1.0, True, False, {})  # with the last step
    assert_array_equal(env.state(2), [0, 0, 1, 0])
    assert env.state(2).dtype == np.float32


def test_the_distances_by_hand():
    assert_array_equal(GraphWalk(EDGES, 0, [1]).distances(), [0, 1, 2, 3])
    assert_array_equal(GraphWalk(EDGES, 3, [1]).distances(), [np.inf, np.inf, 1, 0])


def test_starts_are_drawn_with_the_seed():
    env = GraphWalk(EDGES, 0, [1, 2, 3])
    assert [env.reset(seed=s)[0] for s in range(6)] == [env.reset(seed=s)[0] for s in range(6)]
    env.reset(seed=0)
    assert {env.reset()[0] for _ in range(50)} == {1, 2, 3}
    assert {env.starting(2).reset()[0] for _ in range(9)} == {2}
    assert env.starting(2).limit == env.limit


def test_a_random_graph_has_its_successors_and_a_way_from_everywhere():
    env = random_graph(12, 2, np.random.default_rng(0), limit=6)
    assert_array_equal(env.edges.sum(axis=1), 2)
    assert not env.edges.diagonal().any()
    assert env.goal == 0 and env.starts == tuple(range(1, 12)) and env.limit == 6
    limits = [random_graph(12, 2, np.random.default_rng(seed), limit=5).distances().max() for seed in range(9)]
    assert max(limits) < 5 and env.distances().max() < 6  # some of these are not the first that were drawn


def test_random_walks_go_along_edges_and_pay_for_each_step():
    env = random_graph(12, 3, np.random.default_rng(0))
    walks = random_walks(env, 300, np.random.default_rng(1))
    assert {walk.states[0].argmax() for walk in walks} == set(range(1, 12))
    for walk in walks:
        nodes = walk.states.argmax(1)
        assert env.edges[nodes, walk.actions].all() and len(nodes) <= 10
        assert_array_equal(nodes[1:], walk.actions[:-1])
        assert walk.ended == (walk.actions[-1] == 0)
        assert_allclose(walk.total, -len(nodes) - (0 if walk.ended else 10))
    assert {walk.ended for walk in walks} == {True, False}
    again = random_walks(random_graph(12, 3, np.random.default_rng(0)), 300, np.random.default_rng(1))
    assert all(np.array_equal(one.actions, other.actions) for one, other in zip(walks, again, strict=True))


def test_the_crossing():
    env = crossing()
    steps = env.distances()
    assert (steps[START], steps[HALL], steps[MEADOW]) == (2, 1, 3)
    for share in (0.0, 0.5):
        walks = crossing_walks(1000, share, np.random.default_rng(0))
        assert all(walk.ended and env.edges[walk.states.argmax(1), walk.actions].all() for walk in walks)
        ways = {START: [], HALL: []}
        for walk in walks:
            ways[int(walk.states[0].argmax())].append((int(walk.actions[0]), walk.total))
        assert abs(len(ways[START]) - 500) < 60
        found = {way: ways[START].count(way) / len(ways[START]) for way in ways[START]}
        expected = {(MEADOW, -4.0): 0.5, (HALL, -7.0): 0.5 * (1 - share), (HALL, -2.0): 0.5 * share}
        assert set(found) == {way for way, p in expected.items() if p}
        assert all(abs(found[way] - expected[way]) < 0.08 for way in found)
        assert abs(ways[HALL].count((GOAL, -1.0)) / len(ways[HALL]) - 0.5) < 0.08
        assert set(ways[HALL]) == {(GOAL, -1.0), (3, -6.0)}


def test_what_is_no_graph():
    for arguments, message in (
        ((EDGES[:3], 0, [1]), r"edges must have shape \(N, N\), got \(3, 4\)"),
        ((EDGES, 0, []), "there must be a node to start from"),
        ((EDGES, 0, [1], 0), "limit"),
        ((EDGES, 4, [1]), r"nodes are 0 ... 3, got goal=\(4,\)"),
        ((EDGES, 0, [1, -1]), r"got starts=\[1, -1\]"),
    ):
        with pytest.raises(ValueError, match=message):
            GraphWalk(*arguments)
    with pytest.raises(ValueError, match="n_nodes"):
        random_graph(3, 3, np.random.default_rng(0))


def test_an_action_that_is_no_node_is_refused_and_changes_nothing():
    env = GraphWalk(EDGES, 0, [3])
    env.reset(seed=1)
    for action in (-1, 4):
        with pytest.raises(ValueError, match=f"the node to go to, 0 ... 3, got {action}"):
            env.step(action)
    with pytest.raises(TypeError):
        env.step(1.0)
    assert (env.node, env.steps) == (3, 0) and env.step(np.int64(2))[0] == 2


def test_random_walks_leave_their_graph_as_it_was():
    env = GraphWalk(EDGES, 0, [3, 2, 1])
    twin = GraphWalk(EDGES, 0, [3, 2, 1])
    env.reset(seed=5), twin.reset(seed=5)
    random_walks(env, 3, np.random.default_rng(0))
    assert (env.node, env.steps) == (twin.node, twin.steps)
    assert [env.reset()[0] for _ in range(8)] == [twin.reset()[0] for _ in range(8)]
