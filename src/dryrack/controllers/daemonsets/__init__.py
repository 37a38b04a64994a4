"""Daemon sets."""
