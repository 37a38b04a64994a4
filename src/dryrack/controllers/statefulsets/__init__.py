"""Stateful sets."""
