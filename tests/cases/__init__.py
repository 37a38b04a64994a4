"""The project's own cases: what Kubernetes answers, one idea in each file."""
