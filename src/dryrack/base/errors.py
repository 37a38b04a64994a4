"""
The two kinds of "no" that are raised.

A mistake by the caller is a `DryrackError`: it is about one named thing and says what would
make it right, so a face can print it as it is. A bug of ours is an `InternalError`: nobody
catches it, and it says how to report it. The third kind of "no", an outcome such as "does
not fit", is never raised; it is a returned value with its reasons.
"""


class DryrackError(Exception):
    """A mistake that the caller can put right; its text is written for a person."""


class ContentError(DryrackError):
    """What was given to read says something wrong."""


class InternalError(AssertionError):
    """A bug of ours."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}; this is a bug in dryrack, please report it with the input")
