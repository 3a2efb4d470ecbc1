"""`process`: a custom operator, with an object for each key and timers by event time."""
