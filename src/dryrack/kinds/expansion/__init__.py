"""Expand objects into those that controllers create: pods of workloads, claims of templates."""
