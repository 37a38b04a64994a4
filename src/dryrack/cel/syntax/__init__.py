"""What the reference's parser says about a text that is no expression."""

from dryrack.cel.syntax.recovery import explain

__all__ = ["explain"]
