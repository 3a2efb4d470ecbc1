"""How quick the pattern operator is."""
