"""The resource metrics API (metrics.k8s.io), by which `kubectl top` shows usage."""
