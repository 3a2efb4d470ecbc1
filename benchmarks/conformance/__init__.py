"""Suites that others wrote: their cases, as flows of ours."""
