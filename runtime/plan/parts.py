"""Parts of steps: from a subject to the stages of a plan."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from slackwater.runtime.model.subject import Subject

__all__ = ["parts_named", "parts_of"]


class _Part(Protocol):
    @property
    def subject(self) -> Subject: ...


_AnyPart = TypeVar("_AnyPart", bound=_Part)


def parts_of(subject: Subject, stages: Iterable[_AnyPart]) -> list[_AnyPart]:
    """Return the stages of a step or of a part, in the plan's order.

    Each stage has its own subject: that is the way back.

    Args:
        subject: a step, or one part of it.
        stages: stages of a plan, or what is known of each.
    """
    return [stage for stage in stages if subject.includes(stage.subject)]


def parts_named(name: str, stages: Iterable[_AnyPart]) -> list[_AnyPart]:
    """Return the stages of the step, or the one stage, of that name.

    No step has the name of another step's part: `check_names` refuses that.
    """
    return [stage for stage in stages if name in (stage.subject.step, stage.subject.name)]
