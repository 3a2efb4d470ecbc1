"""Slacks under a deadline: [ssg] §5.2, Table 1, Fig. 12 and 13, and flows of our own."""
