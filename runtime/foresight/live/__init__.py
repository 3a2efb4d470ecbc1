"""Live estimate: a prediction compared with its run while that goes on.

| file | contents |
| --- | --- |
| `live_estimate.py` | latency by the arrivals so far; shifts of statistics |
| `work_so_far.py` | work of arrivals, at the cost of rows on their arrival |
| `recent_statistics.py` | recent costs of rows, beside those of the prediction |
| `shifts.py` | statistics that have been far from the prediction's for a while |
"""

from slackwater.runtime.foresight.live.live_estimate import LiveEstimate

__all__ = ["LiveEstimate"]
