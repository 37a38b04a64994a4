"""Clusters as they are now, for those who look and write nothing."""
