"""The one way an engine reaches a cluster: over HTTPS, or in process without any socket."""
