"""
Write the reference pages that are generated from the code.

    python -m tests.docs.reference
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tests.apiserver.replay import (
    DIFFERENCES_OVER_HTTPS,
    SCRIPTS,
    by_http,
    differences_of_the_server,
    known_differences,
)
from tests.docs import chart_values, commands, dashboard_api, monitoring, releases
from tests.docs.glossary import MEANINGS, REMEDIES
from tests.linter import reference as lint
from tests.parity.recording import RECORDED

from dryrack.kinds.registry import builtin_kinds
from dryrack.kinds.releases import Release

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dryrack.kinds.registry import Kind

ROOT = Path(__file__).parents[2]


def reasons() -> str:
    rows = [
        f"| `{code.text}` | {meaning} | {REMEDIES[code]} |"
        for code, meaning in sorted(MEANINGS.items())
    ]
    return "\n".join(
        [
            "# Reasons",
            "",
            "A reason states why a device is not allocated, or why a claim gets no devices.",
            "It is the field `reason` in the output of `dryrack allocate` and `dryrack explain`.",
            "The meaning of a code never changes. Messages can change.",
            "",
            "| Reason | Meaning | Remedy |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


_COVERAGE = """\
# API coverage

This page lists the kinds that the API server of `dryrack up` serves, and its differences from \
real API servers.
The differences come from recorded requests in `tests/parity`, of which there are {requests}: \
{equal}.

## Not supported

- `port-forward` and the `proxy` subresources. The API server rejects them with the reason.
- The subprotocols of `exec` and `attach` before `v4.channel.k8s.io`.
- Requests to aggregated API servers (APIService).
- Kinds that are not in the table below and have no CustomResourceDefinition.
- Traffic to Services. Their Endpoints and EndpointSlices follow the Pods, and no program listens.
- EndpointSlices for Endpoints that a client creates.
- Controllers of the kinds with the depth "stored", such as HorizontalPodAutoscaler. \
A warning states this when the object is created.
- Certificates for a CertificateSigningRequest or a PodCertificateRequest. No controller signs it, \
and the API server does not verify the keys and certificates in a PodCertificateRequest.
- Migrations of stored objects. The API server stores a StorageVersionMigration, and no controller \
acts on it.
- Feature gates of fields of a Pod. The API server stores the fields of alpha features.
- The feature gate of `scheduling.k8s.io/v1alpha2` in Kubernetes 1.36. `--runtime-config` alone \
serves the version.
- Answers in protobuf, except OpenAPI v2. The API server reads protobuf.
- Admission webhooks that run in Pods. dryrack calls a webhook at a URL, or at the address in the \
annotation `dryrack.dev/address` of its Service.
- `reinvocationPolicy` of webhooks. dryrack calls a webhook once for each write.
- Warnings about deprecated labels, annotations, and volumes of a Pod.
- Checks of a resize against the operating system and the features of the node, and for static \
Pods. The API server checks the resize itself and the capacity of the node.
- Checks for contradictions in the status of a Job. The API server stores the status as written.

A client can apply the scale of a custom kind, which fails on a real API server.

## Kinds

| Depth | Meaning |
|---|---|
| full | Defaults, validation, and behavior of Kubernetes. |
| simulated | The API server stores and serves the object. The API server, a controller, or the \
scheduler acts on some of its fields. For example, dryrack binds volumes without storage. |
| stored | The API server stores and serves the object with the behavior that all kinds share. |

The API server serves alpha and beta versions that you enable with `--runtime-config`, if their \
feature gate is on.
It also serves the kinds of your CustomResourceDefinitions, and `metrics.k8s.io/v1beta1` \
(NodeMetrics and \
PodMetrics) with simulated usage.

| Kind | Version | Releases | Depth | Subresources |
|---|---|---|---|---|
{kinds}

## Differences of the API server

The table groups the recorded requests with another answer by the reason.
`tests/apiserver/differences.yaml` lists each request.

{server}

## Additional differences of a virtual cluster

A virtual cluster also has controllers. The recordings come from an API server with fewer or \
slower controllers.
`tests/apiserver/differences_over_https.yaml` lists each request.

{cluster}
"""


def coverage() -> str:
    server = {each: _reasons(differences_of_the_server(each)) for each in RECORDED}
    asked = sum(len(by_http(script).steps) for script in SCRIPTS)
    cluster = _reasons(known_differences(DIFFERENCES_OVER_HTTPS))
    known = {reason for reasons in server.values() for reason in reasons}
    return _COVERAGE.format(
        requests=asked,
        equal=" and ".join(
            f"{asked - reasons.total()} get the answer of Kubernetes {release.value}"
            for release, reasons in server.items()
        ),
        kinds="\n".join(_kinds()),
        server=_differences({release.value: reasons for release, reasons in server.items()}),
        cluster=_differences(
            {"Requests": Counter({k: n for k, n in cluster.items() if k not in known})}
        ),
    )


def _kinds() -> Iterator[str]:
    """Yield a row for each kind in a version, with the releases that have it."""
    releases: dict[tuple[str, str], list[Release]] = {}
    newest: dict[tuple[str, str], Kind] = {}
    for release in Release:
        for kind in builtin_kinds(release):
            key = (kind.kind, kind.api_version)
            releases.setdefault(key, []).append(release)
            newest[key] = kind
    for key, kind in newest.items():
        served = ", ".join(each.value for each in releases[key])
        parts = ", ".join(part.name for part in kind.parts)
        yield f"| {kind.kind} | {kind.api_version} | {served} | {kind.depth.value} | {parts} |"


def _reasons(known: Mapping[str, Mapping[str, str]]) -> Counter[str]:
    """Return the number of requests by the reason of their difference."""
    return Counter(reason for steps in known.values() for reason in steps.values())


def _differences(columns: Mapping[str, Counter[str]]) -> str:
    """Return a table of the reasons, with the number of requests in each column."""
    everything = sum(columns.values(), Counter[str]())
    rows = (
        f"| {reason} | {' | '.join(str(each[reason]) for each in columns.values())} |"
        for reason, _ in sorted(everything.items(), key=lambda each: (-each[1], each[0]))
    )
    head = f"| Difference | {' | '.join(columns)} |"
    return "\n".join([head, "|---" * (len(columns) + 1) + "|", *rows])


PAGES = {
    "docs/reference/reasons.md": reasons,
    "docs/reference/events-and-metrics.md": monitoring.page,
    "docs/reference/chart-values.md": chart_values.page,
    "docs/reference/dashboard-api.md": dashboard_api.page,
    "docs/reference/lint.md": lint.page,
    "docs/reference/releases.md": releases.page,
    "COVERAGE.md": coverage,
    **commands.PAGES,
}


if __name__ == "__main__":
    for page, write in PAGES.items():
        (ROOT / page).parent.mkdir(exist_ok=True)
        (ROOT / page).write_text(write())
