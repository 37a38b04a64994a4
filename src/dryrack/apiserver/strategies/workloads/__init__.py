"""Workloads: deployments, sets, jobs."""
