"""Whose code runs: the step whose function, or source, of the user's is being called.

A host looks here when something is printed, and so knows who said it. It follows the thread that
calls; a thread that the user's code has started itself belongs to nobody.
"""

from __future__ import annotations

from contextvars import ContextVar

RUNNING: ContextVar[str | None] = ContextVar("the step whose code runs", default=None)
