"""HTTPS: connections, limits, paths and media types."""
