"""Proofs that a branch of the search cannot succeed: bounds, symmetry and memory."""
