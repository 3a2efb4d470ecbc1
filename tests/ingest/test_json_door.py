"""The door of Arrow's JSON reader: texts that would end the process never reach it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from slackwater import ingest
from slackwater.ingest import files, json_door
from slackwater.ingest.json_door import MOST_DEEP, read_objects
from slackwater.runtime.errors import IngestError
from slackwater.runtime.sources.spec import END_OF_INPUT, BadRows
from tests.support.readers import next_rows

GOOD = '{"a": 1}'
DEADLY = {
    "null": "null",
    "two": "null null",
    "indented": " \t null",
    "lists": '{"a": ' + "[" * 10_000 + "]" * 10_000 + "}",
    "objects": '{"a": ' * 10_000 + "1" + "}" * 10_000,
    "open lists": '{"a": ' + "[" * 100_000,
    "an array": "[" * 10_000 + "]" * 10_000,
}
CHILD = """
import json, sys
from slackwater import ingest
from slackwater.ingest import files
from slackwater.runtime.errors import IngestError, SchemaError
from slackwater.runtime.sources.spec import END_OF_INPUT, BadRows, Block


def next_rows(reader):
    polled = reader.poll()
    return polled.rows if isinstance(polled, Block) else polled


for path in sys.argv[1:]:
    for types in (None, {"a": "int64"}):
        for on_bad in ("error", "skip"):
            counts = [0, 0]
            try:
                reader = files.jsonl(path, types=types, on_bad=on_bad).open()
                while (polled := next_rows(reader)) is not END_OF_INPUT:
                    is_bad = isinstance(polled, BadRows)
                    counts[is_bad] += len(polled.rows if is_bad else polled)
            except (IngestError, SchemaError) as problem:
                counts = str(problem)
            print(json.dumps([path, on_bad, counts]), flush=True)
"""


def test_texts_that_end_arrows_reader_are_refused_in_words(tmp_path: Path) -> None:
    paths = []
    for number, text in enumerate(DEADLY.values()):
        for place, lines in {
            "alone": [text],
            "first": [text, GOOD],
            "mid": [GOOD, text, "7"],
        }.items():
            path = tmp_path / f"{number}{place}.jsonl"
            path.write_text("\n".join([*lines, ""]))
            paths.append(str(path))
    ended = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", CHILD, *paths], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr[-2_000:]
    outcomes = [json.loads(line) for line in ended.stdout.splitlines()]
    assert len(outcomes) == 4 * len(paths)
    for path, on_bad, outcome in outcomes:
        if isinstance(outcome, str):  # of no good record, columns are not known
            assert on_bad == "error" or "alone" in path, outcome
            assert "line" in outcome or "no file has rows that show types" in outcome
        else:
            good = 0 if "alone" in path else 1
            assert outcome == [good, 2 if "mid" in path else 1]


def sorted_out(path: Path) -> tuple[int, list[tuple[int, str]]]:
    good, bad, reader = 0, list[tuple[int, str]](), files.jsonl(path, on_bad="skip").open()
    while (polled := next_rows(reader)) is not END_OF_INPUT:
        if isinstance(polled, BadRows):
            bad += [(row["line"], row["reason"]) for row in polled.rows.to_pylist()]
        else:
            good += len(polled)
    return good, bad


@pytest.mark.parametrize("line", ["null", "7", "true", '"x"', "[1]", "[]"])
def test_a_scalar_or_list_between_good_lines_is_unreadable(tmp_path: Path, line: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f"{GOOD}\n{line}\n{GOOD}\n")
    assert sorted_out(path) == (2, [(2, f"no JSON object: {line}")])
    with pytest.raises(IngestError, match="line 2: no JSON object: "):
        files.jsonl(path).schema()


@pytest.mark.parametrize(
    "text", ['{"a":\n{"b": 1}} {"a": 2}\n', '{"a": 1}\n{"a": 2}, \n', "{\n}\n"]
)
def test_an_object_over_two_lines_is_no_row(text: str) -> None:
    with pytest.raises(pa.ArrowInvalid, match="no JSON object"):
        read_objects(text.encode(), pa.schema([]), "infer")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\n\n", "\n \t\n", "\r\n\r\n"])
@pytest.mark.parametrize("last", ["", "end"])
def test_blank_lines_and_line_ends_make_no_rows(end: str, last: str) -> None:
    text = end.join(["", GOOD, " " + GOOD + "\t", GOOD]) + (end if last else "")
    assert len(read_objects(text.encode(), pa.schema([]), "infer")) == 3


def test_brackets_count_outside_strings_only(tmp_path: Path) -> None:
    many = "[" * 2 * MOST_DEEP
    fits = '{"a": ' + "[" * (MOST_DEEP - 1) + "]" * (MOST_DEEP - 1) + "}"
    wide = '{"a": [' + "[1]," * 2 * MOST_DEEP + "[1]]}"
    for text in (f'{{"a": "{many}"}}', f'{{"a": "\\"{many}"}}', fits, wide):
        assert len(read_objects(text.encode(), pa.schema([]), "infer")) == 1
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join([GOOD, fits.replace("[", "[[", 1).replace("]", "]]", 1), GOOD]))
    assert sorted_out(path) == (2, [(2, json_door.TOO_DEEP)])


def test_the_door_alone_uses_arrows_json_reader() -> None:
    rooms = Path(ingest.__file__).parents[1]
    users = [
        path.name
        for room in ("ingest", "runtime", "actors", "slackwater")
        for path in (rooms / room).rglob("*.py")
        if "pyarrow.json" in path.read_text()
    ]
    assert users == ["json_door.py"]
