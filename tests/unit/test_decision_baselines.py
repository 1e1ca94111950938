"""Rivals of a Decision Transformer: the best of the data, a table by returns, and planning on the data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.acting import graph_walks
from course_lib.acting.rollouts import rollout
from course_lib.batches.trajectories import Episode
from course_lib.evaluation.decision_baselines import Planner, Replay, ReturnTable, best_fraction

EYE = np.eye(5, dtype=np.float32)


def episode(nodes, rewards, actions=None, ended=True):
    """An episode through nodes; each action is the next node, if none are given."""
    actions = [*nodes[1:], 0] if actions is None else actions
    return Episode(EYE[list(nodes)], np.array(actions), np.array(rewards, float), ended)


def test_the_best_fraction_is_of_each_start():
    far = [episode([4], [float(r)]) for r in (-9, -7, -8, -6)]
    near = [episode([1], [-1.0]), episode([1], [-2.0])]
    mixed = [far[0], near[0], *far[1:], near[1]]
    assert [e.total for e in best_fraction(mixed, 0.5)] == [-1, -7, -6]
    assert [e.total for e in best_fraction(mixed, 0.01)] == [-1, -6]
    assert best_fraction(mixed, 1) == mixed
    for share in (0, 1.1):
        with pytest.raises(ValueError, match="share must lie above 0"):
            best_fraction(mixed, share)


def test_replay_does_what_the_best_did():
    policy = Replay([episode([1, 2], [-5, -5], [3, 4]), episode([1, 2, 3], [-1, -1, -1], [2, 3, 0]), episode([2], [0])])
    assert policy.total(EYE[1]) == -3 and policy.total(EYE[2]) == 0
    states = EYE[[1, 4, 4, 4]]  # wherever it comes to
    assert [policy(states[: t + 1], [0] * t, [0.0] * t) for t in range(4)] == [2, 3, 0, 0]
    with pytest.raises(KeyError):
        policy.total(EYE[4])


def test_the_table_counts_by_return_and_takes_the_nearest():
    table = ReturnTable([
        *[episode([1], [-2.0], [3])] * 2, episode([1], [-2.0], [4]), episode([1], [-6.0], [2]),
        episode([2], [-1.0], [4]), episode([2], [-1.0], [3]),
    ])  # fmt: skip

    def says(state, asked, rewards=()):
        return table.asking(asked)(EYE[[0] * len(rewards) + [state]], [0] * len(rewards), list(rewards))

    assert says(1, -2) == 3  # twice of three times
    assert says(1, -6) == 2
    assert says(1, -9) == 2 and says(1, 5) == 3  # the nearest
    assert says(1, -4) == 3  # of two, the larger
    assert says(1, -4, [1.0]) == 2 and says(1, -8, [-6.0]) == 3  # what has come is subtracted
    assert says(2, -1) == 3  # level: the smaller id
    assert says(4, -1) == 0  # never seen
    assert table.asked == 0.0


def test_the_plan_joins_pieces():
    # 1 -> 2 -> 3 was dear, 2 -> 4 was cheap, and 1 -> 3 was in between
    episodes = [episode([1, 2, 3], [-1, -9, -1]), episode([1, 3], [-4, -1]), episode([2, 4], [-1, -1])]
    plan = Planner(episodes)
    assert plan.value(EYE[1]) == -3 and plan.value(EYE[2]) == -2
    assert plan(EYE[[1]], [], []) == 2 and plan(EYE[[1, 2]], [2], [-1]) == 4
    assert plan(EYE[[0]], [], []) == 0
    assert Planner(episodes, discount=0.5).value(EYE[1]) == -1 + 0.5 * (-1 + 0.5 * -1)
    with pytest.raises(KeyError):
        plan.value(EYE[0])


def test_the_plan_takes_means_of_what_came_by_luck():
    lucky = [episode([1], [10.0], [2])] + [episode([1], [-10.0], [2])] * 3 + [episode([1], [0.0], [3])]
    plan = Planner(lucky)
    assert plan.q[EYE[1].tobytes()] == {2: -5.0, 3: 0.0}
    assert plan(EYE[[1]], [], []) == 3
    assert ReturnTable(lucky, 10.0)(EYE[[1]], [], []) == 2  # luck is taken for skill


def test_an_episode_that_was_cut_short_does_not_end_in_the_plan():
    dear, cut = episode([1, 2, 3], [-1, -1, -5]), episode([1], [-1.0], [4], ended=False)
    assert Planner([dear, cut]).value(EYE[1]) == -7
    assert Planner([dear, cut._replace(ended=True)]).value(EYE[1]) == -1
    assert Planner([cut._replace(states=EYE[[1, 2]], actions=np.array([2, 1]), rewards=np.array([-1.0, -1.0]))]).value(
        EYE[1]
    ) == -np.inf  # nobody arrived


def test_where_chance_leads_back_the_plan_has_a_value_and_where_nothing_leads_to_an_end_none():
    slips = episode([1, 1], [-1, -1], [2, 2])  # half of the times one stays: two steps in the mean
    assert_allclose(Planner([slips]).value(EYE[1]), -2)
    lost = episode([1, 3, 3, 3], [-1.0] * 4, [0, 0, 0, 0], ended=False)  # from 3 nobody got away
    plan = Planner([slips, lost])
    assert plan.q[EYE[1].tobytes()][0] == plan.value(EYE[3]) == -np.inf
    assert_allclose(plan.value(EYE[1]), -2)


def test_where_pieces_must_be_joined_the_plan_alone_finds_the_best_way():
    env, walks = graph_walks.crossing(), graph_walks.crossing_walks(300, 0.0, np.random.default_rng(0))
    start = env.starting(graph_walks.START)

    def total(policy):
        return rollout(start, policy, env.state, 20).total

    assert total(Planner(walks)) == -env.distances()[graph_walks.START] == -2
    assert total(Replay(walks)) == total(ReturnTable(walks, -2.0)) == -4


def test_the_plan_on_many_walks_is_the_shortest_way():
    env = graph_walks.random_graph(10, 3, np.random.default_rng(3))
    plan = Planner(graph_walks.random_walks(env, 400, np.random.default_rng(4)))
    values = [plan.value(env.state(node)) for node in env.starts]
    assert_allclose(values, -env.distances()[1:])


def test_returns_that_differ_by_rounding_alone_are_one_return():
    """0.3 + 0.2 + 0.1 and 0.1 + 0.2 + 0.3 are two numbers of float64."""
    state = np.ones((3, 1), np.float32) * [[1], [2], [3]]
    often = [Episode(state, np.array([1, 1, 1]), np.array([0.3, 0.2, 0.1]))] * 9
    seldom = [Episode(state, np.array([0, 0, 0]), np.array([0.1, 0.2, 0.3]))]
    assert ReturnTable(often + seldom, 0.6)(state[:1], [], []) == 1


@pytest.mark.parametrize("kind", [ReturnTable, Planner])
def test_actions_that_are_no_ids_are_refused(kind):
    with pytest.raises(TypeError, match="actions should be ids, integers, got float32"):
        kind([Episode(np.ones((1, 1), np.float32), np.array([0.7], np.float32), np.array([1.0]))])
