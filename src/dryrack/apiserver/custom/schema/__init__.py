"""Schemas of custom kinds: structure, values, formats and rules."""
