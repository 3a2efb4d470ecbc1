"""Outlook of steps that shed: how much they drop, and whether it helps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from slackwater.runtime.foresight.predicted.shed_course import ShedCourse
from slackwater.runtime.json_form import JsonView, View
from slackwater.runtime.model import format_s
from slackwater.runtime.shedding.settings import Drops

__all__ = ["ShedOutlook", "shed_lines", "shed_texts"]

_WHAT = {
    "stretches": "its rows, in stretches",
    "events": "the events that its windows wait for",
    "pairs": "its pairs of an event and a window",
}
_PASSED_OVER = "which loses the matches of those stretches"
OVERSHOT = 0.02
"""Largest excess over the bound, as a share, that counting by subintervals may cause."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ShedOutlook(JsonView):
    """Outlook of a stage that sheds.

    Attributes:
        stage: its name.
        origin: its step.
        bound_s: bound on the latency of the flow.
        f: share of the bound from which on events are dropped.
        unshed_s: worst latency without drops; inf: it grows while rates stay.
        elsewhere_s: worst latency if the stage took no time: gates, links, other stages.
        cores: CPU seconds a second that the stage takes, without drops.
        saved: the share of that work that is saved if all is dropped; None if unknown, then 1.
        course: drops over time, and the latency with them.
        cause: place where latency is lost, if elsewhere.
        remedy: advice that helps without drops.
        drops: kind of drops: see `SheddingSettings`.
    """

    stage: str
    origin: str
    bound_s: float
    f: float
    unshed_s: float
    elsewhere_s: float
    cores: float
    saved: float | None
    course: ShedCourse
    cause: str
    remedy: str
    drops: Drops

    JSON: ClassVar[View] = {
        "stage": "stage",
        "bound_s": "bound_s",
        "starts_at_s": "starts_at_s",
        "keeps_without": "keeps_unshed",
        "worst_without_s": "unshed_s",
        "elsewhere_s": "elsewhere_s",
        "sheds": "sheds",
        "from_s": "course.from_s",
        "dropped": "course.dropped",
        "dropped_since": "course.dropped_since",
        "worst_s": lambda outlook: outlook.course.worst_s if outlook.sheds else outlook.unshed_s,
        "helps": "helps",
        "saved": "saved",
        "text": "text",
    }

    @property
    def starts_at_s(self) -> float:
        """Latency from which on events are dropped."""
        return self.f * self.bound_s

    @property
    def keeps_unshed(self) -> bool:
        """Whether the bound is kept without drops."""
        return self.unshed_s <= self.bound_s

    @property
    def sheds(self) -> bool:
        """Whether events will be dropped."""
        return self.course.from_s is not None

    @property
    def is_elsewhere(self) -> bool:
        """Whether the bound is broken elsewhere, so that drops here do not help."""
        return self.elsewhere_s > self.bound_s

    @property
    def helps(self) -> bool:
        """Whether the bound is kept, with drops if necessary."""
        if not self.sheds:
            return self.keeps_unshed
        return self.course.worst_s <= self.bound_s * (1 + OVERSHOT)

    @property
    def text(self) -> str:
        """Text for users."""
        bound = format_s(self.bound_s)
        if self.is_elsewhere:
            also = ""
            if self.sheds:
                also = f"; so that its own queue stays within it, {self._dropped} will be dropped"
            return (
                f"{self.origin} cannot keep {bound} by dropping: {self.cause}, and nothing that is "
                f"dropped here mends that{also}; {self.remedy}"
            )
        if not self.sheds and not self.keeps_unshed:
            return (
                f"{self.origin} breaks {bound}: the worst latency is "
                f"{format_s(self.unshed_s)}, and so little of that is its own queue that nothing "
                f"is dropped; {self.remedy}"
            )
        if not self.sheds:
            return (
                f"{self.origin} keeps {bound} with nothing dropped: worst {format_s(self.unshed_s)}"
                f", and it drops from {format_s(self.starts_at_s)} on"
            )
        from_s = self.course.from_s
        began = f"from {format_s(from_s)} on" if from_s else "from the start"
        if not self.helps:
            saved = self.cores * (1.0 if self.saved is None else self.saved)
            is_event = self.drops == "events"
            rows = f" unless rows are passed over, {_PASSED_OVER}" if is_event else ""
            return (
                f"{self.origin} cannot keep {bound} by dropping: its events take {self.cores:.2f} "
                f"s a second, of which dropping all saves {saved:.2f} s; {began} {self._dropped} "
                f"will be dropped, and latency is {format_s(self.course.worst_s)} all the "
                f"same{rows}; {self.remedy}"
            )
        why = ", for it begins before the bound is reached" if self.keeps_unshed else ""
        return (
            f"{self.origin} keeps {bound} by dropping: {began} {self._dropped}{why}; latency then "
            f"stays at about {format_s(self.course.worst_s)}. For nothing to be dropped: "
            f"{self.remedy}{self._unsure}"
        )

    @property
    def _dropped(self) -> str:
        since = self.course.dropped_since
        return f"about {since:.0%} of {_WHAT[self.drops]}"

    @property
    def _unsure(self) -> str:
        if self.saved is not None:
            return ""
        return " (if dropping all saves all of its work, which a history does not tell)"


def shed_texts(outlooks: Sequence[ShedOutlook]) -> list[str]:
    """Return a sentence for each step; of replicas, for the worst one."""
    worst: dict[str, ShedOutlook] = {}
    for outlook in outlooks:
        known = worst.get(outlook.origin)
        if known is None or _badness(outlook) > _badness(known):
            worst[outlook.origin] = outlook
    return [outlook.text for outlook in worst.values()]


def shed_lines(outlooks: Sequence[ShedOutlook]) -> list[str]:
    """Return lines of text, one for each step."""
    texts = shed_texts(outlooks)
    words = ["shedding    ", *[" " * 12] * (len(texts) - 1)]
    return [f"{word}{text}" for word, text in zip(words, texts, strict=True)]


def _badness(outlook: ShedOutlook) -> tuple[bool, float, float]:
    return not outlook.helps, outlook.course.dropped, outlook.course.worst_s
