"""Extract the cause of a Spark failure: the user's traceback, not the JVM's."""

from __future__ import annotations

import re

_TRACEBACK = "Traceback (most recent call last):"
_JVM_FRAME = re.compile(r"^\s+(at [\w.$]+[(/]|\.\.\. \d+ more)")
_CAUSE = re.compile(r"^Caused by: (.+)$", re.MULTILINE)
_NOT_THE_USERS = ("/pyspark/", "/py4j/", "pyspark.zip", "py4j-")
MOST_LINES = 30


def user_cause(problem: BaseException) -> str:
    """Return the innermost cause of a Spark failure, in at most `MOST_LINES` lines.

    For Python in an executor this is the user's traceback without Spark's own frames; for a failure
    in the JVM, the message of the last cause without the stack.
    """
    text = str(problem)
    if _TRACEBACK in text:
        return _shortened(_python_cause(text))
    causes = _CAUSE.findall(text)
    if causes:
        return _shortened(str(causes[-1]).strip())
    lines = [line for line in text.splitlines() if line.strip() and not _JVM_FRAME.match(line)]
    lines = [line for line in lines if line.strip() != "JVM stacktrace:"]
    return _shortened("\n".join(lines)) or type(problem).__name__


def is_lost_jvm(problem: BaseException) -> bool:
    """Return whether Spark's driver has no JVM any more."""
    kinds = {kind.__name__ for kind in type(problem).__mro__}  # py4j has no types
    return isinstance(problem, ConnectionError) or "Py4JNetworkError" in kinds


def _python_cause(text: str) -> str:
    """Return the last Python traceback in a text, reduced to the user's own frames."""
    lines = text[text.rindex(_TRACEBACK) :].splitlines()[1:]
    kept: list[str] = []
    is_users = True
    for line in lines:
        if _JVM_FRAME.match(line) or not line.strip():
            break
        if line.startswith('  File "'):
            is_users = not any(part in line for part in _NOT_THE_USERS)
        elif not line.startswith("    "):
            is_users = True  # the exception itself
        if is_users:
            kept.append(line)
    return "\n".join(kept)


def _shortened(text: str) -> str:
    lines = text.splitlines()
    if len(lines) > MOST_LINES:
        lines = ["...", *lines[-MOST_LINES + 1 :]]
    return "\n".join(lines)
