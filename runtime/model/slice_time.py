"""Time of the rows of a slice, by the fixed part of its cost.

```
fixed    rows                           2 ms: a short fixed part
├──┼──────────────┤
fixed                rows                             a fifth of the slice, up to 20 ms
├─────────┼──────────────────────────────────────┤
```

One rule for slots, in nanoseconds, and for predictions, in seconds.
"""

from __future__ import annotations

__all__ = ["time_of_rows"]

TIMES_FIXED = 4
"""Time of a slice's rows, in fixed parts: so the fixed part is at most a fifth of the slice."""


def time_of_rows(fixed: float, *, usual: float, longest: float) -> float:
    """Return the time of a slice for its rows, >= 0, in one unit.

    Args:
        fixed: cost of a slice apart from its rows.
        usual: length of a slice with a short fixed part.
        longest: length of a slice that a long fixed part may lead to.
    """
    return max(usual - fixed, min(TIMES_FIXED * fixed, longest - fixed), 0.0)
