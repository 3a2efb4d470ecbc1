"""Predictions of a step's next second under a slack; this room only learns.

| file | what it says |
| --- | --- |
| `estimator.py` | the Estimator: history of a flow in, predictions for each of its steps out |
| `features.py` | features of a gate at the end of a second |
| `forecast.py` | forecast of a gate if its writers go on as they did |
| `predictors.py` | one protocol for models that learn a number from features, and their names |
| `linear.py`, `gaussian.py`, `likelihood.py` | the linear model, and the Gaussian process |
| `calibrated_predictor.py` | a forecast corrected by a model, and its past errors |
| `untuned.py` | latency of a step that is not tuned |
"""
