"""Quotas of a namespace: how much of everything there may be in it."""
