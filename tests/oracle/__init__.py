"""Kubernetes' own code, asked through small Go programs, as the judge of ours."""
