"""What makes pods: deployments, sets, jobs."""
