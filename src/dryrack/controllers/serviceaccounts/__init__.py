"""Service accounts."""
