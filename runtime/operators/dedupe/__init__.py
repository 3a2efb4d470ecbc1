"""`dedupe`: of rows with equal keys that are close in event time only the first."""
