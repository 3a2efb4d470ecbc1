"""A stop that the user of a simulated job asks for while it runs, between two slices or in one."""

from __future__ import annotations

from slackwater.runtime.errors import SlackwaterError
from slackwater.runtime.life import StopAsked
from slackwater.runtime.model.whose_code import RUNNING
from slackwater.runtime.simulate.life import SimulatedLife

__all__ = ["AskedStop"]


class AskedStop:
    """Remembers what was asked until the run looks; `ask` and `interrupt` suit signal handlers.

    Attributes:
        is_stepping: whether a slot is at its `step` now, and no sink at what leaves.
    """

    def __init__(self) -> None:
        self.is_stepping = self._is_asked = self._has_broken = False

    def ask(self) -> None:
        """Let the job end as its user's, once the slice that runs is over."""
        self._is_asked = True

    def interrupt(self) -> bool:
        """Ask; return whether users' code of a step runs now, which is to be broken off.

        That of a sink is not: what readers see of its output is whole.
        """
        self.ask()
        self._has_broken = self.is_stepping and RUNNING.get() is not None
        return self._has_broken

    def tell(self, life: SimulatedLife) -> None:
        """Tell the job's life what was asked."""
        if self._is_asked:
            self._is_asked = self._has_broken = False
            life.tell(StopAsked())

    def broke(self, life: SimulatedLife, slot: str, problem: BaseException) -> None:
        """End a slot whose slice broke off: as failed, or, interrupted, as stopped.

        Raises:
            BaseException: it is no error of ours, nor was the slice interrupted.
        """
        if self._has_broken:  # whatever the user's code has made of that
            self._has_broken = False
            self.tell(life)
            life.leave_slice(slot)
        elif isinstance(problem, SlackwaterError):
            life.fail(slot, problem)
        else:
            raise problem
        self.is_stepping = False
