"""The page of the foreign suites, made of the verdicts that are pinned in code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from benchmarks.conformance.cases import VERDICTS, Case, Suite, Verdict
from benchmarks.frame import table

HEAD = (
    "# Suites that others wrote",
    "",
    "Cases from the tests of other engines, as flows of ours. Rows and answers are those that "
    "their authors published; the flows are ours. `python -m benchmarks conformance` compares the "
    "rows of each flow with the answer, in any order. Its code has the verdicts: any other "
    "difference fails.",
    "",
    "To run it and to write this page, which is made and not edited:",
    "",
    "```sh",
    "DATA=<folder of the cases> PAGE=docs/conformance.md python -m benchmarks conformance",
    "```",
    "",
    "| word | means |",
    "| --- | --- |",
    "| equal | the rows of the answer, with the steps that the question names |",
    "| by a detour | the same rows, with built-in steps that are bent to it |",
    "| different by intent | so many rows of ours or theirs differ, for a reason below |",
    "| custom code | the same rows, with a class of the user |",
    "| not expressible | no flow gives the rows; what is missing is below |",
    "| not translated | there is no flow yet |",
    "",
    "The rows of ksqlDB are in its project alone: `KSQLDB=<checkout>` names one. Without it these "
    "cases are not run, and no figure counts them.",
    "",
    "## The suites",
    "",
)
SECTIONS: dict[Verdict, str] = {
    "different": "Different by intent",
    "detour": "By a detour",
    "code": "Custom code",
    "wrong": "Wrong",
    "not expressible": "Not expressible",
    "not translated": "Not translated",
}


def page(cases: Sequence[Case], suite_of: Callable[[Case], Suite]) -> str:
    """Return the page of all cases: a table of suites, then what each verdict is about."""
    verdict_of = {case.name: suite_of(case).verdict(case) for case in cases}
    rows: list[list[object]] = []
    for name in dict.fromkeys(case.suite for case in cases):
        of_suite = [case for case in cases if case.suite == name]
        counts = Counter(verdict_of[case.name] for case in of_suite)
        rows.append([name, len(of_suite), *(counts[verdict] or "" for verdict in VERDICTS)])
    parts = [*HEAD, *table(["suite", "cases", *VERDICTS.values()], rows)]
    for verdict, title in SECTIONS.items():
        some = [case for case in cases if verdict_of[case.name] == verdict]
        if some:
            parts += [f"\n## {title}\n", *_lines(some, verdict, suite_of)]
    return "\n".join([*parts, ""])


def _lines(
    cases: Sequence[Case], verdict: Verdict, suite_of: Callable[[Case], Suite]
) -> Iterator[str]:
    """Yield a table of the reasons, each with the cases that have it."""
    by_reason: dict[str, list[str]] = {}
    for case in cases:
        suite = suite_of(case)
        rows = f" ({_pinned_rows(suite, case)})" if verdict == "different" else ""
        by_reason.setdefault(_reason(case, verdict, suite), []).append(f"`{case.name}`{rows}")
    yield "| why | cases |"
    yield "| --- | --- |"
    for reason, names in by_reason.items():
        listed = ", ".join(names).replace("|", "\\|")
        yield f"| {reason} | {listed} |"


def _reason(case: Case, verdict: Verdict, suite: Suite) -> str:
    match verdict:
        case "different":
            return suite.differences[case.name].reason
        case "wrong":
            return suite.wrong[case.name]
        case "not expressible":
            return suite.missing[case.name]
        case "not translated":
            return suite.name
    return suite.translations[case.name].note


def _pinned_rows(suite: Suite, case: Case) -> int:
    """Return how many rows differ in a case: of ours, and of the answer."""
    pinned = suite.differences[case.name]
    return len(pinned.extra) + len(pinned.lacking)
