"""More examples of a property than the profile in `tests/conftest.py` says, as a multiple of it."""

from __future__ import annotations

from hypothesis import settings

twice = settings(max_examples=2 * settings().max_examples)
"""For long runs of few kinds of steps, where it takes many to meet all that can follow another."""
five_times = settings(max_examples=5 * settings().max_examples)
"""For what is done in microseconds, and in which anything may come behind anything."""
