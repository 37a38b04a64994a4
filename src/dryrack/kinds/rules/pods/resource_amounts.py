"""Validation of the resources of containers and pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import get
from dryrack.kinds.quantity import Quantity, QuantityError
from dryrack.kinds.quota_usage.pods import sum_requests
from dryrack.kinds.rules import checks
from dryrack.kinds.validation.names import label_key
from dryrack.kinds.validation.problems import Token, forbidden, invalid, not_supported, required

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

    Naming = Callable[[str, str], Iterator[FieldProblem]]

_OF_CONTAINERS = ("cpu", "ephemeral-storage", "memory")
_OF_PODS = ("cpu", "hugepages-", "memory")
_KNOWN = {
    *_OF_CONTAINERS,
    *(f"{part}.{name}" for part in ("limits", "requests") for name in _OF_CONTAINERS),
    *("pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps"),
    *("persistentvolumeclaims", "storage", "requests.storage"),
    *("services.nodeports", "services.loadbalancers"),
}
_PAGES = "hugepages-"


def of_container(at: str, given: Raw) -> Iterator[FieldProblem]:
    """Check requests and limits, in the order of their names."""
    return _amounts(at, given, container_resource_name)


def of_pod(at: str, spec: Raw) -> Iterator[FieldProblem]:
    """Check the resources of a pod: enough for all containers together and for each."""
    given = spec.get("resources")
    if given is None:
        return
    if given.get("claims") is not None:
        yield forbidden(f"{at}.claims", "claims may not be set for Resources at pod-level")
    yield from _amounts(at, given, _name_for_pod)
    for name, amount in sorted(_quantities(given, "requests").items()):
        total = sum_requests(spec, name)
        if total is not None and total > amount:
            detail = f"must be greater than or equal to aggregate container requests of {total}"
            yield invalid(f"{at}.requests[{name}]", str(amount), detail)
    whole = _quantities(given, "limits")
    for position, container in enumerate(get(spec, "containers", ())):
        limits = _quantities(get(container, "resources", {}), "limits")
        for name, limit in sorted(limits.items()):
            if name in whole and limit > whole[name]:
                detail = f"must be less than or equal to pod limits of {whole[name]}"
                yield invalid(f"{at}.containers[{position}][{name}].limits", str(limit), detail)


def _quantities(given: Raw, part: str) -> dict[str, Quantity]:
    return {name: Quantity.from_json(each) for name, each in (given.get(part) or {}).items()}


def _amounts(at: str, given: Raw, naming: Naming) -> Iterator[FieldProblem]:
    limits = _quantities(given, "limits")
    requests = _quantities(given, "requests")
    for name, amount in sorted(limits.items()):
        yield from _amount(f"{at}.limits[{name}]", name, amount, naming)
        yield from _pages(f"{at}.limits[{name}]", name, amount)
    for name, amount in sorted(requests.items()):
        yield from _amount(f"{at}.requests[{name}]", name, amount, naming)
        limit = limits.get(name)
        is_shareable = checks.is_native(name) and _PAGES not in name
        if limit is None and not is_shareable:
            detail = "Limit must be set for non overcommitable resources"
            yield required(f"{at}.limits", detail)
        elif limit is not None and amount != limit and not is_shareable:
            detail = f"must be equal to {name} limit of {limit}"
            yield invalid(f"{at}.requests", str(amount), detail)
        elif limit is not None and amount > limit:
            detail = f"must be less than or equal to {name} limit of {limit}"
            yield invalid(f"{at}.requests", str(amount), detail)
        yield from _pages(f"{at}.requests[{name}]", name, amount)
    names = {*limits, *requests}
    if any(name.startswith(_PAGES) for name in names) and not names & {"cpu", "memory"}:
        yield forbidden(at, "HugePages require cpu or memory")


def _amount(at: str, name: str, amount: Quantity, naming: Naming) -> Iterator[FieldProblem]:
    yield from naming(at, name)
    yield from checks.quantity_problems(at, name, amount)


def resource_name(at: str, name: str) -> Iterator[FieldProblem]:
    """Check the name of a resource."""
    complaints = [invalid(at, Token(name), each) for each in label_key(name)]
    yield from complaints
    is_known = name in _KNOWN or name.startswith((_PAGES, f"requests.{_PAGES}"))
    if not complaints and "/" not in name and not is_known:
        yield invalid(at, Token(name), "must be a standard resource type or fully qualified")


def container_resource_name(at: str, name: str) -> Iterator[FieldProblem]:
    """Check the name of a resource of a container."""
    yield from resource_name(at, name)
    if "/" not in name:
        if name not in _OF_CONTAINERS and not name.startswith(_PAGES):
            yield invalid(at, Token(name), "must be a standard resource for containers")
    elif not checks.is_native(name) and not _is_extended(name):
        yield invalid(at, Token(name), "doesn't follow extended resource name standard")


def _name_for_pod(at: str, name: str) -> Iterator[FieldProblem]:
    found = list(resource_name(at, name))
    yield from found
    if not found and name not in _OF_PODS and not name.startswith(_PAGES):
        yield not_supported(at, name, _OF_PODS)


def _is_extended(name: str) -> bool:
    """Return whether a quota could name the resource with its prefix."""
    if checks.is_native(name) or name.startswith("requests."):
        return False
    return not label_key(f"requests.{name}")


def _pages(at: str, name: str, amount: Quantity) -> Iterator[FieldProblem]:
    """Check that huge pages are whole pages."""
    if name.startswith(_PAGES) and not _is_multiple(amount, name.removeprefix(_PAGES)):
        yield invalid(at, str(amount), f"{amount} is not positive integer multiple of {name}")


def _is_multiple(amount: Quantity, size: str) -> bool:
    try:
        page = Quantity.parse(size)
    except QuantityError:
        return False
    if page.sign <= 0 or page.milli_value() % 1000:
        return False
    return not amount.value() % page.value()
