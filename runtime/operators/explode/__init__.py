"""`explode`: a row for each element of a list."""

from slackwater.runtime.operators.explode.stream import Exploding

__all__ = ["Exploding"]
