"""The streams of the process, and views of them."""

from __future__ import annotations

import io

from dryrack.cli.streams import SafeStream, unfiltered


def test_a_view_of_a_closed_stream_closes_without_an_error() -> None:
    """From Python 3.13 on, an error in a finalizer is printed at the end of the command."""
    stream = SafeStream(io.BytesIO())
    view = unfiltered(stream)
    view.write("text")
    stream.close()

    view.close()

    assert view.closed
