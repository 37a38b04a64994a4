"""Persistent volumes of a cluster that stores nothing."""
