"""Replica sets."""
