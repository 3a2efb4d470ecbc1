"""What goes to which process where tests run side by side."""

from __future__ import annotations

import pytest

from tests.support.longest import LONGEST, is_among_longest
from tests.support.sharing import ByFile


@pytest.fixture
def shared_out(pytestconfig: pytest.Config) -> ByFile:
    made = ByFile.__new__(ByFile)  # its `__init__` wants processes to share out to
    made.config = pytestconfig
    return made


def test_all_files_with_spark_go_to_one_process_and_every_other_by_itself(
    shared_out: ByFile,
) -> None:
    files = [
        "tests/ingest/test_spark.py",
        "tests/system/test_examples.py",
        "tests/ingest/test_spark_failure.py",
        "tests/system/test_on_ray.py",
        "tests/system/test_failures.py",
    ]
    units = [shared_out._split_scope(f"{file}::test[{n}]") for file in files for n in range(2)]
    assert units[:4] == [units[0]] * 4
    assert units[4:] == [file for file in files[2:] for _ in range(2)]


def test_the_longest_files_are_there_and_come_before_all_that_are_as_pure(
    request: pytest.FixtureRequest,
) -> None:
    root = request.config.rootpath
    assert [file for file in LONGEST if not (root / file).is_file()] == []
    order = [
        is_among_longest(item.path, root)
        for item in request.session.items
        if not (item.get_closest_marker("ray") or item.get_closest_marker("spark"))
    ]
    assert order == sorted(order, reverse=True)
