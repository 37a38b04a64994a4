"""The release of dryrack."""

__version__ = "0.1.0"
