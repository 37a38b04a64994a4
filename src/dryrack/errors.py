"""The exceptions that the library raises."""

from dryrack.base.errors import ContentError, DryrackError, InternalError

__all__ = ["ContentError", "DryrackError", "InternalError"]
