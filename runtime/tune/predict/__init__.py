"""Predictions of a step's next second under a slack; this room only learns.

- `calibrated_predictor.py`: Forecast corrected by a model, with deviations calibrated by past
  errors.
- `estimator.py`: Estimator of latency and slack-ready rows in the next second, under any slack.
- `features.py`: Features of a gate at the end of a second, to predict the next one.
- `forecast.py`: Forecast of a gate's next second, if its writers go on as they did.
- `gaussian.py`: Gaussian process with local noise, its shape chosen by blocks of time left out.
- `likelihood.py`: Likelihood of examples under a Gaussian process, and the lengths that maximize
  it.
- `linear.py`: Linear predictor, and the scale of features that all predictors use.
- `predictors.py`: Predictors of a number from features: one protocol, two models, and custom ones.
- `untuned.py`: Latency of a step that is not tuned, predicted from its course over time.
"""
