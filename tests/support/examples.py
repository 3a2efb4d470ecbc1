"""More examples of a property than the profile in `tests/conftest.py` says, or fewer."""

from __future__ import annotations

from hypothesis import settings

twice = settings(max_examples=2 * settings().max_examples)
"""For long runs of few kinds of steps, where it takes many to meet all that can follow another."""
eight_times = settings(max_examples=8 * settings().max_examples)
"""For what is done in a few ms at most, and in which anything may come after anything."""
a_third = settings(max_examples=settings().max_examples // 3)
"""For a dear property that ten cases or so are put through: together they try hundreds."""
