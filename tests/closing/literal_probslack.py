"""[probslack] §4.1, the simulator as the paper has it: TRIGGER at every timepoint (Listings 1–5).

It is slow, and short enough to be read beside the listings. Tests hold the machine to it. It
differs from the listings where the machine does (docs/papers/probslack.md): windows without their
end, the strict guard, several types, no closing before the first fit; and, where it is told to,
the chance counts that nothing has come.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Event = tuple[int, int, int]
"""Type, generation and reception, in ticks."""
_Kept = tuple[int, int | None, int]
"""Type, gap and delay."""
_TINY = 1e-9


@dataclass
class Fit:
    """𝔉_g and 𝔉_d of one type, Listing 4."""

    gaps: Counter[int] = field(default_factory=Counter)
    delays: Counter[int] = field(default_factory=Counter)

    def chance(self, alpha: int, beta: int) -> float:
        """Return P_miss, the sum of §3.1: over g < α of pdf_g(g) · P[d > β − g]."""
        events = self.delays.total()
        return sum(
            count
            / self.gaps.total()
            * sum(many for delay, many in self.delays.items() if delay > beta - gap)
            / events
            for gap, count in self.gaps.items()
            if gap < alpha
        )

    def known(self, alpha: int, beta: int) -> float:
        """Return the same, given that the next event has not come: over P[g + d > β]."""
        missing = self.chance(alpha, beta)
        return missing / self.chance(max(self.gaps) + 1, beta) if missing else 0.0

    def cached(self, bound: float) -> Callable[[int, int], bool]:
        """Return P_miss(α, β) > δ by the poly-line of Listing 5, built as it says."""
        cache: list[tuple[float, int, int]] = []  # (β−, β+, α̂): above δ from α̂ on
        most = max(self.gaps) + max(self.delays)
        least = min(self.gaps) + min(self.delays)
        for beta in range(least - 1, most + 1):
            alphas = [gap + 1 for gap in sorted(self.gaps)]
            alpha = next((a for a in alphas if self.chance(a, beta) > bound + _TINY), None)
            if alpha is None:
                break
            if cache and cache[-1][2] == alpha:
                cache[-1] = (cache[-1][0], beta, alpha)
            else:
                cache.append((beta if cache else float("-inf"), beta, alpha))
        return lambda a, b: any(low <= b <= high and a >= line for low, high, line in cache)


@dataclass(frozen=True)
class Simulated:
    """What came of it: (window, tick at which it closed), and windows known to have missed."""

    closed: list[tuple[int, int]]
    missed: set[int]
    share_at: list[float]  # MER after each closing


def simulate(
    events: Sequence[Event],
    *,
    size: int,
    slide: int,
    share: float,
    fit_rows: int,
    until: int,
    guard: str = "strict",
    cached: bool = False,
    conditional: bool = False,
) -> Simulated:
    """Run ProbSlack tick by tick.

    Args:
        events: in order of reception; those of a type in order of generation.
        size: l.
        slide: f.
        share: δ.
        fit_rows: T, over all types; the jumping window.
        until: the tick before which it stops.
        guard: as in `Budget`.
        cached: whether P_miss is looked up in the poly-line; not where it is conditional.
        conditional: as in `Settings`.
    """
    last: dict[int, int] = {}  # e_l.gts of each type
    kept: list[_Kept] = []
    fits: dict[int, Fit] = {}
    oldest = min(made for _, made, came in events if came == events[0][2])
    first = k = (oldest - size) // slide + 1
    sure = k
    missed: set[int] = set()
    closed: list[tuple[int, int]] = []
    share_at: list[float] = []
    above: Callable[[int, int, int], bool] | None = None
    own = _Own(fit_rows)
    fitted = own.fits if conditional else _fits
    at, renewable = 0, max(fit_rows // 20, 1)
    for tick in range(events[0][2], until):
        spent = len(missed) >= share * (k - first) > 0 and guard != "none"
        before, late = len(kept), set()
        while at < len(events) and events[at][2] <= tick:
            kind, made, received = events[at]
            kept.append((kind, made - last[kind] if kind in last else None, received - made))
            above = above if kind in last else None
            last[kind] = max(made, last.get(kind, made))
            low, high = (made - size) // slide + 1, min(k - 1, made // slide)
            late |= set(range(max(low, first), high + 1))
            at += 1
        if len(kept) >= fit_rows or (spent and before < renewable <= len(kept)):
            fits, above, kept = fitted(kept[-fit_rows:], at), None, []
        missed |= late
        spent = len(missed) >= share * (k - first) > 0 and guard != "none"
        if late and spent and len(kept) >= renewable:
            fits, above, kept = fitted(kept, at), None, []
        bound = 1 - (1 - share) ** (1 / len(last))
        if above is None and fits:
            above = _asked(fits, bound, cached=cached, conditional=conditional)
        sure = max(sure, (min(last.values()) - size) // slide + 1)
        while True:
            end = k * slide + size
            passed = all(newest >= end for newest in last.values())
            pending = sum(one not in missed for one in range(sure, k))
            allowed = _allowed(guard, share, k - first, len(missed), pending)
            likely = above is not None and all(
                newest >= end or not above(kind, end - newest, tick - newest)
                for kind, newest in last.items()
            )
            if not (passed or (allowed and likely and tick > end - slide)):
                break
            closed.append((k, tick))
            k += 1
            share_at.append(len(missed) / (k - first))
    return Simulated(closed, missed, share_at)


class _Own:
    """Fits of rows of each type itself: of those of a fit, or, too few, of the last 128."""

    def __init__(self, fit_rows: int) -> None:
        self._fit_rows = fit_rows
        self._rows: dict[int, list[_Kept]] = defaultdict(list)
        self._last: dict[int, int] = {}  # the number of the last row of each type

    def fits(self, kept: Sequence[_Kept], at: int) -> dict[int, Fit]:
        now: dict[int, list[_Kept]] = defaultdict(list)
        for number, row in enumerate(kept, at - len(kept) + 1):
            self._rows[row[0]].append(row)
            now[row[0]].append(row)
            self._last[row[0]] = number
        whole = _fit(kept)
        if len(self._last) == 1:
            return dict.fromkeys(self._last, whole)
        fits = {}
        for kind, last in self._last.items():
            rows = now[kind] if len(now[kind]) >= 32 else self._rows[kind][-128:]
            if len(rows) >= 32 or at - last >= self._fit_rows:  # else it is waited for
                fits[kind] = _fit(rows)
                fits[kind].gaps = fits[kind].gaps or whole.gaps
        return fits


def _fit(rows: Sequence[_Kept]) -> Fit:
    return Fit(
        Counter(gap for _, gap, _ in rows if gap is not None),
        Counter(delay for _, _, delay in rows),
    )


def _fits(kept: Sequence[_Kept], at: int) -> dict[int, Fit]:
    del at
    together = Fit()
    rows = Counter(kind for kind, _, _ in kept)
    of = defaultdict(lambda: together, {kind: Fit() for kind in rows})
    for kind, gap, delay in kept:
        for fit in (together, of[kind]):
            fit.delays[delay] += 1
            if gap is not None:
                fit.gaps[gap] += 1
    for kind in rows:
        if rows[kind] < 32 or len(rows) == 1:
            of[kind] = together
    return of


def _asked(
    fits: dict[int, Fit], bound: float, *, cached: bool, conditional: bool
) -> Callable[[int, int, int], bool]:
    if conditional:
        return lambda kind, alpha, beta: (
            kind not in fits or fits[kind].known(alpha, beta) > bound + _TINY
        )
    if cached:
        lines: dict[int, Callable[[int, int], bool]] = {}

        def above(kind: int, alpha: int, beta: int) -> bool:
            lines[kind] = lines.get(kind) or fits[kind].cached(bound)
            return lines[kind](alpha, beta)

        return above
    return lambda kind, alpha, beta: fits[kind].chance(alpha, beta) > bound + _TINY


def _allowed(guard: str, share: float, windows: int, missed: int, pending: int) -> bool:
    if guard == "strict":
        return missed + pending + 1 <= share * (windows + 1) + _TINY
    if guard == "known":
        return missed + 1 <= share * (windows + 1) + _TINY
    return guard == "none" or missed < share * max(windows, 1)
