"""URLs, parsed as Go's net/url parses them and in its words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from dryrack.cel.evaluation.values import URL, Err, Value
from dryrack.cel.functions.networks import AddressError, parse_address
from dryrack.kinds.text.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Callable

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PORT = re.compile(r"(:[0-9]*)?")
_USERINFO = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_ESCAPE = re.compile(rb"%([0-9a-fA-F]{2})")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~")
_PATH_SAFE = _UNRESERVED | frozenset(b"$&+,/:;=@")
_PATH_VALID = _PATH_SAFE | frozenset(b"!'()*[]%")
_HOST_SAFE = _UNRESERVED | frozenset(b"!$&'()*+,;=:[]<>\"")
_FRAGMENT_SAFE = _UNRESERVED | frozenset(b"$&+,/:;=?@!()*")


class UrlError(ValueError):
    """The text is not a URL; the message is Go's."""


@dataclass(frozen=True, slots=True)
class _Parts:
    scheme: str
    opaque: str = ""
    user: str | None = None
    host: str = ""
    omit_host: bool = False
    raw_path: str = ""
    query: str = ""
    force_query: bool = False


@dataclass(frozen=True, slots=True)
class UrlParts:
    """The parts that Go's url.Parse finds in a text."""

    scheme: str
    user: str | None
    host: str
    query: str
    fragment: str


def split_url(text: str) -> UrlParts:
    """Return the parts of a URL, or of a reference that has only some of them."""
    before, _, fragment = text.partition("#")
    try:
        parts = _parse(before, request=False)
    except UrlError as error:
        raise UrlError(f"parse {quoted(before)}: {error}") from None
    try:
        _check_escapes(fragment)
    except UrlError as error:
        raise UrlError(f"parse {quoted(text)}: {error}") from None
    return UrlParts(parts.scheme, parts.user, parts.host, parts.query, _unescape(fragment))


def check_request(text: str) -> None:
    """Raise `UrlError` unless the text is an absolute URL or an absolute path."""
    try:
        _parse(text, request=True)
    except UrlError as error:
        raise UrlError(f"parse {quoted(text)}: {error}") from None


def parse_url(text: str) -> URL:
    check_request(text)
    before, _, fragment = text.partition("#")
    try:
        parts = _parse(before, request=False)
    except UrlError as error:
        raise UrlError(f"parse {quoted(before)}: {error}") from None
    try:
        _check_escapes(fragment)
    except UrlError as error:
        raise UrlError(f"parse {quoted(text)}: {error}") from None
    return URL(
        scheme=parts.scheme,
        host=parts.host,
        path=_escaped_path(parts.raw_path),
        query=parts.query,
        text=_whole(parts) + (f"#{_escaped_fragment(fragment)}" if fragment else ""),
    )


@lru_cache(maxsize=4096)
def _parse(text: str, *, request: bool) -> _Parts:
    if _CONTROL.search(text):
        raise UrlError("net/url: invalid control character in URL")
    if not text and request:
        raise UrlError("empty url")
    if text == "*":
        return _Parts("", raw_path="*")
    if text.startswith(":"):
        raise UrlError("missing protocol scheme")
    match = _SCHEME.match(text)
    scheme, rest = (match[0][:-1].lower(), text[match.end() :]) if match else ("", text)
    force_query = rest.endswith("?") and rest.count("?") == 1
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return _Parts(scheme, opaque=rest, query=query, force_query=force_query)
        if request:
            raise UrlError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise UrlError("first path segment in URL cannot contain colon")
    user, host, path, omit_host = _split_authority(scheme, rest, request=request)
    _check_escapes(path)
    return _Parts(
        scheme,
        user=user,
        host=host,
        omit_host=omit_host,
        raw_path=path,
        query=query,
        force_query=force_query,
    )


def _split_authority(scheme: str, rest: str, *, request: bool) -> tuple[str | None, str, str, bool]:
    allowed = scheme or (not request and not rest.startswith("///"))
    if not (allowed and rest.startswith("//")):
        return None, "", rest, bool(scheme) and rest.startswith("/")
    authority, slash, path = rest[2:].partition("/")
    user, at, host = authority.rpartition("@")
    host = _host(scheme, host)
    if at and not _USERINFO.fullmatch(user):
        raise UrlError("net/url: invalid userinfo")
    if at:
        _check_escapes(user)
    return (user if at else None), host, slash + path, False


def _host(scheme: str, host: str) -> str:
    bracket = host.rfind("[")
    if bracket > 0:
        raise UrlError("invalid IP-literal")
    if bracket == 0:
        return _literal_host(host)
    if ":" in host:
        first = host.find(":")
        last = host.rfind(":")
        port = host[first if scheme in ("http", "https") else last :]
        if not _PORT.fullmatch(port):
            raise UrlError(f"invalid port {quoted(port)} after host")
    return _unescape_host(host)


def _literal_host(host: str) -> str:
    close = host.rfind("]")
    if close < 0:
        raise UrlError("missing ']' in host")
    port = host[close + 1 :]
    if not _PORT.fullmatch(port):
        raise UrlError(f"invalid port {quoted(port)} after host")
    name, zone, rest = host[1:close].partition("%25")
    inside = _unescape_host(name) + (f"%{_unescape(rest)}" if zone else "")
    try:
        address, _zone = parse_address(inside)
    except AddressError as error:
        raise UrlError(f"invalid host: {error}") from None
    if address.version == 4:
        raise UrlError("invalid IP-literal")
    return f"[{inside}]{port}"


def _unescape_host(host: str) -> str:
    _check_escapes(host)
    for found in _ESCAPE.finditer(host.encode()):
        if int(found[1], 16) < 0x80 and found[0] != b"%25":
            raise UrlError(f"invalid URL escape {quoted(found[0].decode())}")
    for character in host:
        if ord(character) < 0x80 and character != "%" and ord(character) not in _HOST_SAFE:
            raise UrlError(f"invalid character {quoted(character)} in host name")
    return _unescape(host)


def _check_escapes(text: str) -> None:
    bad = _BAD_ESCAPE.search(text)
    if bad:
        raise UrlError(f"invalid URL escape {quoted(text[bad.start() : bad.start() + 3])}")


def _unescape(text: str) -> str:
    raw = _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), text.encode())
    return raw.decode(errors="replace")


def _escape(raw: bytes, safe: frozenset[int]) -> str:
    return "".join(chr(byte) if byte in safe else f"%{byte:02X}" for byte in raw)


def _escaped_path(raw_path: str) -> str:
    encoded = raw_path.encode()
    if raw_path == "*" or all(byte in _PATH_VALID for byte in encoded):
        return raw_path
    plain = _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), encoded)
    return _escape(plain, _PATH_SAFE)


def _escaped_fragment(fragment: str) -> str:
    plain = _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), fragment.encode())
    return _escape(plain, _FRAGMENT_SAFE)


def _whole(parts: _Parts) -> str:
    text = f"{parts.scheme}:" if parts.scheme else ""
    if parts.opaque:
        text += parts.opaque
    else:
        has_authority = parts.scheme or parts.host or parts.user is not None
        empty = parts.omit_host and not parts.host and parts.user is None
        if has_authority and not empty:
            text += "//" if parts.host or parts.raw_path or parts.user is not None else ""
            text += f"{parts.user}@" if parts.user is not None else ""
            text += _escape(parts.host.encode(), _HOST_SAFE)
        text += _escaped_path(parts.raw_path)
    return text + (f"?{parts.query}" if parts.query or parts.force_query else "")


def _string_to_url(text: str) -> Value:
    try:
        return parse_url(text)
    except UrlError as error:
        return Err(f"URL parse error during conversion from string: {error}")


def _is_url(text: str) -> bool:
    try:
        check_request(text)
    except UrlError:
        return False
    return True


def _split_port(host: str) -> tuple[str, str]:
    name, colon, port = host.rpartition(":")
    if not colon or not _PORT.fullmatch(colon + port):
        name = host
        port = ""
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    return name, port


def _query(url: URL) -> Value:
    values: dict[str, Value] = {}
    for pair in url.query.split("&"):
        if not pair or ";" in pair or _BAD_ESCAPE.search(pair):
            continue
        key, _, value = pair.partition("=")
        values.setdefault(_unescape(key.replace("+", " ")), []).append(
            _unescape(value.replace("+", " "))
        )
    return dict(sorted(values.items()))


OVERLOADS: dict[str, Callable[..., Value]] = {
    "string_to_url": _string_to_url,
    "is_url_string": _is_url,
    "url_get_scheme": lambda url: url.scheme,
    "url_get_host": lambda url: url.host,
    "url_get_hostname": lambda url: _split_port(url.host)[0],
    "url_get_port": lambda url: _split_port(url.host)[1],
    "url_get_escaped_path": lambda url: url.path,
    "url_get_query": _query,
}
