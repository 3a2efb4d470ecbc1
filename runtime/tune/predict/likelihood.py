"""Likelihood of examples under a Gaussian process, and the lengths that maximize it.

scikit-learn takes ten times as long: it builds an (n, n, features) array of derivatives at each
step, where matrix products suffice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slackwater.runtime.tune.predict.forecast import FloatArray

STEPS = 25
"""Steps of the search: the last digits of a length do not matter."""
SCALES, LENGTHS, NOISES = (1e-3, 1e2), (0.05, 200.0), (1e-3, 2.0)
"""Bounds of the search, with features and target on a scale of deviation 1."""


@dataclass(frozen=True)
class Matern:
    """Matérn kernel (ν = 3/2): scale · (1 + √3 r) exp(−√3 r), plus noise.

    Attributes:
        scale: variance.
        lengths: shape (features,); r is the distance in lengths.
        noise: variance; 0 if each example has its own.
    """

    scale: float
    lengths: FloatArray
    noise: float


def likeliest(at: FloatArray, y: FloatArray, *, noise: FloatArray | None) -> Matern:
    """Return the kernel that makes the examples likeliest.

    Args:
        at: features of examples, shape (n, features).
        y: values of examples, shape (n,).
        noise: shape (n,), the variance of each example: then one length is sought for all features.
            None if one noise is sought for all, and a length for each feature.

    Source: C. E. Rasmussen and C. K. I. Williams (2005), §5.4.1.
    """
    from scipy.optimize import minimize  # noqa: PLC0415 (slow to import)

    lengths = at.shape[1] if noise is None else 1
    bounds = [SCALES, *([LENGTHS] * lengths), *([] if noise is not None else [NOISES])]
    start = [1.0, *([3.0] * lengths), *([] if noise is not None else [0.1])]
    result = minimize(
        lambda logs: _unlikely(np.exp(logs), at, y, noise),
        np.log(start),
        jac=True,
        bounds=np.log(bounds),
        method="L-BFGS-B",
        options={"maxiter": STEPS},
    )
    best = np.exp(result.x)
    own = float(best[-1]) if noise is None else 0.0
    return Matern(float(best[0]), np.broadcast_to(best[1 : 1 + lengths], at.shape[1:]).copy(), own)


def _unlikely(
    parameters: FloatArray, at: FloatArray, y: FloatArray, noise: FloatArray | None
) -> tuple[float, FloatArray]:
    """Return −log likelihood without its constant, and its gradient by log parameters."""
    from scipy.linalg import LinAlgError, cho_solve, cholesky  # noqa: PLC0415

    lengths = parameters[1:-1] if noise is None else parameters[1:]
    scaled = at / lengths
    squares = (scaled**2).sum(axis=1)
    distance = np.sqrt(3.0 * np.maximum(squares[:, None] + squares - 2 * scaled @ scaled.T, 0.0))
    fall = parameters[0] * np.exp(-distance)
    kernel = (1.0 + distance) * fall
    own = parameters[-1] if noise is None else noise
    try:
        lower = cholesky(kernel + np.diag(np.broadcast_to(own, len(y)) + 1e-8), lower=True)
    except LinAlgError:
        return 1e25, np.zeros_like(parameters)
    inverse = cho_solve((lower, True), np.eye(len(y)))
    weights = inverse @ y
    value = 0.5 * float(y @ weights) + float(np.log(np.diag(lower)).sum())
    pull = np.outer(weights, weights) - inverse
    # d kernel / d log length_j = 3 fall (difference_j / length_j)², summed against `pull`.
    part = pull * fall
    by_length = 3.0 * (
        2 * part.sum(axis=1) @ scaled**2 - 2 * ((part @ scaled) * scaled).sum(axis=0)
    )
    gradient = [
        (pull * kernel).sum(),
        *(by_length if noise is None else [by_length.sum()]),
        *([float(np.trace(pull)) * parameters[-1]] if noise is None else []),
    ]
    return value, -0.5 * np.array(gradient)
