"""`silence`: a row for each key from which nothing came for a given time."""
