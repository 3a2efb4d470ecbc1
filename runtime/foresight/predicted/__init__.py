"""Predicted latency of a flow in its slots, by observations and rates.

| file | contents |
| --- | --- |
| `asked.py` | settings of a prediction, and their check |
| `predicting.py` | a plan and rates become a prediction |
| `outlook.py` | arrivals to come, and the latency of a placement under them |
| `gate_waits.py` | waits of rows in the flow's gates |
| `what_if.py` | other costs, other links |
| `prediction.py` | the prediction: figures, verdict on a deadline, relief, its text |
| `coverage.py` | the error that its sample may have |
| `fits.py` | why a flow does not fit on its slots |
| `shed_course.py` | events that a shedding step drops, and the latency that remains |
| `shedding_ahead.py`, `shed_outlook.py` | whether steps that shed have to, and whether it helps |
"""
