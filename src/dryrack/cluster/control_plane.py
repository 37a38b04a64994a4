"""
Build a control plane: an API server with all its parts, in memory or on a journal.

Every control plane gets parts of its own; two of them share nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING

from dryrack.apiserver import (
    EVENT_SECONDS,
    RBAC_GROUP,
    AlwaysAllow,
    ApiServer,
    Authorization,
    CustomKinds,
    DiscoveryPages,
    EventExpiry,
    ExtensionPoints,
    HealthPages,
    IndexPage,
    MetricsPage,
    NoSuchPage,
    PathGuard,
    PreparedClaimsPage,
    PrintedTables,
    Rbac,
    Registry,
    Tokens,
    VersionPage,
    access_review_handlers,
    authorizer,
    builtin_resources,
    metrics_resources,
    pod_handlers,
    strategy_of,
    token_review_handlers,
    workload_handlers,
)
from dryrack.apiserver.runtime_config import RuntimeConfig
from dryrack.base.lazy import late
from dryrack.base.limits import WATCH_LOG_EVENTS_MAX
from dryrack.base.metrics import Registry as Metrics
from dryrack.client.client import Client
from dryrack.cluster.admission_chain import (
    AdmissionPolicies,
    AdmissionWebhooks,
    MutatingPolicies,
    PostedAdmission,
    approval,
    deletion,
    mutation,
)
from dryrack.cluster.bootstrap import Bootstrap
from dryrack.cluster.engines import Wiring
from dryrack.cluster.ports import SystemChance, SystemClock
from dryrack.cluster.process.modes import AuthorizationMode
from dryrack.cluster.signing import EllipticKey
from dryrack.kinds.paths import get
from dryrack.kinds.registry import KINDS, builtin_kinds
from dryrack.kinds.releases import DEFAULT_RELEASE, FeatureSet, Release
from dryrack.store import Key, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dryrack.apiserver import (
        Admission,
        AllPatches,
        FieldRights,
        GoShapes,
        Management,
        OpenApiPages,
        Resource,
        SchemaSource,
        SigningKey,
        Write,
    )
    from dryrack.base.ports import Chance
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.client.transport import Request, Response, Transport
    from dryrack.cluster.journal import SqliteJournal
    from dryrack.controllers import Drivers, Sandboxes
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem
    from dryrack.store import Journal

# How long the token of a pod is valid, as for the volume that admission adds.
TOKEN_SECONDS = 3607


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlaneOptions:
    """Options of a control plane."""

    clock: Timekeeper = field(default_factory=SystemClock)
    chance: Chance = field(default_factory=SystemChance)
    authorization: AuthorizationMode = AuthorizationMode.ALWAYS_ALLOW
    runtime_config: RuntimeConfig = field(default_factory=RuntimeConfig)
    release: Release = DEFAULT_RELEASE
    """The release of Kubernetes that the API server behaves as."""
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    """The feature gates that are not at the default of the release."""
    signing_key: SigningKey = field(default_factory=EllipticKey.fresh)
    journal: SqliteJournal | None = None
    recorder: Journal | None = None
    """Gets every write to a store in memory."""
    event_seconds: float = EVENT_SECONDS
    """How long Events are kept after their last write."""
    watch_log_events_max: int = WATCH_LOG_EVENTS_MAX
    """How many writes of each resource a watch can go back."""
    authority: str = ""
    """
    The certificates by which clients verify the server, in PEM: pods find them in every namespace.
    """
    drivers: Drivers | None = None
    """Prepare devices for containers on virtual nodes; None: logs show only their names."""
    prepared_claims: Callable[[], Mapping[str, Sequence[str]]] = dict
    """Returns the UIDs of the claims that simulated drivers have prepared, by driver."""


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """One API server with its store and its parts."""

    options: ControlPlaneOptions
    store: Store
    server: ApiServer
    tokens: Tokens
    authorization: Authorization
    metrics: Metrics
    """Metrics of the engines of this cluster, for `/metrics`."""
    expiry: EventExpiry
    sandboxes: Sandboxes
    """The containers of virtual nodes."""

    @property
    def transport(self) -> Transport:
        """The transport of all clients, which answers when a write is safe."""
        journal = self.options.journal
        if journal is None:
            return self.server
        from dryrack.cluster.journal import Durable

        return Durable(self.server, journal)

    def client(self, agent: str = "dryrack") -> Client:
        return Client(self.transport, agent=agent)

    def wiring(self, engine: str) -> Wiring:
        """Return what a family of engines works with."""
        options = self.options
        return Wiring(
            self.client(engine),
            options.clock,
            options.chance,
            options.authority,
            metrics=self.metrics,
            sandboxes=self.sandboxes,
            release=options.release,
            feature_gates=options.feature_gates,
        )


def build_control_plane(options: ControlPlaneOptions) -> ControlPlane:
    """Return a control plane with the objects that every cluster has from the start."""
    store = _store(options)
    tokens = Tokens(
        options.signing_key, _Objects(store), clock=options.clock, chance=options.chance
    )
    authorization: Authorization = (
        Rbac(store) if options.authorization is AuthorizationMode.RBAC else AlwaysAllow()
    )
    sandboxes = late(partial(_sandboxes, store, options, tokens))
    handlers = {
        **token_review_handlers(tokens),
        **access_review_handlers(authorization),
        **pod_handlers(sandboxes, options.clock),
        **workload_handlers(),
    }
    features = FeatureSet(options.release, options.feature_gates)
    served: list[Resource] = []
    unserved: list[Resource] = []
    for kind, resource in zip(
        builtin_kinds(options.release),
        builtin_resources(features, strategy_of, handlers),
        strict=True,
    ):
        is_enabled = not kind.gate or features.is_on(kind.gate)
        is_served = is_enabled and options.runtime_config.serves(kind)
        (served if is_served else unserved).append(resource)
    registry = Registry((*served, *metrics_resources()), unserved=unserved)
    custom = CustomKinds()
    metrics = Metrics()
    server = ApiServer(
        store,
        registry,
        clock=options.clock,
        chance=options.chance,
        extensions=_extensions(registry, store, authorization, custom, metrics, options),
    )
    custom.attach(server)
    expiry = EventExpiry(store, options.clock, options.event_seconds)
    bootstrap = Bootstrap(store, options.clock, options.chance)
    bootstrap.essentials()
    if options.authority:
        bootstrap.authentication(options.authority)
    if options.authorization is AuthorizationMode.RBAC:
        bootstrap.roles(options.release)
    return ControlPlane(options, store, server, tokens, authorization, metrics, expiry, sandboxes)


def _store(options: ControlPlaneOptions) -> Store:
    journal = options.journal
    events_max = options.watch_log_events_max
    if journal is None:
        return Store(options.recorder, events_max=events_max)
    revision = journal.revision()
    store = Store.restore(journal.records(), journal, revision=revision, events_max=events_max)
    _check_stored_versions(store, options.release)
    return store


def _check_stored_versions(store: Store, release: Release) -> None:
    """Raise an error about objects in a version of their kind that the release does not have."""
    versions: dict[str, set[str]] = {}
    for kind in builtin_kinds(release):
        versions.setdefault(kind.storage, set()).add(kind.api_version)
    others = {each.storage for each in KINDS if not each.since <= release <= each.until}
    for storage in sorted(others & versions.keys()):
        objects = store.list(storage, None)[0]
        unknown = [each for each in objects if each.object["apiVersion"] not in versions[storage]]
        if unknown:
            from dryrack.cluster.journal import DataDirectoryError

            version = unknown[0].object["apiVersion"]
            [*_, served] = (
                each for each in Release if version in {k.api_version for k in builtin_kinds(each)}
            )
            raise DataDirectoryError(
                f"the data directory has objects of {storage} in {version} ({len(unknown)}), which "
                f"Kubernetes {release.value} does not have; start with --release {served.value} "
                f"--runtime-config {version}=true, delete them, and start again"
            )


def _extensions(
    registry: Registry,
    store: Store,
    authorization: Authorization,
    custom: CustomKinds,
    engines: Metrics,
    options: ControlPlaneOptions,
) -> ExtensionPoints:
    release = options.release
    metrics = MetricsPage(
        lambda: {resource: store.count(resource) for resource in store.resources()},
        engines,
        release,
    )
    field_management = _LazyFieldManagement(registry, release)
    policies = AdmissionPolicies(registry, store, authorization)
    shapes = late(_shapes)
    webhooks = AdmissionWebhooks(registry, store, authorization, shapes, options.chance)
    mutating = MutatingPolicies(registry, store, authorization, shapes, field_management.source)
    return ExtensionPoints(
        shapes=shapes,
        management=late(field_management.management),
        patching=late(field_management.patching),
        tables=PrintedTables(custom.shape),
        pages=(
            HealthPages(),
            PathGuard(authorization),
            DiscoveryPages(registry),
            _OpenApi(registry, release),
            metrics,
            VersionPage(release),
            PreparedClaimsPage(options.prepared_claims),
            IndexPage(registry),
            NoSuchPage(registry),
        ),
        authorizer=authorizer(authorization),
        admission=_guard(authorization) if isinstance(authorization, Rbac) else None,
        field_rights=_field_rights(authorization) if isinstance(authorization, Rbac) else None,
        mutation=mutation(mutating, webhooks),
        webhooks=webhooks,
        approval=approval(registry, policies, webhooks),
        deletion=deletion(policies, webhooks),
        posting=PostedAdmission(policies, webhooks, mutating),
    )


def _guard(authorization: Rbac) -> Admission:
    """Return the admission plugin that prevents privilege escalation in RBAC and approvals."""

    def confirm(resource: Resource, new: Raw, *, old: Raw | None, write: Write) -> None:
        if resource.group == RBAC_GROUP:
            from dryrack.apiserver import confirm_no_escalation

            confirm_no_escalation(authorization, resource, new, old=old, write=write)
        if write.subresource == "approval" and old is not None:
            from dryrack.apiserver import confirm_approval

            confirm_approval(authorization, resource, old, write)

    return confirm


def _field_rights(authorization: Rbac) -> FieldRights:
    """Return the check of the rights to parts of the status of a claim."""

    def denied(
        resource: Resource, new: Raw, *, old: Raw, write: Write, verb: str
    ) -> Sequence[FieldProblem]:
        if resource.storage != "resourceclaims.resource.k8s.io" or write.subresource != "status":
            return ()
        from dryrack.apiserver import claim_status_problems

        return claim_status_problems(authorization, resource, new, old=old, write=write, verb=verb)

    return denied


def _shapes() -> GoShapes:
    from dryrack.apiserver import GoShapes

    return GoShapes()


@dataclass(frozen=True)
class _LazyFieldManagement:
    """Field ownership and patches, loaded with the first write."""

    registry: Registry
    release: Release

    @cached_property
    def _source(self) -> SchemaSource:
        from dryrack.apiserver import SchemaSource

        return SchemaSource(self.registry)

    def source(self) -> SchemaSource:
        return self._source

    def management(self) -> Management:
        from dryrack.apiserver import Management

        return Management(self._source)

    def patching(self) -> AllPatches:
        from dryrack.apiserver import AllPatches

        return AllPatches(self._source, self.release)


@dataclass(frozen=True)
class _OpenApi:
    """The OpenAPI pages, loaded with the first request for one."""

    registry: Registry
    release: Release

    @cached_property
    def _pages(self) -> OpenApiPages:
        from dryrack.apiserver import OpenApiPages

        return OpenApiPages(self.registry, self.release)

    async def __call__(self, request: Request) -> Response | None:
        return await self._pages(request) if request.path.startswith("/openapi") else None


def _sandboxes(store: Store, options: ControlPlaneOptions, tokens: Tokens) -> Sandboxes:
    from dryrack.controllers import Sandboxes

    objects = _Objects(store)

    def mint(pod: Raw, reference: Raw) -> str:
        from dryrack.apiserver import ISSUER, Bound, Holder

        namespace = pod["metadata"]["namespace"]
        name = get(pod, "spec.serviceAccountName", "default")
        account = objects.get("serviceaccounts", namespace, name)
        if account is None:
            return ""
        node = get(pod, "spec.nodeName", "")
        stored = objects.get("nodes", "", node)
        bound = (
            Bound("pods", pod["metadata"]["name"], pod["metadata"]["uid"]),
            Bound("nodes", node, stored["metadata"]["uid"] if stored else ""),
        )
        holder = Holder(namespace, name, account["metadata"]["uid"], bound)
        seconds = reference.get("expirationSeconds", TOKEN_SECONDS)
        return tokens.issue(
            holder, audiences=[reference.get("audience") or ISSUER], seconds=seconds
        )

    return Sandboxes(objects.get, options.drivers, mint)


@dataclass(frozen=True, slots=True)
class _Objects:
    """Reads objects of the store by resource, namespace and name."""

    store: Store

    def get(self, resource: str, namespace: str, name: str) -> Raw | None:
        found = self.store.get(Key(resource, namespace, name))
        return found.object if found else None
