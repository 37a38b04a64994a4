"""Errors, limits, metrics, and the ports of time and randomness, for all packages."""
