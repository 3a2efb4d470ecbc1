"""K-slack and MP-K-slack: rows wait for a given time, or for the largest delay seen.

```
event time   1   4   3   5   6   9   7   8   10  13      [thesis] Fig. 2.6
newest       1   4   4   5   6   9   9   9   10  13
K            0   0   0   2   2   2   2   2   3   3       of MP-K-slack
leaves       1   4   3   -   -  5 6  7   -   -  8 9 10   3 is late; 13 leaves at the end
```

Fig. 2.6 releases 3 with 5 and 7 with 10, since its buffer is examined only when the newest moves.
Ours releases a row as soon as it may. That can make a row late that waits in the paper: of 1, 10,
5, 4, 12 with K = 2, 5 leaves when it comes, and 4 is late; the paper releases 4 and 5 at 12.
"""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.runtime.calls import checked_options
from slackwater.runtime.model import Duration, Int64Array, duration_ns, format_ns
from slackwater.runtime.model.state import Fields
from slackwater.runtime.order.buffer import (
    Buffer,
    Buffering,
    Late,
    Released,
    check_buffer,
    check_delay_from,
)
from slackwater.runtime.order.largest_delay import DelayFrom, LargestDelay
from slackwater.runtime.order.reorder import Reordering

HOUR = "1h"


@checked_options
def k_slack(slack: Duration, *, late: Late = "drop") -> KSlack:
    """Return the policy that holds each row until the newest is `slack` ahead.

    Args:
        slack: slack in event time, such as "2s".
        late: rows older than a released one: "drop" or "pass", counted either way.

    Raises:
        SettingError: the slack is not a length of time above zero, or a word is unknown.

    Source: [thesis] §2.3.1.
    """
    return KSlack(duration_ns(slack, what="k_slack: slack"), late=late)


@checked_options
def mp_k_slack(
    *, at_most: Duration = HOUR, delay_from: DelayFrom = "next", late: Late = "drop"
) -> MpKSlack:
    """Return the policy that holds each row for the largest delay so far.

    Args:
        at_most: a row more than this older than the newest counts as a wrong clock, and does not
            make the others wait.
        delay_from: a row's delay is measured from the "next" row that moves the newest, as in the
            paper, or from the "newest" when it came: then a silence of the source is not a delay.
        late: rows older than a released one: "drop" or "pass", counted either way.

    Raises:
        SettingError: `at_most` is not a length of time above zero, or a word is unknown.

    Source: [thesis] §2.3.2. Differs: `at_most`, and "newest".
    """
    at_most_ns = duration_ns(at_most, what="mp_k_slack: at_most")
    return MpKSlack(at_most_ns, delay_from=delay_from, late=late)


@dataclass(frozen=True)
class KSlack(Buffer):
    """Policy that holds rows until the newest is `slack_ns` ahead. See `k_slack`.

    Raises:
        SettingError: `slack_ns` is below 1, or a word is unknown.
    """

    slack_ns: int
    late: Late = "drop"

    def __post_init__(self) -> None:
        check_buffer("k_slack", late=self.late, slack=self.slack_ns)

    @property
    def text(self) -> str:  # noqa: D102 - see Reorder
        return self._with_late(f"K-slack of {format_ns(self.slack_ns)}")

    @property
    def longest_ns(self) -> int:  # noqa: D102 - see Reorder
        return self.slack_ns

    def begin(self) -> Reordering:  # noqa: D102 - see Reorder
        return Buffering(_Fixed(self.slack_ns))


@dataclass(frozen=True)
class MpKSlack(Buffer):
    """Policy that holds rows for the largest delay seen so far. See `mp_k_slack`.

    Raises:
        SettingError: `at_most_ns` is below 1, or a word is unknown.
    """

    at_most_ns: int
    delay_from: DelayFrom = "next"
    late: Late = "drop"

    def __post_init__(self) -> None:
        check_buffer("mp_k_slack", late=self.late, at_most=self.at_most_ns)
        check_delay_from("mp_k_slack", self.delay_from)

    @property
    def text(self) -> str:  # noqa: D102 - see Reorder
        return self._with_late(
            f"MP-K-slack: the largest delay so far, at most {format_ns(self.at_most_ns)}"
        )

    @property
    def longest_ns(self) -> int:  # noqa: D102 - see Reorder
        return self.at_most_ns

    def begin(self) -> Reordering:  # noqa: D102 - see Reorder
        return Buffering(_Largest(LargestDelay(self.at_most_ns, self.delay_from)))


class _Fixed:
    STATE = Fields()

    def __init__(self, slack_ns: int) -> None:
        self._slack_ns = slack_ns

    def reached_ns(
        self, event_time_ns: Int64Array, newest_ns: Int64Array, released: Released
    ) -> Int64Array:
        return released.extend(event_time_ns, newest_ns - self._slack_ns)


class _Largest:
    STATE = Fields("_largest")

    def __init__(self, largest: LargestDelay) -> None:
        self._largest = largest

    def reached_ns(
        self, event_time_ns: Int64Array, newest_ns: Int64Array, released: Released
    ) -> Int64Array:
        k_ns = self._largest.extend(event_time_ns, newest_ns)
        return released.extend(event_time_ns, newest_ns - k_ns)
