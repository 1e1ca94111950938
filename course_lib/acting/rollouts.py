"""From predictions to an episode: acting in an environment, once for every framework.

An environment is what has the two methods of gymnasium's: `reset(seed=)` returns an observation and a dictionary,
`step(action)` an observation, a reward, whether the episode is over, whether it is cut short, and a dictionary.
A policy answers one question: `policy(states, actions, rewards)` says what to do, given T states and what was done and
paid in the T - 1 steps before the last. So a table, a rule and a model act by the same loop.
"""

from collections.abc import Callable

import numpy as np

from course_lib.batches.trajectories import Episode
from course_lib.checks import check_count


def rollout(env, policy: Callable, state_of: Callable, max_steps: int, seed: int | None = None) -> Episode:
    """One episode.

    Parameters
    ----------
    env : with `reset` and `step`, as gymnasium's
    policy : states (T, d_state), a list of T - 1 actions, a list of T - 1 rewards -> action
    state_of : observation -> state, numbers (d_state,)
    max_steps : after which it ends in any case
    seed : of the environment's luck, and of where it begins; None leaves that to the environment

    Returns
    -------
    Episode of 1 to max_steps steps.
    """
    check_count("max_steps", max_steps)
    observation, _ = env.reset(seed=seed)
    states, actions, rewards, ended, cut_short = [], [], [], False, False
    while not (ended or cut_short) and len(rewards) < max_steps:
        states.append(np.asarray(state_of(observation), np.float32))
        action = policy(np.stack(states), actions, rewards)
        observation, reward, ended, cut_short, _ = env.step(action)
        actions.append(action)
        rewards.append(float(reward))
    return Episode(np.stack(states), np.asarray(actions), np.array(rewards), bool(ended))


class Asking:
    """A policy: a Decision Transformer is asked for a return, and for less by each reward that has come.

    Parameters
    ----------
    next_action : the model, as a framework's `NextAction` wraps it
    asked : the return of the whole episode, in the units of the rewards
    scale : what the model's returns were divided by in training
    context : how many steps the model reads, the last ones, this one included; as many as in training. None: all
    choose : what the model predicts of this step, (d_action,) -> the action: of logits the largest, or draw from them;
        of numbers `lambda numbers: numbers`

    Raises
    ------
    ValueError : a scale that is not positive, a context below one.
    """

    def __init__(
        self,
        next_action: Callable,
        asked: float,
        scale: float = 1.0,
        context: int | None = None,
        choose: Callable = np.argmax,
    ):
        if not scale > 0:
            raise ValueError(f"scale must be positive, that of the training; got {scale!r}")
        if context is not None:
            check_count("context", context)
        self.next_action, self.asked, self.scale, self.context, self.choose = next_action, asked, scale, context, choose

    def __call__(self, states, actions, rewards):
        """states (T, d_state), what was done and paid in the T - 1 steps before the last -> an action."""
        n, d_action = len(states), self.next_action.d_action
        done = np.zeros((n, d_action), np.float32)  # the last is yet to be chosen
        for t, action in enumerate(actions):
            done[t] = np.eye(d_action)[action] if np.ndim(action) == 0 else action
        returns = (self.asked - np.cumsum([0.0, *rewards])) / self.scale
        last = slice(0 if self.context is None else max(0, n - self.context), n)
        predicted = self.next_action(
            np.asarray(states[last], np.float32), done[last], returns[last, None].astype(np.float32), np.arange(n)[last]
        )
        return self.choose(predicted)
