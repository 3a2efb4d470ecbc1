"""`limit`: the first rows of a stream, and its end after them."""
