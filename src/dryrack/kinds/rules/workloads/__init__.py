"""Workloads: Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, CronJobs."""
