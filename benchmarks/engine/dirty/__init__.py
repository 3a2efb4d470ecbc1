"""Dirty files: generated cases, what each expects, and whether the readers agree."""
