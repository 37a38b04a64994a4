"""Views of a cluster's devices, claims and gangs, for commands and the dashboard."""
