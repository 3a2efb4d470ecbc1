"""[probslack]: windows that close in time."""
