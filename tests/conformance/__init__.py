"""Kubernetes' own end-to-end tests on the embedded control plane."""
