"""
Print log records on standard error: as text for people, or as JSON for log collectors.

A line has the time, the level, the logger, the message, and the fields of `extra`. As JSON, each
record is one object on one line, also if its message has line ends.
"""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from dryrack.base.escaping import json_text, visible, visible_lines

if TYPE_CHECKING:
    from typing import TextIO

# Attributes of every record; the others come from `extra`.
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_LEVELS = {"WARNING": "warn", "CRITICAL": "error"}


class LogFormat(StrEnum):
    """The format of log lines."""

    TEXT = "text"
    JSON = "json"


def configure_logs(form: LogFormat, stream: TextIO | None = None) -> None:
    """Print all records of dryrack from INFO on, and warnings of other libraries."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_JsonLines() if form is LogFormat.JSON else _TextLines())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("dryrack").setLevel(logging.INFO)


def server_log() -> logging.Logger:
    """Return the logger of aiohttp's servers, without records of clients that speak no HTTP."""
    log = logging.getLogger("dryrack.http")
    if _is_about_server not in log.filters:
        log.addFilter(_is_about_server)
    return log


def _is_about_server(record: logging.LogRecord) -> bool:
    # aiohttp logs a stack for each bad request, and anybody may send one. It is answered with 400.
    error = record.exc_info[1] if record.exc_info else None
    return type(error).__module__ != "aiohttp.http_exceptions"


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in vars(record).items() if key not in _OWN}


def _time(record: logging.LogRecord) -> str:
    when = datetime.fromtimestamp(record.created, UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _level(record: logging.LogRecord) -> str:
    return _LEVELS.get(record.levelname, record.levelname.lower())


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record),
            "level": _level(record),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["stack"] = self.formatException(record.exc_info)
        return json_text(line, default=str)


class _TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {key}={_quote(value)}" for key, value in _fields(record).items())
        # What follows on further lines is seen to belong to the first.
        message = visible_lines(record.getMessage()).replace("\n", "\n  ")
        line = f"{_time(record)} {_level(record):<5} {message}{fields}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def _quote(value: object) -> str:
    text = str(value)
    is_plain = text and text == visible(text) and not set(text) & set(' "=')
    return text if is_plain else json_text(text)
