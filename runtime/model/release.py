"""Rule of release: one value, from a step's settings to its gate and samples.

| mode | a row goes when |
| --- | --- |
| ready-only | nothing that comes before it can follow |
| slack | that, or when the newest event is more than `slack_ns` ahead of it |
| on arrival | it comes |
| in full | the newest event is more than `slack_ns` ahead of it, ready or not; at the end all do |

Whatever the mode, with `hold_ns` a row goes once it has waited for so long by the clock.
Source: [ssg] Def. 3.1 for the slack; in full is a K-slack buffer, which knows no promises.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from numbers import Integral
from typing import Any, Literal, TypeAlias

from slackwater.runtime.errors import SettingError
from slackwater.runtime.json_form import JsonObject
from slackwater.runtime.model.times import LONGEST_NS, format_ns
from slackwater.runtime.shown import shown

ReleaseMode = Literal["ready-only", "on arrival", "slack", "in full"]
_WITH_SLACK = ("slack", "in full")
_MODES = ("ready-only", "on arrival", *_WITH_SLACK)


@dataclass(frozen=True, slots=True)
class ReleaseRule(JsonObject):
    """Rule by which a gate releases rows.

    Attributes:
        mode: name of one of the modes above.
        slack_ns: slack in event time, from 0 to 2**61; None in the modes that have none.
        hold_ns: the longest that a row may wait by the clock, from 0 to 2**61; None if there is
            no limit.

    Raises:
        SettingError: no such mode, or a length that it cannot have.
    """

    mode: ReleaseMode = "ready-only"
    slack_ns: int | None = None
    hold_ns: int | None = None

    def __post_init__(self) -> None:
        if self.mode not in _MODES:
            raise SettingError(
                f"mode={shown(self.mode)} must be one of {', '.join(map(repr, _MODES))}"
            )
        if self.mode in _WITH_SLACK:
            object.__setattr__(self, "slack_ns", _length("slack_ns", self.slack_ns))
        elif self.slack_ns is not None:
            raise SettingError(
                f"slack_ns={shown(self.slack_ns)} must be None: a gate that is {self.mode} has no "
                "slack"
            )
        if self.hold_ns is not None:
            object.__setattr__(self, "hold_ns", _length("hold_ns", self.hold_ns))

    @classmethod
    def slack(cls, slack_ns: int, *, hold_ns: int | None = None) -> ReleaseRule:
        """Return the rule that releases a row that is so much older than the newest."""
        return cls("slack", slack_ns, hold_ns)

    @classmethod
    def hold(cls, hold_ns: int) -> ReleaseRule:
        """Return the rule that releases a row when ready, or after so long."""
        return cls(hold_ns=hold_ns)

    @classmethod
    def in_full(cls, slack_ns: int) -> ReleaseRule:
        """Return the rule of a K-slack buffer."""
        return cls("in full", slack_ns)

    @property
    def lead_ns(self) -> int | None:
        """Lead over a row that the newest event must exceed for its release.

        −1 on arrival, when it always is. None if the mode releases no row by slack.
        """
        return -1 if self.mode == "on arrival" else self.slack_ns

    @property
    def waits_in_full(self) -> bool:
        """Whether rows that are ready wait all the same."""
        return self.mode == "in full"

    @property
    def text(self) -> str:
        """The rule in a few words."""
        words: list[str] = [] if self.mode == "slack" else [self.mode]
        if self.slack_ns is not None:
            words.insert(0, f"slack {format_ns(self.slack_ns)}")
        slack_text = " ".join(words)
        if self.hold_ns is None:
            return slack_text
        held = f"hold {format_ns(self.hold_ns)}"
        return held if self.mode == "ready-only" else f"{slack_text}, {held}"

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> ReleaseRule:
        """Return the rule that `to_json` described.

        Without a mode it is of an earlier release: a slack of None was ready-only, −1 on arrival.

        Raises:
            TypeError, ValueError: it describes none.
        """
        if not isinstance(plain, Mapping):
            raise TypeError(f"{shown(plain)} is not a rule")
        slack_ns, hold_ns = plain.get("slack_ns"), plain.get("hold_ns")
        mode: Any = plain.get("mode")
        if mode is None:
            mode = "ready-only" if slack_ns is None else "on arrival" if slack_ns == -1 else "slack"
            slack_ns = slack_ns if mode == "slack" else None
        try:
            return cls(mode, slack_ns, hold_ns)
        except SettingError as problem:
            raise ValueError(str(problem)) from None


READY_ONLY = ReleaseRule()
"""Rows go when they are ready, however long that takes."""
ON_ARRIVAL = ReleaseRule("on arrival")
"""Rows go as they come."""


class ByDeadline(Enum):
    """The type of BY_DEADLINE."""

    BY_DEADLINE = "by the deadline"

    @property
    def text(self) -> str:
        """The same in a few words, as of a rule."""
        return "slack by the deadline"


BY_DEADLINE = ByDeadline.BY_DEADLINE
"""The rule follows from the flow's deadline, and changes while it runs; ready-only until then."""

Release: TypeAlias = ReleaseRule | ByDeadline
"""What a step with a gate says of it."""


def _length(name: str, ns: Any) -> int:
    """Return a length of time as an int: a policy may give a NumPy number."""
    if isinstance(ns, bool) or not isinstance(ns, Integral) or not 0 <= int(ns) <= LONGEST_NS:
        raise SettingError(
            f"{name}={shown(ns)} must be a whole number of nanoseconds, from 0 to 2**61 (73 years)"
        )
    return int(ns)
