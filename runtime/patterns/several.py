"""Events that came for a place that takes several in any order."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Collection

from slackwater.runtime.patterns.assign import NO_FITS, NO_VALUES, Label, Together, with_label

_FEW = 16
"""So many events are looked at one by one, before those of each label."""


class Several:
    """Events in order, and the latest of them that may be together.

    Args:
        count: number of events in one match of the place.
        is_distinct: whether labels are values that differ, not what events fit.

    Attributes:
        at: numbers of the events.
        label: their labels; see `Label`.
        nothing: no labels yet.
    """

    __slots__ = (
        "_are_single",
        "_count",
        "_is_distinct",
        "_latest",
        "_of_label",
        "at",
        "label",
        "nothing",
    )

    def __init__(self, count: int, *, is_distinct: bool) -> None:
        self._count = count
        self.nothing: Together = NO_VALUES if is_distinct else NO_FITS
        self.at: list[int] = []
        self.label: list[Label] = []
        self._of_label: dict[Label, list[int]] = {}
        self._is_distinct = is_distinct
        self._are_single = True  # whether each label may be there only once
        self._latest: list[tuple[int, Label]] = []  # may be together; none could be later

    def add(self, number: int, label: Label) -> int:
        """Take an event; return the number from which on enough are together; 0: too few.

        The oldest that the new one does not leave together with the others goes.
        """
        self.at.append(number)
        self.label.append(label)
        self._of_label.setdefault(label, []).append(number)
        latest = self._latest
        self._are_single = self._are_single and (self._is_distinct or len(label) == 1)
        if self._are_single:
            same = (i for i, (_, other) in enumerate(latest) if other == label)
            gone = next(same, 0 if len(latest) == self._count else None)
        else:
            gone = self._too_many(label)
        if gone is not None:
            del latest[gone]
        latest.append((number, label))
        return latest[0][0] if len(latest) == self._count else 0

    def _too_many(self, label: Label) -> int | None:
        """Return which of the latest goes when one more comes; None if none goes."""
        labels = [*(one for _, one in self._latest), label]
        if len(labels) <= self._count and self._are_together(labels):
            return None
        fewer = (labels[:i] + labels[i + 1 :] for i in range(len(labels) - 1))
        return next(i for i, some in enumerate(fewer) if self._are_together(some))

    def since(self, number: int) -> int:
        """Return as `add` did, of an event that is here, as things are now."""
        label = self.label[bisect_left(self.at, number)]
        own = with_label(self.nothing, label)
        others = self.taken(0, number, own, self._count - 1, latest=True)
        if len(others) < self._count - 1:
            return 0
        return others[-1] if others else number

    def taken(
        self, after: int, before: int, state: Together, wanted: int, *, latest: bool = False
    ) -> list[int]:
        """Return events between two numbers that may be together with some labels.

        Greedily the earliest, or the latest: so many, or as many as there are. Costs a look at each
        label at most, not at each event.
        """
        numbers: list[int] = []
        if wanted <= 0:
            return numbers
        first, end = bisect_right(self.at, after), bisect_left(self.at, before)
        few = range(first, min(first + _FEW, end))
        for i in range(end - 1, max(end - _FEW, first) - 1, -1) if latest else few:
            more = with_label(state, self.label[i])
            if more is not None:
                state = more
                numbers.append(self.at[i])
                if len(numbers) == wanted:
                    return numbers
        if end - first <= _FEW:
            return numbers
        if latest:
            before = self.at[end - _FEW]
        else:
            after = self.at[first + _FEW - 1]
        return numbers + self._by_label(after, before, state, wanted - len(numbers), latest=latest)

    def _by_label(
        self, after: int, before: int, state: Together, wanted: int, *, latest: bool
    ) -> list[int]:
        step = -1 if latest else 1
        heap: list[tuple[int, int, int]] = []  # (number, up or down; its label; its place)
        labels = list(self._of_label)
        for which, label in enumerate(labels):
            numbers = self._of_label[label]
            place = bisect_left(numbers, before) - 1 if latest else bisect_right(numbers, after)
            if 0 <= place < len(numbers) and after < numbers[place] < before:
                heap.append((step * numbers[place], which, place))
        heapq.heapify(heap)
        picked: list[int] = []
        while heap and len(picked) < wanted:
            number, which, place = heapq.heappop(heap)
            more = with_label(state, labels[which])
            if more is None:
                continue  # nor may another event of this label
            state = more
            picked.append(step * number)
            numbers = self._of_label[labels[which]]
            place += step
            if 0 <= place < len(numbers) and after < numbers[place] < before:
                heapq.heappush(heap, (step * numbers[place], which, place))
        return picked

    def has(self, number: int) -> bool:  # noqa: D102
        place = bisect_left(self.at, number)
        return place < len(self.at) and self.at[place] == number

    def remove(self, gone: Collection[int]) -> None:
        """Remove events that are here."""
        for number in gone:
            place = bisect_left(self.at, number)
            label = self.label[place]
            del self.at[place], self.label[place]
            numbers = self._of_label[label]
            del numbers[bisect_left(numbers, number)]
            if not numbers:
                del self._of_label[label]
        if any(number in gone for number, _ in self._latest):
            end = self.at[-1] + 1 if self.at else 0
            latest = self.taken(0, end, self.nothing, self._count, latest=True)
            self._latest = [(one, self.label[bisect_left(self.at, one)]) for one in latest[::-1]]

    def forget(self, below: int) -> None:
        """Forget events with lower numbers."""
        gone = bisect_left(self.at, below)
        for label in dict.fromkeys(self.label[:gone]):
            numbers = self._of_label[label]
            del numbers[: bisect_left(numbers, below)]
            if not numbers:
                del self._of_label[label]
        del self.at[:gone], self.label[:gone]
        self._latest = [one for one in self._latest if one[0] >= below]

    def _are_together(self, labels: list[Label]) -> bool:
        state = self.nothing
        for label in labels:
            state = with_label(state, label)
            if state is None:
                return False
        return True
