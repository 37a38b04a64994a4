"""Validating admission policies: which writes they are about, and what they say of them."""
