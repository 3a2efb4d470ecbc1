"""How benchmarks ended: results, errors, claims that fail, what could not run; and exit codes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from benchmarks.frame import Options, Result

__all__ = ["ALL_HELD", "ERROR", "NOT_HELD", "Ended"]

ALL_HELD, NOT_HELD, ERROR = 0, 1, 3
"""Exit codes; wrong usage has 2."""


@dataclass
class Ended:
    """Ends of the benchmarks so far.

    Attributes:
        results: of each run that gave figures, as plain JSON values.
        failing: each claim that does not hold, with its benchmark.
        errors: {benchmark, and its seed: the error}.
        left_out: {benchmark: what it needs that is not here}.
    """

    results: list[dict[str, Any]] = field(default_factory=list)
    failing: list[str] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, options: Options, result: Result, took_s: float) -> None:
        """Note a result, and the claims that it does not hold."""
        self.results.append({**result.to_json(name, options), "took_s": round(took_s, 1)})
        failing = [str(claim) for claim in result.claims if not claim.holds]
        self.failing += [f"{_run_of(name, options)}: {claim}" for claim in failing]

    def add_error(self, name: str, options: Options, problem: Exception) -> None:
        """Note that a run ended in an error."""
        told = str(problem).strip().partition("\n")[0]
        self.errors[_run_of(name, options)] = f"{type(problem).__name__}: {told}"

    @property
    def exit_code(self) -> int:
        """Exit code of the program."""
        if self.errors:
            return ERROR
        return NOT_HELD if self.failing or self.left_out else ALL_HELD

    def lines(self) -> list[str]:
        """Return the three lists for people."""
        return [
            *_listed("ended in an error", _pairs(self.errors)),
            *_listed("claims that do not hold", self.failing),
            *_listed("could not run", _pairs(self.left_out)),
        ]

    def last_line(self) -> str:
        """Return the JSON line of one run, or of several with all their claims together."""
        if len(self.results) == 1 and not self.errors and not self.left_out:
            return json.dumps(self.results[0])
        claims = [claim for result in self.results for claim in result["claims"]]
        ends = {"errors": self.errors, "left_out": self.left_out}
        return json.dumps({"benchmarks": self.results, "claims": claims, **ends})


def _run_of(name: str, options: Options) -> str:
    return name if options.seed == Options.seed else f"{name}, seed {options.seed}"


def _pairs(told: dict[str, str]) -> list[str]:
    return [f"{name}: {problem}" for name, problem in told.items()]


def _listed(what: str, entries: list[str]) -> list[str]:
    return [f"{what}: {len(entries) or 'none'}", *(f"  {entry}" for entry in entries)]
