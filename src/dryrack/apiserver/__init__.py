"""The store behind the Kubernetes API: paths, verbs, watches and errors of the real server."""

from typing import TYPE_CHECKING

from dryrack.base.lazy import exports

if TYPE_CHECKING:
    from dryrack.apiserver.authentication import Authentication
    from dryrack.apiserver.authentication.reviews import token_review_handlers
    from dryrack.apiserver.authentication.tokens import (
        ISSUER,
        Bound,
        Holder,
        SigningKey,
        Tokens,
    )
    from dryrack.apiserver.authorization import (
        RBAC_GROUP,
        AlwaysAllow,
        Authorization,
        Rbac,
        authorizer,
    )
    from dryrack.apiserver.authorization.claim_status import claim_status_problems
    from dryrack.apiserver.authorization.escalation import confirm_no_escalation
    from dryrack.apiserver.authorization.paths import PathGuard
    from dryrack.apiserver.authorization.reviews import access_review_handlers
    from dryrack.apiserver.authorization.roles import default_roles
    from dryrack.apiserver.builtin import builtin_resources
    from dryrack.apiserver.custom.kinds import CustomKinds
    from dryrack.apiserver.decode.shapes import GoShapes
    from dryrack.apiserver.extension_points import (
        Admission,
        Approval,
        DeletionApproval,
        ExtensionPoints,
        FieldRights,
        Mutation,
        Shapes,
    )
    from dryrack.apiserver.field_adapters import AllPatches, Management, SchemaSource
    from dryrack.apiserver.http.concurrency_limit import Flow
    from dryrack.apiserver.http.https_server import HttpServer
    from dryrack.apiserver.pages.discovery import DiscoveryPages
    from dryrack.apiserver.pages.openapi import OpenApiPages
    from dryrack.apiserver.pages.plain_pages import (
        HealthPages,
        IndexPage,
        MetricsPage,
        NoSuchPage,
        PreparedClaimsPage,
        VersionPage,
    )
    from dryrack.apiserver.policies.match_rules import Attempt
    from dryrack.apiserver.policies.policy_admission import PolicyAdmission
    from dryrack.apiserver.policies.policy_mutation import PolicyMutation
    from dryrack.apiserver.registry import Handler, Registry, Resource
    from dryrack.apiserver.resource_metrics.served import metrics_resources
    from dryrack.apiserver.server import ApiServer
    from dryrack.apiserver.strategies import strategy_of
    from dryrack.apiserver.strategies.certificates import confirm_approval
    from dryrack.apiserver.strategies.pods.parts import pod_handlers
    from dryrack.apiserver.strategies.quotas.admission import QuotaAdmission
    from dryrack.apiserver.strategies.security.admission import check_pod_security
    from dryrack.apiserver.strategies.workloads.parts import workload_handlers
    from dryrack.apiserver.strategy import Strategy, Write
    from dryrack.apiserver.tables import PrintedTables
    from dryrack.apiserver.verbs.event_expiry import EVENT_SECONDS, EventExpiry
    from dryrack.apiserver.verbs.writing import Writer
    from dryrack.apiserver.webhooks.admission_reviews import Unanswered, WebhookRequest
    from dryrack.apiserver.webhooks.webhook_admission import WebhookAdmission
    from dryrack.apiserver.webhooks.webhook_client import ask_webhook
else:
    __getattr__ = exports(
        __name__,
        {
            "authentication": "Authentication",
            "authentication.reviews": "token_review_handlers",
            "authentication.tokens": "ISSUER Bound Holder SigningKey Tokens",
            "authorization": "RBAC_GROUP AlwaysAllow Authorization Rbac authorizer",
            "authorization.claim_status": "claim_status_problems",
            "authorization.escalation": "confirm_no_escalation",
            "authorization.paths": "PathGuard",
            "authorization.reviews": "access_review_handlers",
            "authorization.roles": "default_roles",
            "builtin": "builtin_resources",
            "custom.kinds": "CustomKinds",
            "decode.shapes": "GoShapes",
            "extension_points": (
                "Admission Approval DeletionApproval ExtensionPoints FieldRights Mutation Shapes"
            ),
            "field_adapters": "AllPatches Management SchemaSource",
            "http.concurrency_limit": "Flow",
            "http.https_server": "HttpServer",
            "pages.discovery": "DiscoveryPages",
            "pages.openapi": "OpenApiPages",
            "pages.plain_pages": (
                "HealthPages IndexPage MetricsPage NoSuchPage PreparedClaimsPage VersionPage"
            ),
            "policies.match_rules": "Attempt",
            "policies.policy_admission": "PolicyAdmission",
            "policies.policy_mutation": "PolicyMutation",
            "registry": "Handler Registry Resource",
            "resource_metrics.served": "metrics_resources",
            "server": "ApiServer",
            "strategies": "strategy_of",
            "strategies.certificates": "confirm_approval",
            "strategies.pods.parts": "pod_handlers",
            "strategies.quotas.admission": "QuotaAdmission",
            "strategies.security.admission": "check_pod_security",
            "strategies.workloads.parts": "workload_handlers",
            "strategy": "Strategy Write",
            "tables": "PrintedTables",
            "verbs.event_expiry": "EVENT_SECONDS EventExpiry",
            "verbs.writing": "Writer",
            "webhooks.admission_reviews": "Unanswered WebhookRequest",
            "webhooks.webhook_admission": "WebhookAdmission",
            "webhooks.webhook_client": "ask_webhook",
        },
    )

__all__ = [
    "EVENT_SECONDS",
    "ISSUER",
    "RBAC_GROUP",
    "Admission",
    "AllPatches",
    "AlwaysAllow",
    "ApiServer",
    "Approval",
    "Attempt",
    "Authentication",
    "Authorization",
    "Bound",
    "CustomKinds",
    "DeletionApproval",
    "DiscoveryPages",
    "EventExpiry",
    "ExtensionPoints",
    "FieldRights",
    "Flow",
    "GoShapes",
    "Handler",
    "HealthPages",
    "Holder",
    "HttpServer",
    "IndexPage",
    "Management",
    "MetricsPage",
    "Mutation",
    "NoSuchPage",
    "OpenApiPages",
    "PathGuard",
    "PolicyAdmission",
    "PolicyMutation",
    "PreparedClaimsPage",
    "PrintedTables",
    "QuotaAdmission",
    "Rbac",
    "Registry",
    "Resource",
    "SchemaSource",
    "Shapes",
    "SigningKey",
    "Strategy",
    "Tokens",
    "Unanswered",
    "VersionPage",
    "WebhookAdmission",
    "WebhookRequest",
    "Write",
    "Writer",
    "access_review_handlers",
    "ask_webhook",
    "authorizer",
    "builtin_resources",
    "check_pod_security",
    "claim_status_problems",
    "confirm_approval",
    "confirm_no_escalation",
    "default_roles",
    "metrics_resources",
    "pod_handlers",
    "strategy_of",
    "token_review_handlers",
    "workload_handlers",
]
