"""Learning-rate schedules: the factor on the peak rate at each step of training."""


def warmup_then_linear_decay(step, n_steps: int, warmup: int):
    """Rise linearly to 1 over `warmup` steps, then fall linearly to 0 at `n_steps` (Devlin et al. 2018, A.2).

    Parameters
    ----------
    step : 0 for the first update; an int, or a tensor of floats in any framework
    n_steps : updates in all
    warmup : updates until the peak

    Returns
    -------
    The factor, in (0, 1] at every step from 0 to n_steps - 1.

    Raises
    ------
    ValueError : not 0 <= warmup < n_steps.
    """
    if not 0 <= warmup < n_steps:
        raise ValueError(f"warmup must lie in 0 ... n_steps - 1 = {n_steps - 1}, got {warmup}")
    rising = (step + 1) / (warmup + 1)
    falling = (n_steps - step) / (n_steps - warmup)
    return (rising + falling - abs(rising - falling)) / 2  # the smaller of the two, for numbers and tensors alike
