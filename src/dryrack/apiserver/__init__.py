"""The store behind the Kubernetes API: paths, verbs, watches and errors of the real server."""
