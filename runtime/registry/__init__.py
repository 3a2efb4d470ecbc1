"""Registry of operators, above the rooms of all of them."""
