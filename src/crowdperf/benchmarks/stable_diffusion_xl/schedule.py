"""The Euler scheduler of Stable Diffusion XL: which noise levels the steps go through.

Source: EulerDiscreteScheduler of diffusers 0.42.1 (PyPI), schedulers/scheduling_euler_discrete.py, with the settings
that diffusers has for this checkpoint (loaders/single_file_utils.py): 1,000 levels of training whose betas are squares
between 0.00085 and 0.012, steps at equal distances from the first level on, an offset of 1. Needs no library.
"""

import math

LEVELS = 1000
_BETAS = (0.00085, 0.012)
_OFFSET = 1


def euler_schedule(steps: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the level of each step as the network is told it, and the noise before each step and after the last."""
    first, last = (math.sqrt(beta) for beta in _BETAS)
    kept, noise = 1.0, []
    for level in range(LEVELS):
        kept *= 1.0 - (first + (last - first) * level / (LEVELS - 1)) ** 2
        noise.append(math.sqrt((1.0 - kept) / kept))
    times = [number * (LEVELS // steps) + _OFFSET for number in reversed(range(steps))]
    return tuple(map(float, times)), (*(noise[time] for time in times), 0.0)


def first_scale(steps: int) -> float:
    """Return what the first latent picture, of deviation 1, is multiplied with."""
    return math.sqrt(euler_schedule(steps)[1][0] ** 2 + 1.0)
