"""dryrack gives Kubernetes devices that do not exist."""

__version__ = "0.1.0"
