"""What the next second of a stage would bring under a slack: learned, and never acted upon here.

| file | what it says |
| --- | --- |
| `estimator.py` | the Estimator: history of a flow in, predictions for each of its stages out |
| `features.py` | what is known of a gate at the end of a second |
| `forecast.py` | what a gate does if its writers go on as they did |
| `predictors.py` | one protocol for models that learn a number from features, and their names |
| `linear.py`, `gaussian.py`, `likelihood.py` | the linear one, and the Gaussian process |
| `calibrated_predictor.py` | a forecast mended by a model, and how far off it was |
| `untuned.py` | what a stage takes that is not tuned |
"""
