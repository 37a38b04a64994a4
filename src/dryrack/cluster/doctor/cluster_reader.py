"""Read a cluster for the checks: lists, dry runs, and access reviews; nothing is stored."""

from __future__ import annotations

import asyncio
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, TypeVar

import msgspec
import yaml

from dryrack.base.errors import DryrackError
from dryrack.client.client import EVERYTHING, Client, Selection
from dryrack.client.discovery import discover
from dryrack.client.endpoints import (
    CLAIMS,
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    LEASES,
    NAMESPACES,
    NODES,
    QUOTAS,
    SERVICES,
    SLICES,
    TEMPLATES,
    Endpoint,
)
from dryrack.client.errors import (
    ApiError,
    ForbiddenError,
    NotFoundError,
    TransportError,
)
from dryrack.client.informer import Name
from dryrack.client.transport import Request, User
from dryrack.cluster import rights
from dryrack.cluster.attached import remedy
from dryrack.cluster.doctor.model import (
    ENGINES,
    Attempt,
    ClusterFacts,
    Subject,
    Unknown,
    Verdict,
    fail,
)
from dryrack.cluster.doctor.server_checks import GATES, GRANULAR_MINOR_MIN, minor_of
from dryrack.cluster.doctor.webhook_rules import (
    MUTATING_WEBHOOKS,
    POLICIES,
    POLICY_BINDINGS,
    VALIDATING_WEBHOOKS,
    blocking_services,
)
from dryrack.cluster.process.component_status import COMPONENTS, component_failures
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

    from dryrack.base.ports import Clock
    from dryrack.client.transport import Response, Transport
    from dryrack.kinds.raw import Raw

_Key = TypeVar("_Key")
_Result = TypeVar("_Result")

# A cluster gets no more requests at a time.
_REQUESTS_MAX = 16
_PRINT_RBAC = "dryrack doctor --print-rbac | kubectl apply -f -"
_AUTHORIZATION = "authorization.k8s.io"
_SELF_REVIEW = Endpoint(
    *("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview"),
    is_namespaced=False,
)
_ACCESS_REVIEW = Endpoint(
    *(_AUTHORIZATION, "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    is_namespaced=False,
)
_SUBJECT_REVIEW = Endpoint(
    *(_AUTHORIZATION, "v1", "subjectaccessreviews", "SubjectAccessReview"), is_namespaced=False
)
_KWOK_CONTROLLER = Selection(fields="metadata.name=kwok-controller")
_LISTS: Mapping[Endpoint, Selection] = {
    **dict.fromkeys((NODES, SLICES, CLAIMS, TEMPLATES, NAMESPACES, QUOTAS, LEASES), EVERYTHING),
    **dict.fromkeys((DAEMON_SETS, VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS), EVERYTHING),
    **dict.fromkeys((POLICIES, POLICY_BINDINGS), EVERYTHING),
    DEPLOYMENTS: _KWOK_CONTROLLER,
}
# Fields of a device that the API server drops if the gate is off.
_GATED_FIELDS: Mapping[str, Raw] = {
    "DRAPartitionableDevices": {
        "consumesCounters": [{"counterSet": "doctor", "counters": {"units": {"value": "1"}}}]
    },
    "DRADeviceTaints": {"taints": [{"key": "example.com/doctor", "effect": "NoSchedule"}]},
    "DRADeviceBindingConditions": {
        "bindingConditions": ["example.com/doctor"],
        "bindingFailureConditions": ["example.com/doctor-failed"],
    },
    "DRAConsumableCapacity": {"allowMultipleAllocations": True},
}
assert _GATED_FIELDS.keys() == GATES.keys()
# An endpoint of this Service is a process that `dryrack run` started.
_ADDRESS = "dryrack.dev/address"


class _TimedTransport:
    """Records the time of the server, and how much the clock of this machine differs from it."""

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        self.server_time: float | None = None
        self.skew: float | None = None

    async def send(self, request: Request) -> Response:
        response = await self._transport.send(request)
        date = response.header("date")
        if date is not None and self.server_time is None:
            self.server_time = parsedate_to_datetime(date).timestamp()
            self.skew = self._clock.now() - self.server_time
        return response


class _DryRunTransport:
    """Sends each request as a dry run, which stores nothing."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def send(self, request: Request) -> Response:
        query = "&".join(part for part in (request.query, "dryRun=All") if part)
        return await self._transport.send(msgspec.structs.replace(request, query=query))


async def observe_cluster(
    transport: Transport, server: str, subject: Subject, clock: Clock
) -> ClusterFacts | Verdict:
    """Return the facts about a cluster, or a verdict if it cannot be reached."""
    timed = _TimedTransport(transport, clock)
    client = Client(timed, agent="dryrack-doctor")
    try:
        version = await client.get_path("/version")
        live = await timed.send(Request("GET", "/livez"))
    except (ApiError, TransportError) as error:
        return fail(f"{server}: {error}", remedy(error, NODES, "dryrack doctor"))
    except DryrackError as error:
        return fail(f"{server}: {error}", "check the credentials in the kubeconfig")
    reader = _Reader(client)
    versions = await reader.versions()
    lists = await reader.lists()
    is_virtual = "dryrack" in str(version.get("gitVersion", ""))
    return ClusterFacts(
        server=server,
        version=version,
        is_live=live.status < 500,
        user=await reader.user(),
        server_time=timed.server_time,
        clock_skew_seconds=timed.skew,
        versions=versions,
        lists=lists,
        attempts=await reader.attempts(subject, versions),
        denied=await reader.missing_rights(
            subject, versions, minor_of(version.get("gitVersion", ""))
        ),
        may_write_for_any_node=await reader.is_allowed(_ANY_NODE, subject),
        services=await reader.services(lists, is_virtual=is_virtual),
        component_failures=await reader.component_failures() if is_virtual else (),
    )


class _Reader:
    """Reads facts; a fact that the user may not read is an `Unknown`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._turns = asyncio.Semaphore(_REQUESTS_MAX)

    async def _each(
        self, keys: Iterable[_Key], read: Callable[[_Key], Awaitable[_Result]]
    ) -> dict[_Key, _Result]:
        """Return the result of `read` for each key."""

        async def read_one(key: _Key) -> _Result:
            async with self._turns:
                return await read(key)

        wanted = list(keys)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(read_one(key), name=f"doctor {key}") for key in wanted]
        return {key: task.result() for key, task in zip(wanted, tasks, strict=True)}

    async def user(self) -> User | Unknown:
        try:
            review = await self._client.create(_SELF_REVIEW, {})
        except (ApiError, TransportError) as error:
            return _unknown(error)
        info = get(review, "status.userInfo", {})
        extra = {key: tuple(values) for key, values in get(info, "extra", {}).items()}
        return User(info.get("username", ""), tuple(get(info, "groups", ())), extra=extra)

    async def versions(self) -> Mapping[tuple[str, str], str] | Unknown:
        try:
            served = await discover(self._client)
        except (ApiError, TransportError) as error:
            return _unknown(error)
        return {(it.endpoint.group, it.endpoint.plural): it.endpoint.version for it in served}

    async def lists(self) -> dict[Endpoint, tuple[Raw, ...] | Unknown]:
        async def read(endpoint: Endpoint) -> tuple[Raw, ...] | Unknown:
            try:
                return (await self._client.list(endpoint, _LISTS[endpoint])).items
            except NotFoundError:
                return ()
            except (ApiError, TransportError) as error:
                return _unknown(error)

        return await self._each(_LISTS, read)

    async def attempts(
        self, subject: Subject, versions: Mapping[tuple[str, str], str] | Unknown
    ) -> dict[str, Attempt]:
        """Return the answers to dry runs of ResourceSlices; none if v1 is not served."""
        key = (SLICES.group, SLICES.plural)
        if isinstance(versions, Unknown) or versions.get(key) != SLICES.version:
            return {}
        client = self._client.through(_DryRunTransport)

        async def attempt(gate: str) -> Attempt:
            try:
                return Attempt(await client.create(SLICES, _slice(gate, subject)))
            except ForbiddenError as error:
                return Attempt(None, str(error), is_allowed=False)
            except (ApiError, TransportError) as error:
                return Attempt(None, str(error))

        return await self._each(("", *GATES), attempt)

    async def missing_rights(
        self,
        subject: Subject,
        versions: Mapping[tuple[str, str], str] | Unknown,
        minor: int | None,
    ) -> dict[str, tuple[str, ...] | Unknown]:
        """Return the rights that the account lacks, by engine."""
        if isinstance(versions, Unknown):
            return dict.fromkeys(ENGINES, versions)
        rules = {engine: list(_access_of(engine, subject.namespace)) for engine in ENGINES}
        wanted = {
            access
            for each in rules.values()
            for access in each
            if (access.group, access.plural) in versions
            and not (access.is_granular and minor is not None and minor < GRANULAR_MINOR_MIN)
        }

        answers = await self._each(wanted, lambda access: self.is_allowed(access, subject))
        return {engine: _find_missing(each, answers) for engine, each in rules.items()}

    async def is_allowed(self, access: _Access, subject: Subject) -> bool | Unknown:
        """Return whether the account has a right."""
        spec: Raw = {"resourceAttributes": access.attributes()}
        endpoint = _ACCESS_REVIEW
        if subject.account:
            endpoint = _SUBJECT_REVIEW
            spec |= {"user": subject.account, "groups": _groups_of(subject.account)}
        try:
            answer = await self._client.create(endpoint, {"spec": spec})
        except (ApiError, TransportError) as error:
            return _unknown(error)
        return bool(get(answer, "status.allowed"))

    async def services(
        self, lists: Mapping[Endpoint, tuple[Raw, ...] | Unknown], *, is_virtual: bool
    ) -> dict[tuple[str, str], bool | Unknown]:
        """Return whether the Services of webhooks have a ready endpoint."""
        configurations: list[Raw] = []
        for endpoint in (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS):
            items = lists[endpoint]
            configurations += () if isinstance(items, Unknown) else items

        async def is_ready(service: tuple[str, str]) -> bool | Unknown:
            namespace, name = service
            selection = Selection(namespace=namespace, labels=f"kubernetes.io/service-name={name}")
            try:
                slices = (await self._client.list(ENDPOINT_SLICES, selection)).items
                if any(
                    get(endpoint, "conditions.ready", default=True)
                    for each in slices
                    for endpoint in get(each, "endpoints", ())
                ):
                    return True
                if not is_virtual:
                    return False
                stored = await self._client.get(SERVICES, name, namespace)
            except NotFoundError:
                return False
            except (ApiError, TransportError) as error:
                return _unknown(error)
            return _ADDRESS in get(stored, "metadata.annotations", {})

        return await self._each({each for _, each in blocking_services(configurations)}, is_ready)

    async def component_failures(self) -> tuple[Raw, ...] | Unknown:
        try:
            stored = await self._client.get(CONFIG_MAPS, COMPONENTS.name, COMPONENTS.namespace)
        except NotFoundError:
            return ()
        except (ApiError, TransportError) as error:
            return _unknown(error)
        return component_failures(stored)


def _unknown(error: ApiError | TransportError) -> Unknown:
    """Return the reason of a fact that the user may not read, or that cannot be read."""
    return Unknown(str(error), _PRINT_RBAC if isinstance(error, ForbiddenError) else "")


def _slice(gate: str, subject: Subject) -> Raw:
    is_local = "plugin" in subject.engines and subject.node
    place: Raw = {"nodeName": subject.node} if is_local else {"allNodes": True}
    return {
        "metadata": {"generateName": "dryrack-doctor-"},
        "spec": {
            "driver": subject.driver,
            "pool": {"name": "dryrack-doctor", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "device-0", **_GATED_FIELDS.get(gate, {})}],
            **place,
        },
    }


class _Access(msgspec.Struct, frozen=True):
    """One right of a rule."""

    namespace: str
    group: str
    resource: str
    name: str
    verb: str

    @property
    def plural(self) -> str:
        return self.resource.partition("/")[0]

    @property
    def is_granular(self) -> bool:
        """Return whether only newer API servers check the right."""
        return self.resource in ("resourceclaims/binding", "resourceclaims/driver")

    def attributes(self) -> Raw:
        plural, _, subresource = self.resource.partition("/")
        values = {
            "namespace": self.namespace,
            "group": self.group,
            "resource": plural,
            "subresource": subresource,
            "name": self.name,
            "verb": self.verb,
        }
        return {key: value for key, value in values.items() if value}

    def text(self) -> str:
        name = f" {self.name}" if self.name else ""
        place = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {self.resource}{name}{place}"


_ANY_NODE = _Access("", CLAIMS.group, f"{CLAIMS.plural}/driver", "", "arbitrary-node:patch")


def _access_of(engine: str, namespace: str) -> Iterator[_Access]:
    """Yield the rights in the manifest of a command."""
    for document in yaml.safe_load_all(_manifest(engine, namespace)):
        if document["kind"] not in ("Role", "ClusterRole"):
            continue
        place = document["metadata"].get("namespace", "")
        for rule in document["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for name in rule.get("resourceNames", ("",)):
                        for verb in rule["verbs"]:
                            yield _Access(place, group, resource, name, verb)


def _manifest(engine: str, namespace: str) -> str:
    match engine:
        case "publish":
            place = namespace or "karpenter"
            names = (Name(place, "dra-kwok-configmap"), Name(place, "dryrack-publisher"))
            return rights.publisher(rights.Publisher(config_map=names[0], lease=names[1]))
        case "schedule":
            lease = Name(namespace or "kube-system", "dryrack-scheduler")
            return rights.scheduler("dryrack-scheduler", lease)
        case "plugin":
            return rights.plugin("")
        case _:
            return rights.dashboard()


def _find_missing(
    wanted: Iterable[_Access], answers: Mapping[_Access, bool | Unknown]
) -> tuple[str, ...] | Unknown:
    denied: list[str] = []
    for access in wanted:
        answer = answers.get(access, True)
        if isinstance(answer, Unknown):
            return answer
        if not answer:
            denied.append(access.text())
    return tuple(dict.fromkeys(denied))


def _groups_of(account: str) -> list[str]:
    """Return the groups that the API server adds for a user."""
    parts = account.split(":")
    groups = ["system:authenticated"]
    if parts[:2] == ["system", "serviceaccount"] and len(parts) == 4:
        groups += ["system:serviceaccounts", f"system:serviceaccounts:{parts[2]}"]
    return groups
