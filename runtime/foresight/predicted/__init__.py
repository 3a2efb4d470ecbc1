"""Predicted latency of a flow in its slots, by observations and rates.

- `asked.py`: Settings of a prediction, and their check: an error names the wrong one.
- `coverage.py`: Coverage of a prediction: what its sample shows, and how far off it may be.
- `fits.py`: Reasons why a flow does not fit on the slots there are.
- `gate_waits.py`: Waits in a flow's gates, predicted before it runs.
- `outlook.py`: Outlook of a flow: its arrivals to come, and its latency in a placement.
- `predicting.py`: Making of predictions: of a placed plan.
- `prediction.py`: Prediction of a flow's latency, before it runs.
- `replica_worth.py`: Worth of numbers of replicas: latency and highest rate with each; the best.
- `shed_course.py`: Shedding of a stage, predicted: the events that it drops, and the latency.
- `shed_outlook.py`: Outlook of steps that shed: how much they drop, and whether it helps.
- `shedding_ahead.py`: Making of the outlook of steps that shed.
- `what_if.py`: Assumptions of a prediction beside its sample: other costs, other links.
"""
