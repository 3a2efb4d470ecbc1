"""Policies that put a source's rows in order, and the buffers that hold rows."""
