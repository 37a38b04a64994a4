"""How fast we are beside Kubernetes' own code, on the same cases, in one run."""
