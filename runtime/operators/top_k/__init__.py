"""`top_k`, `newest` and `oldest`: the best rows of each key and window."""
