"""
Client configurations of webhooks: their defaults and their problems.

Webhooks of admission and of conversion say it alike: a URL, or a Service.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dryrack.cel import UrlError, split_url
from dryrack.kinds.paths import get
from dryrack.kinds.rules.checks import port_number
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.validation.names import subdomain
from dryrack.kinds.validation.problems import invalid, required

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

_FORM = "; desired format: https://host[/path]"
_TIMEOUT_SECONDS = range(1, 31)
_HTTPS_PORT = 443


class WebhookRules(KindRules):
    """A configuration of admission webhooks."""

    def __init__(self) -> None:
        super().__init__(namespaced=False)

    def problems(self, obj: Raw) -> Sequence[FieldProblem]:
        webhooks = enumerate(get(obj, "webhooks", ()))
        return [each for index, one in webhooks for each in _webhook(f"webhooks[{index}]", one)]


def _webhook(at: str, webhook: Raw) -> Iterator[FieldProblem]:
    seconds = webhook.get("timeoutSeconds")
    if seconds is not None and seconds not in _TIMEOUT_SECONDS:
        detail = "the timeout value must be between 1 and 30 seconds"
        yield invalid(f"{at}.timeoutSeconds", seconds, detail)
    yield from client_config_problems(f"{at}.clientConfig", get(webhook, "clientConfig", {}))
    if conditions := get(webhook, "matchConditions", ()):
        # The compiler takes a while to load, and few webhooks have conditions.
        from dryrack.extension.policies.compiled_policy import PolicyCompiler

        compiler = PolicyCompiler({"matchConditions": conditions})
        compiler.compile()
        for each in compiler.problems:
            yield replace(each, field=f"{at}{each.field.removeprefix('spec')}")


def client_config_problems(at: str, config: Raw) -> Iterator[FieldProblem]:
    """Yield what is wrong with a clientConfig."""
    url = config.get("url")
    service = config.get("service")
    if (url is None) == (service is None):
        yield required(at, "exactly one of url or service is required")
    elif url is not None:
        yield from url_problems(f"{at}.url", url)
    else:
        assert service is not None, "url or service is set"
        yield from _service(f"{at}.service", service)


def url_problems(at: str, url: str) -> Iterator[FieldProblem]:
    """Yield what is wrong with the URL of a webhook: it names a host and a path of HTTPS alone."""
    try:
        parts = split_url(url)
    except UrlError as error:
        yield required(at, f"url must be a valid URL: {error}{_FORM}")
        return
    if parts.scheme != "https":
        yield invalid(at, parts.scheme, f"'https' is the only allowed URL scheme{_FORM}")
    if not parts.host:
        yield invalid(at, parts.host, f"host must be specified{_FORM}")
    if parts.user is not None:
        yield invalid(at, parts.user, "user information is not permitted in the URL")
    if parts.fragment:
        yield invalid(at, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield invalid(at, parts.query, "query parameters are not permitted in the URL")


def _service(at: str, service: Raw) -> Iterator[FieldProblem]:
    # kube-apiserver takes the name for the namespace, and complains about the other one.
    if not service.get("namespace"):
        yield required(f"{at}.name")
    if not service.get("name"):
        yield required(f"{at}.namespace")
    number = service.get("port", _HTTPS_PORT)
    for each in port_number(f"{at}.port", number):
        yield invalid(f"{at}.port", number, f"port is not valid: {each.detail}")
    path = service.get("path") or "/"
    if path != "/":
        yield from _path(f"{at}.path", path)


def _path(at: str, path: str) -> Iterator[FieldProblem]:
    if path == "//":
        yield invalid(at, path, "segment[0] may not be empty")
        return
    if not path.startswith("/"):
        yield invalid(at, path, "must start with a '/'")
    for index, segment in enumerate(path[1:].removesuffix("/").split("/")):
        if not segment:
            yield invalid(at, path, f"segment[{index}] may not be empty")
        else:
            for complaint in subdomain(segment):
                yield invalid(at, path, f"segment[{index}]: {complaint}")
