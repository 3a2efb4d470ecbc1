"""A slot's process does without what few slots need: each has one, and its start is waited for."""

from __future__ import annotations

import base64
import subprocess
import sys
from collections.abc import Callable
from textwrap import dedent

import pytest
from ray import cloudpickle

import slackwater as sw
from slackwater.runtime.plan.plan import plan_stages


def test_conversions_do_not_load_pandas_and_who_asks_for_a_frame_gets_it() -> None:
    program = """
        import sys
        import numpy as np, pyarrow as pa
        from slackwater.actors.slot.without_pandas import leave_out_pandas
        leave_out_pandas()
        pa.array([1, 2]).to_numpy()
        table = pa.table({"n": np.arange(3), "t": ["a", None, "c"]})
        table.to_pylist()
        assert "pandas" not in sys.modules
        assert table.to_pandas()["n"].tolist() == [0, 1, 2]
        import pandas
        assert pandas.__version__
    """
    run(program)


def test_a_switch_leaves_pandas_to_arrow() -> None:
    run("""
        import os, sys
        import pyarrow as pa
        from slackwater.actors.slot.without_pandas import SWITCH, leave_out_pandas
        os.environ[SWITCH] = "arrow"
        leave_out_pandas()
        pa.array([1, 2]).to_numpy()
        pa.array([None])
        assert "pandas" in sys.modules
    """)


def test_arrow_knows_what_is_of_pandas_from_when_somebody_imports_it() -> None:
    run("""
        import threading
        import pyarrow as pa
        from slackwater.actors.slot.without_pandas import leave_out_pandas, load_pandas
        leave_out_pandas()
        pa.array([1.0, float("nan")])
        thread = threading.Thread(target=lambda: __import__("pandas.api.types"))
        thread.start()
        thread.join()
        import pandas as pd
        assert pa.lib._pandas_api.have_pandas
        assert pa.array(pd.Series([1, None], dtype="Int64")).to_pylist() == [1, None]
        assert pa.array(pd.Series([1.0, float("nan")])).to_pylist() == [1.0, None]
        assert pa.Table.from_pandas(pd.DataFrame({"n": [1]}))["n"].to_pylist() == [1]
        load_pandas()
    """)


def test_a_pandas_that_breaks_as_it_is_loaded_says_so_each_time_and_is_found_when_mended() -> None:
    run("""
        import pathlib, sys, tempfile
        from slackwater.actors.slot.without_pandas import leave_out_pandas
        leave_out_pandas()
        with tempfile.TemporaryDirectory() as folder:
            broken = pathlib.Path(folder) / "pandas.py"
            broken.write_text("raise ImportError('half installed')")
            sys.path.insert(0, folder)
            for _ in range(2):
                try:
                    import pandas
                except ImportError as problem:
                    assert str(problem) == "half installed"
                else:
                    raise AssertionError
            sys.path.remove(folder)
        sys.path_importer_cache.clear()
        import pandas, pyarrow as pa
        assert pa.array(pandas.Series([1, None], dtype="Int64")).to_pylist() == [1, None]
    """)


def run(program: str) -> None:
    done = subprocess.run(  # noqa: S603 our own program
        [sys.executable, "-c", dedent(program)], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_a_slot_loads_what_few_need_only_when_it_is_needed() -> None:
    run("""
        import sys
        import slackwater.actors.jobs.end_on_record, slackwater.actors.slot.actor
        import slackwater.ingest
        ours = {
            "actors.sinks.files", "actors.jobs.records", "runtime.life", "runtime.flow",
            "runtime.tune", "runtime.foresight", "runtime.placement", "runtime.rewrite",
            "runtime.simulate", "front_door",
        }
        dear = {f"slackwater.{one}" for one in ours} | {
            "pandas", "pyarrow.compute", "pyarrow.parquet", "pyarrow.fs", "ray", "sklearn",
            "scipy", "pyspark", "raydp", "pyarrow.dataset", "pyarrow.flight", "matplotlib",
        }
        assert not dear & sys.modules.keys(), dear & sys.modules.keys()
    """)


def test_a_tuner_loads_nothing_that_runs_a_slot_and_no_model_before_it_is_asked_for() -> None:
    run("""
        import sys
        import slackwater.actors.tuning.tuner
        ours = {
            "runtime.plan.plan", "runtime.schedule", "runtime.operators",
            "runtime.tune.predict.estimator", "front_door",
        }
        dear = {f"slackwater.{one}" for one in ours} | {"pandas", "pyarrow.compute", "zmq"}
        assert not dear & sys.modules.keys(), dear & sys.modules.keys()
    """)


@pytest.mark.parametrize(
    ("step", "is_needed"),
    [
        (lambda rows: rows.filter(sw.col("n") > 1), False),
        (lambda rows: rows.with_columns(t=sw.lit("text")), True),
        (lambda rows: rows.map_batches(lambda batch: batch, schema={"n": "int64"}), True),
        (lambda rows: rows.with_columns(small=sw.col("n").cast("int8")), True),
    ],
    ids=["numbers", "text", "a function of the user's", "a cast"],
)
def test_arrows_functions_are_there_before_the_start_where_they_will_be_needed(
    step: Callable[[sw.Stream], sw.Stream], is_needed: bool
) -> None:
    flow = sw.Dataflow("f")
    rows = flow.source("rows", sw.table({"ts": [1], "n": [1]}), event_time="ts", time_unit="ns")
    step(rows).sink("out", sw.collect_sink())
    stages = base64.b64encode(cloudpickle.dumps(plan_stages(flow.graph)))
    run(f"""
        import base64, pickle, sys
        from slackwater.actors.slot.actor import import_arrow_functions
        from slackwater.actors.slot.without_pandas import leave_out_pandas
        leave_out_pandas()
        import_arrow_functions(pickle.loads(base64.b64decode({stages!r})))
        assert ("pyarrow.compute" in sys.modules) is {is_needed}
    """)
