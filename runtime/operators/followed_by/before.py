"""The order of events as far as clocks tell: which may follow first.

An event happened somewhere in [t − bound, t + bound]. It is *surely* before another if its whole
interval is; where both bounds are zero the order of the stream decides.

```
first      ├─1─┤                     a  overlaps 1: it may follow it, or not
then             ├─a─┤  ├─b─┤        b  is surely after 1
             ├─c─┤       ├─d─┤ ├─e─┤ d  may be before b: so it may be the first that follows
                                     e  is surely after b, which follows 1: not the first
```

A `then` event may be the first to follow a `first` event unless it is surely before that, or
surely after another that surely follows it. The latter is one number for each `first` event: the
earliest end of the events that surely follow it (`done`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slackwater.runtime.model import END_NS, START_NS, BoolArray, Int64Array
from slackwater.runtime.model.ranges import unfold


class Moments(NamedTuple):
    """Points in time, each with a number that tells equal points apart; shape (events,) both."""

    at_ns: Int64Array
    ties: Int64Array

    def take(self, which: Int64Array) -> Moments:
        """Return the moments at these places."""
        return Moments(self.at_ns.take(which), self.ties.take(which))


class Events(NamedTuple):
    """Events in the order of the stream; shape (events,) each.

    Attributes:
        codes: the codes of their keys.
        times: their event times.
        bounds: bounds by which their times may be off, either way.
        turns: their places in the stream.
    """

    codes: Int64Array
    times: Int64Array
    bounds: Int64Array
    turns: Int64Array

    def take(self, which: Int64Array) -> Events:
        """Return the events at these places."""
        return Events(*(column.take(which) for column in self))

    @property
    def begins(self) -> Moments:
        """The earliest moment at which each may have happened."""
        ties = np.where(self.bounds == 0, self.turns, START_NS)
        return Moments(self.times - self.bounds, ties)

    @property
    def ends(self) -> Moments:
        """The latest moment at which each may have happened."""
        ties = np.where(self.bounds == 0, self.turns, END_NS)
        return Moments(self.times + self.bounds, ties)


class Followers(NamedTuple):
    """Pairs of events of which the second may follow the first.

    Attributes:
        firsts: shape (pairs,), places among the first events.
        thens: shape (pairs,), places among the others.
        surely_follows: shape (pairs,), whether the latter surely follows the former.
        done: `done` of each first event.
    """

    firsts: Int64Array
    thens: Int64Array
    surely_follows: BoolArray
    done: Moments


def not_done(events: int) -> Moments:
    """Return `done` of events that nothing surely follows yet."""
    return Moments(np.full(events, END_NS), np.full(events, END_NS))


def followers(firsts: Events, thens: Events, done: Moments, *, most_ns: int) -> Followers:
    """Return pairs of which the second may be the first event that follows the first.

    The events of a pair are of one key, at any distance. No event follows itself.

    Args:
        firsts: events that may begin.
        thens: events that may follow: all of these keys, but those that `done` knows of.
        done: `done` of each of `firsts`, by events that came before these.
        most_ns: the most of all bounds.

    Source: [thesis] §3.2.3.2, Pseudocode 3.1. Differs: there the first that follows is the first by
        the clocks, and the others that may be first are lost.
    """
    least = Moments(  # an event that ends after a begin begins no earlier than this
        firsts.times - firsts.bounds - 2 * most_ns, np.full(len(firsts.times), START_NS)
    )
    distinct, (begin, end, until, start, their_begin, their_end) = _ranked(
        firsts.begins, firsts.ends, done, least, thens.begins, thens.ends
    )
    size = len(distinct.at_ns)
    own, order = firsts.codes * size, (thens.codes * size + their_begin).argsort(kind="stable")
    theirs = thens.codes.take(order) * size
    begins = theirs + their_begin.take(order)
    # The earliest end of each event and of all of its key that begin later.
    earliest = np.minimum.accumulate((theirs + their_end.take(order))[::-1])[::-1]
    after = begins.searchsorted(own + end, "right")
    some = np.flatnonzero(after < len(begins))
    some = some[theirs.take(after.take(some)) == own.take(some)]
    until[some] = np.minimum(until.take(some), earliest.take(after.take(some)) - own.take(some))
    at = begins.searchsorted(own + start)
    pairs, places = unfold(at, np.maximum(begins.searchsorted(own + until, "right") - at, 0))
    found = order.take(places)
    may_follow = their_end.take(found) >= begin.take(pairs)
    may_follow &= thens.turns.take(found) != firsts.turns.take(pairs)
    pairs, found = pairs[may_follow], found[may_follow]
    surely_follows = their_begin.take(found) > end.take(pairs)
    return Followers(pairs, found, surely_follows, distinct.take(until))


def _ranked(*groups: Moments) -> tuple[Moments, list[Int64Array]]:
    """Return all moments in order, and the places of each group's moments among them."""
    at_ns = np.concatenate([one.at_ns for one in groups])
    ties = np.concatenate([one.ties for one in groups])
    order = np.lexsort((ties, at_ns))
    at_ns, ties = at_ns.take(order), ties.take(order)
    is_new = np.ones(len(order), dtype=np.bool_)
    is_new[1:] = (at_ns[1:] != at_ns[:-1]) | (ties[1:] != ties[:-1])
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = is_new.cumsum() - 1
    ends = np.cumsum([len(one.at_ns) for one in groups])
    return Moments(at_ns[is_new], ties[is_new]), np.split(ranks, ends[:-1])
