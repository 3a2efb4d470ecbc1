"""What operators share, and what each promises.

| page | what it has |
| --- | --- |
| `contract.py` | what every operator promises, and how it is registered |
| `streams.py`, `flow_builder.py`, `checks.py`, `keep.py` | what streams share |
| `keys.py`, `codes.py`, `arrays.py` | key columns to dense codes; arrays that grow |
| `user_code.py`, `fit.py` | the user's functions and expressions, and what they return |
| `late_rows.py` | what came too late |
| `drift.py` | how far clocks may be off |
"""

from slackwater.runtime.operators.ground.contract import (
    Entry,
    Operator,
    PlainOperator,
    Result,
    Stateless,
)
from slackwater.runtime.operators.ground.late_rows import LateRows, Missed

__all__ = ["Entry", "LateRows", "Missed", "Operator", "PlainOperator", "Result", "Stateless"]
