"""
What commands have in common that serve, or work on a cluster, until they are told to stop.

Where they listen and their pages are, how their log lines look, and the last of those if they
cannot go on.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError
from dryrack.base.numbers import read_int64
from dryrack.cli.files import UsageError
from dryrack.cli.output import say
from dryrack.cluster.process import Address

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from dryrack.cluster.process import LogFormat

_PORT_MAX = 65535
_logger = logging.getLogger(__name__)


def address_of(option: str, text: str) -> Address | None:
    """HOST:PORT or :PORT, as controllers take it; None for 0, which is nowhere."""
    if text in ("", "0"):
        return None
    host, separator, port = text.rpartition(":")
    number = read_int64(port)
    if not separator or number is None or not 0 <= number <= _PORT_MAX:
        raise UsageError(f"{option} {text!r}: HOST:PORT, for example 127.0.0.1:8082; 0 for none")
    return Address(host.strip("[]") or "0.0.0.0", number)


def listening_address(host: str, port: int, *, exposes: bool, risk: str) -> Address:
    """Of --host and --port; what other machines can reach has to be meant."""
    address = Address(host, port)
    try:
        is_loopback = address.is_loopback
    except ValueError:
        raise UsageError(f"--host {host!r}: an IP address, for example 127.0.0.1") from None
    if not is_loopback:
        if not exposes:
            raise UsageError(
                f"--host {host}: reachable from other machines; add --expose if that is meant"
            )
        say(f"warning: {host} can be reached from other machines; {risk}")
    return address


def log_format_of(text: str) -> LogFormat:
    from dryrack.cluster.process import LogFormat

    try:
        return LogFormat(text)
    except ValueError:
        raise UsageError(f"--log-format {text!r}: text or json") from None


def serve(form: LogFormat, work: Callable[[], Coroutine[Any, Any, None]]) -> bool:
    """Works with log lines of a form; whether all went well."""
    from dryrack.cluster.process import LogFormat, configure_logs, loop_factory

    configure_logs(form)
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(work())
    except DryrackError as error:
        # Whoever collects lines of JSON would stumble over a last one that is none.
        if form is not LogFormat.JSON:
            raise
        _logger.error("%s", error)  # noqa: TRY400 - the reason is known, and where is of no use
        return False
    return True
