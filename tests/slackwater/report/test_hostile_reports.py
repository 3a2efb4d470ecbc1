"""Reports and records that somebody has damaged, or made: an error in our words, or a report.

Whatever is shown of them, a terminal obeys none of it.
"""

from __future__ import annotations

import copy
import json
import math
import os
import random
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from slackwater.actors.jobs.records import JobRecord, Records, Worker
from slackwater.cli import main
from slackwater.cli.cluster_commands import show_jobs
from slackwater.cli.shell import print_json, print_report
from slackwater.report.latency_table import latency_json, latency_text
from slackwater.report.report_file import MOST_BYTES, load_report, save_report
from slackwater.report.sanitize import sanitized, sanitized_json
from slackwater.runtime.errors import ClusterError, SlackwaterError
from slackwater.runtime.json_form import json_bytes
from tests.support.reports import city_report, with_clocks, with_deadline

REPORTS, RECORDS = 60, 250
SEED = int(os.environ.get("HOSTILE_SEED") or secrets.randbelow(2**32))
ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"
OBEYED = [chr(n) for n in (*range(9), *range(11, 32), *range(127, 160), 0x202E)]
ODD: list[Any] = [
    *(None, True, -1, 0, 2**63, 2**99, 10**400, -(2**200)),
    *(1e308, 0.5, math.nan, math.inf, -math.inf),
    *("", "x", ESCAPE, "9" * 5_000, [], [[]], {}, {"": 1}, [None], [1, 2, 3], {"a": {"b": []}}),
]


def places(plain: Any) -> list[tuple[Any, Any]]:
    """Return (container, key) of everything in a JSON value."""
    keys = plain.items() if isinstance(plain, dict) else enumerate(plain)
    found = []
    for key, value in keys:
        found.append((plain, key))
        if isinstance(value, dict | list):
            found += places(value)
    return found


def mutated(sound: bytes, chance: random.Random) -> bytes:
    """Return JSON that somebody has tampered with, or bytes that are none any more."""
    match chance.randrange(6):
        case 0:
            return sound[: chance.randrange(len(sound))]
        case 1:
            raw = bytearray(sound)
            for _ in range(chance.randint(1, 6)):
                raw[chance.randrange(len(raw))] = chance.randrange(256)
            return bytes(raw)
        case 2:
            depth = chance.choice((10, 2_000, 100_000))
            return chance.choice((b"[" * depth, b'{"format":1,"stages":' * depth, b"[" + sound))
    plain = json.loads(sound)
    for _ in range(chance.randint(1, 2)):
        inside, key = chance.choice(places(plain))
        try:
            if chance.random() < 0.2:
                del inside[key]
            else:
                inside[key] = copy.deepcopy(chance.choice(ODD))
        except (KeyError, IndexError):
            pass  # the first change took the place of the second
    return json.dumps(plain).encode()


def show_all(path: Path) -> None:
    report = load_report(path)
    print_report(report)
    print_json(report.to_json())
    latency_text(report)
    latency_json(report)


def sound_report(tmp_path: Path) -> bytes:
    save_report(with_deadline(with_clocks(city_report())), tmp_path / "sound.json")
    return (tmp_path / "sound.json").read_bytes()


def assert_nothing_is_obeyed(shown: str) -> None:
    assert not [letter for letter in OBEYED if letter in shown]


def test_a_damaged_report_is_an_error_of_ours_or_still_a_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance, sound, told = random.Random(SEED), sound_report(tmp_path), []  # noqa: S311
    path = tmp_path / "report.json"
    for number in range(REPORTS):
        path.write_bytes(mutated(sound, chance))
        try:
            show_all(path)
        except SlackwaterError as problem:
            told.append(str(problem))
        except Exception as problem:
            raise AssertionError(f"HOSTILE_SEED={SEED}, report {number}") from problem
        assert_nothing_is_obeyed(capsys.readouterr().out)
    assert REPORTS / 2 < len(told) < REPORTS
    assert max(map(len, told)) < 1_000


def test_escapes_in_names_and_notes_are_shown_and_not_obeyed(tmp_path: Path) -> None:
    report = city_report()
    report.flow, report.error = f"city{ESCAPE}", f"failed{ESCAPE}"
    report.notes.append(f"note{ESCAPE}")
    for part in (*report.stages, *report.sinks, *report.channels):
        part.name += ESCAPE
    save_report(report, tmp_path / "report.json")
    for more in ((), ("--json",)):
        done = CliRunner().invoke(main.app, ["report", str(tmp_path), *more])
        assert done.exit_code == 0, done.output
        assert_nothing_is_obeyed(done.output)
        if more:
            assert json.loads(done.stdout)["flow"] == report.flow
        else:
            assert "city␛]0;owned" in done.stdout
    (tmp_path / "report.json").write_text(json.dumps({"format": ESCAPE}))
    done = CliRunner().invoke(main.app, ["report", str(tmp_path)])
    assert done.exit_code == 1
    assert_nothing_is_obeyed(done.output)


def long(path: Path) -> None:
    path.touch()
    os.truncate(path, MOST_BYTES + 1)


def folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.timeout(20)  # a pipe that is opened waits for ever
@pytest.mark.parametrize(
    ("made", "told"),
    [(os.mkfifo, "a regular file"), (long, "longer than"), (folder, "irectory")],
)
def test_what_is_no_file_or_has_no_end_is_not_read(
    tmp_path: Path, made: Callable[[Path], None], told: str
) -> None:
    made(tmp_path / "report.json")
    with pytest.raises(SlackwaterError, match=told):
        load_report(tmp_path / "report.json")


class Kept:
    """A store of one value."""

    def __init__(self, value: bytes) -> None:
        self.value = value

    def get(self, key: str) -> bytes:
        del key
        return self.value

    def put(self, key: str, value: bytes) -> None: ...

    def delete(self, key: str) -> None: ...

    def keys(self, prefix: str) -> list[str]:
        return [f"{prefix}city"]


def test_a_damaged_record_is_an_error_of_ours_or_still_a_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    worker = Worker("n1", "id", "host", 7)
    record = JobRecord(
        id=f"city-{ESCAPE}",
        flow="city",
        state="failed",
        submitter="me@here",
        submitted_ns=10**18,
        nodes=["n1"],
        placement={"out": "n1/1"},
        coordinator=worker,
        workers={"n1/1": worker},
        error=f"{ESCAPE}\nmore",
    )
    report = sound_report(tmp_path)
    chance, sound, refused = random.Random(SEED), json_bytes(record.to_json()), 0  # noqa: S311
    for number in range(RECORDS):
        try:
            show_jobs(Records(Kept(mutated(sound, chance))).all() * 2, now_ns=10**18)
            Records(Kept(mutated(report, chance))).report("city")
        except ClusterError:
            refused += 1
        except Exception as problem:
            raise AssertionError(f"HOSTILE_SEED={SEED}, record {number}") from problem
        assert_nothing_is_obeyed(capsys.readouterr().out)
    assert RECORDS / 2 < refused < RECORDS


def test_harmless_text_has_its_length_and_harmless_json_its_meaning() -> None:
    every = "".join(map(chr, range(0x3000)))
    assert len(sanitized(every)) == len(every)
    assert sanitized("żółć 日本\n\t–") == "żółć 日本\n\t–"
    assert json.loads(sanitized_json(json.dumps(every, ensure_ascii=False))) == every
