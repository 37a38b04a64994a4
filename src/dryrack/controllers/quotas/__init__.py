"""Quotas: what is used of them."""
