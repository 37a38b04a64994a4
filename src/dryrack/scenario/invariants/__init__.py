"""Invariants beyond the allocation of devices."""
