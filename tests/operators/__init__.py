"""Operators of other projects on the embedded control plane."""
