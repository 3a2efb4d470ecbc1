"""A slot's process does without pandas where nobody's code could want it."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent


def test_conversions_do_not_load_pandas_and_who_asks_for_a_frame_gets_it() -> None:
    program = """
        import sys
        import numpy as np, pyarrow as pa
        from actors.slot.without_pandas import leave_out_pandas
        leave_out_pandas()
        pa.array([1, 2]).to_numpy()
        table = pa.table({"n": np.arange(3), "t": ["a", None, "c"]})
        table.to_pylist()
        assert "pandas" not in sys.modules
        assert table.to_pandas()["n"].tolist() == [0, 1, 2]
        import pandas
        assert pandas.__version__
    """
    done = subprocess.run(  # noqa: S603 our own program
        [sys.executable, "-c", dedent(program)], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
