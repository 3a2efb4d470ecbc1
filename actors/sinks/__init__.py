"""Write results where they leave: to files, to the user's function, or to memory."""
