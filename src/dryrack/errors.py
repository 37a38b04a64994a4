"""What the library raises: mistakes of the caller, with what would put them right."""

from dryrack.base.errors import ContentError, DryrackError, InternalError

__all__ = ["ContentError", "DryrackError", "InternalError"]
