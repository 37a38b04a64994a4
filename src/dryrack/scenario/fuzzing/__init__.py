"""Simulation testing: random worlds with faults, and minimal scenarios of their failures."""
