"""The release of dryrack."""

__version__ = "0.2.0"
