"""Stop of a simulated job by its user, between two slices or in one."""

from __future__ import annotations

from slackwater.runtime.errors import SlackwaterError
from slackwater.runtime.life import StopAsked
from slackwater.runtime.model.whose_code import RUNNING
from slackwater.runtime.simulate.life import SimulatedLife

__all__ = ["AskedStop"]


class AskedStop:
    """Remembers a request to stop until the run looks; safe in signal handlers.

    Attributes:
        is_stepping: whether a slot runs its `step` now, and no sink writes.
    """

    def __init__(self) -> None:
        self.is_stepping = self._is_asked = self._has_broken = False

    def ask(self) -> None:
        """Stop the job, once the current slice is over."""
        self._is_asked = True

    def interrupt(self) -> bool:
        """Stop the job; return whether to interrupt a step's user code, which runs now.

        A sink is not interrupted: readers see whole parts of its output.
        """
        self.ask()
        self._has_broken = self.is_stepping and RUNNING.get() is not None
        return self._has_broken

    def tell(self, life: SimulatedLife) -> None:
        """Pass a request to stop to the job's life."""
        if self._is_asked:
            self._is_asked = self._has_broken = False
            life.tell(StopAsked())

    def broke(self, life: SimulatedLife, slot: str, problem: BaseException) -> None:
        """End a slot whose slice broke off: as failed, or, if interrupted, as stopped.

        Raises:
            BaseException: `problem` is no error of ours, and the slice was not interrupted.
        """
        if self._has_broken:  # user code may have turned the interrupt into any error
            self._has_broken = False
            self.tell(life)
            life.leave_slice(slot)
        elif isinstance(problem, SlackwaterError):
            life.fail(slot, problem)
        else:
            raise problem
        self.is_stepping = False
