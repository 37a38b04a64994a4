"""Clusters recorded as scenarios, run again with changes, and the outcomes compared."""
