"""Live estimate: a prediction compared with its run while that goes on.

- `live_estimate.py`: Live estimate of latency, by interval, from arrivals so far; shifts of
  statistics.
- `recent_statistics.py`: Recent statistics of stages, beside those of the prediction.
- `shifts.py`: Shifts: statistics that have been far from the prediction's for a while.
- `work_so_far.py`: Work of arrivals so far, by interval; work that was counted stays unchanged.
"""

from slackwater.runtime.foresight.live.live_estimate import LiveEstimate

__all__ = ["LiveEstimate"]
