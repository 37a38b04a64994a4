"""Validating admission policies: their expressions, and what is wrong with them."""
