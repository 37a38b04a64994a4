"""Admission policies: the writes that they match, and their decisions."""
