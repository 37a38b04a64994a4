"""
The two kinds of errors that are raised.

A mistake of the caller is a `DryrackError`: it names one object and a remedy, so that the CLI can
print it as it is. A bug of dryrack is an `InternalError`: it is never caught, and explains how to
report it. An outcome such as "does not fit" is never raised; it is a returned value with its
reasons.
"""


class DryrackError(Exception):
    """A mistake that the caller can correct; its text is written for a person."""


class ContentError(DryrackError):
    """The content of an input is invalid."""


class InternalError(AssertionError):
    """A bug of dryrack."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}; this is a bug in dryrack, please report it with the input")
