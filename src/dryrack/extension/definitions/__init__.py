"""Definitions of custom kinds: their schemas, the rules in these, and values by them."""
