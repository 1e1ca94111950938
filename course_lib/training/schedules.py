"""Learning-rate schedules: the rate at each step of training."""

from collections.abc import Callable

from course_lib.training.arguments import check_positive_or_zero


def schedule_of(rate: float | Callable[[int], float] | None, own: float | None = None) -> Callable[[int], float]:
    """A function of the step (0 for the first) that gives the rate, from one, or from a number that stays the same.

    Parameters
    ----------
    rate : None is the optimizer's own
    own : that of the optimizer; None, or 0, is 1e-3

    Raises
    ------
    TypeError : neither; for a function, when it is asked for a rate.
    ValueError : a rate that is negative or not finite.
    """
    rate = own or 1e-3 if rate is None else rate
    if callable(rate):
        return lambda step: check_positive_or_zero(f"the rate at step {step}", rate(step))
    constant = check_positive_or_zero("the rate", rate, ", or a function of the step")
    return lambda step: constant


def warmup_then_linear_decay(step, n_steps: int, warmup: int, peak: float = 1.0):
    """Rise linearly to `peak` over `warmup` steps, then fall linearly to 0 at `n_steps` (Devlin et al. 2018, A.2).

    Parameters
    ----------
    step : 0 for the first update; an int, or a tensor of floats in any framework
    n_steps : updates in all
    warmup : updates until the peak
    peak : the largest rate; with 1 what is returned is a factor, as `torch.optim.lr_scheduler.LambdaLR` wants it

    Returns
    -------
    The rate, in (0, peak] at every step from 0 to n_steps - 1.

    Raises
    ------
    ValueError : not 0 <= warmup < n_steps, or a peak that is not positive.
    """
    if not peak > 0:
        raise ValueError(f"peak must be positive, got {peak}")
    if not 0 <= warmup < n_steps:
        raise ValueError(f"warmup must lie in 0 ... n_steps - 1 = {n_steps - 1}, got {warmup}")
    rising = (step + 1) / (warmup + 1)
    falling = (n_steps - step) / (n_steps - warmup)
    return peak * (rising + falling - abs(rising - falling)) / 2  # the smaller, for numbers and tensors alike


def warmup_then_inverse_root(step, d_model: int, warmup: int = 4000):
    """The rate that rises linearly over `warmup` steps, then falls with the root of the step (Vaswani et al. 2017).

    rate = d_model^-0.5 min(n^-0.5, n warmup^-1.5) with n = step + 1 (section 5.3, eq. 3). This is the rate itself
    and not a factor; its peak, at n = warmup, is (d_model warmup)^-0.5.

    Parameters
    ----------
    step : 0 for the first update; an int, or a tensor of floats in any framework
    d_model : features of the model; wider models train at lower rates
    warmup : updates until the peak; 4000 in the paper

    Raises
    ------
    ValueError : d_model or warmup below one.
    """
    for name, value in (("d_model", d_model), ("warmup", warmup)):
        if value < 1:
            raise ValueError(f"{name} must be 1 or more, got {value}")
    n = step + 1
    later = (n + warmup + abs(n - warmup)) / 2  # the larger of the two, for numbers and tensors alike
    return d_model**-0.5 * n * later**-1.5
