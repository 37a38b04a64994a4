"""Simulation testing: random worlds with faults, and the smallest scenario of what they find."""
