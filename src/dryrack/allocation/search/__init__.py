"""The search for devices: the problem, the walk over it, and its results."""
