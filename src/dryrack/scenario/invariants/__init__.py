"""Invariants that look at more than who has which device: what was on offer, and is prepared."""
