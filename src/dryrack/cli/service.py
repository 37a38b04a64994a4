"""
Common parts of the commands that run until a signal stops them.

These are the addresses that they listen on, the format of their log lines, and the last log line
of a command that fails.
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
    """Return the address of HOST:PORT or :PORT; return None for 0, which disables the service."""
    if text in ("", "0"):
        return None
    host, separator, port = text.rpartition(":")
    number = read_int64(port)
    if not separator or number is None or not 0 <= number <= _PORT_MAX:
        form = "must be HOST:PORT, for example 127.0.0.1:8082, or 0 to disable it"
        raise UsageError(f"{option} {text!r}: {form}")
    return Address(host.strip("[]") or "0.0.0.0", number)


def listening_address(host: str, port: int, *, expose: bool, risk: str) -> Address:
    """Return the address of --host and --port; other machines may reach it only with --expose."""
    address = Address(host, port)
    try:
        is_loopback = address.is_loopback
    except ValueError:
        raise UsageError(f"--host {host!r}: must be an IP address, such as 127.0.0.1") from None
    if not is_loopback:
        if not expose:
            raise UsageError(
                f"--host {host}: other machines can reach this address; to allow it, add --expose"
            )
        say(f"warning: other machines can reach {host}; {risk}")
    return address


def log_format_of(text: str) -> LogFormat:
    from dryrack.cluster.process import LogFormat

    try:
        return LogFormat(text)
    except ValueError:
        raise UsageError(f"--log-format {text!r}: must be text or json") from None


def serve(form: LogFormat, work: Callable[[], Coroutine[Any, Any, None]]) -> bool:
    """Run the work with log lines in the given format; return whether it succeeded."""
    from dryrack.cluster.process import LogFormat, configure_logs, loop_factory

    configure_logs(form)
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(work())
    except DryrackError as error:
        # With JSON log lines, the error must be a JSON line, too.
        if form is not LogFormat.JSON:
            raise
        _logger.error("%s", error)  # noqa: TRY400 - the reason is known, and where is of no use
        return False
    return True
