"""What wakes in a process that waits, thread by thread: in a slot, and in an actor without work."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.engine.threads import ThreadCounts, grouped

__all__ = ["Wakes", "by_thread", "cores_of", "said_of_wakes"]

LEAST_SLEEPS = 0.5
"""Of a thread, each second: those that wake less often are told together."""

Wakes = dict[str, dict[str, float]]  # {thread: {"cores", "sleeps_per_s"}}


def by_thread(
    before: Mapping[int, tuple[str, ThreadCounts]],
    after: Mapping[int, tuple[str, ThreadCounts]],
    *,
    seconds: float,
) -> Wakes:
    """Return what the threads of a process used between two looks, by the kernel's name for them.

    What is within parentheses behind a name is how many threads have it.
    """
    names = [name for name, _ in after.values()]
    found: Wakes = {}
    for name, used in grouped(before, after, group=str).items():
        sleeps = used.voluntary / seconds
        many = names.count(name)
        named = f"{name} ({many})" if many > 1 else name
        of = found.setdefault(
            named if sleeps >= LEAST_SLEEPS else "others", {"cores": 0.0, "sleeps_per_s": 0.0}
        )
        of["cores"] += used.cpu_ns / 1e9 / seconds
        of["sleeps_per_s"] += sleeps
    return dict(sorted(found.items(), key=lambda one: -one[1]["cores"]))


def cores_of(wakes: Wakes) -> float:
    """Return what all threads used together."""
    return sum(one["cores"] for one in wakes.values())


def said_of_wakes(wakes: Wakes) -> str:
    """Return it in a line: cores, and within parentheses how often a second it went to sleep."""
    each = (
        f"{name} {one['cores']:.4f} ({one['sleeps_per_s']:.0f}/s)" for name, one in wakes.items()
    )
    return f"{cores_of(wakes):.4f}: {', '.join(each)}"
