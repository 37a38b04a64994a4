"""The speed of dryrack beside Kubernetes' own code, on the same cases, in one run."""
