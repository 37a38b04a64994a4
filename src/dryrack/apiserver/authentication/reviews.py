"""
Reviews of users and tokens, and requests for tokens of accounts.

A review is answered with its status set; it is not stored.
"""

from collections.abc import Awaitable, Callable, Mapping

from dryrack.apiserver.answer.status import Subject, bad_request, conflict, invalid, not_found
from dryrack.apiserver.authentication.tokens import (
    ISSUER,
    Bound,
    Holder,
    InvalidTokenError,
    Tokens,
)
from dryrack.apiserver.decode.review_bodies import read_posted, with_review_status
from dryrack.apiserver.extension_points import Answer, Call, Reply
from dryrack.apiserver.metadata import timestamp
from dryrack.client.transport import User
from dryrack.kinds.paths import metadata_of, spec_of
from dryrack.kinds.raw import Raw
from dryrack.kinds.validation import FieldProblem
from dryrack.kinds.validation.problems import Reason

Handlers = Mapping[str, Callable[[Call], Awaitable[Answer]]]

_GROUP = "authentication.k8s.io"
_SECONDS_DEFAULT = 3600
_SECONDS_MIN = 600
_SECONDS_MAX = 2**32


def token_review_handlers(tokens: Tokens) -> dict[tuple[str, str], Handlers]:
    """Return the handlers by resource and subresource ("" for none)."""
    questions = TokenQuestions(tokens)
    return {
        (f"selfsubjectreviews.{_GROUP}", ""): {"create": who_am_i},
        (f"tokenreviews.{_GROUP}", ""): {"create": questions.review},
        ("serviceaccounts", "token"): {"create": questions.request},
    }


async def who_am_i(call: Call) -> Answer:
    """Reply with the user of the request."""
    read_posted(call)
    review = {
        "kind": "SelfSubjectReview",
        "apiVersion": f"{_GROUP}/v1",
        "metadata": {"creationTimestamp": timestamp(call.server.clock.now())},
        "status": {"userInfo": _user_info(call.request.user)},
    }
    return Reply(review, 201)


class TokenQuestions:
    """Handles reviews and requests that need the signing key."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    async def review(self, call: Call) -> Answer:
        obj = read_posted(call)
        spec = spec_of(obj)
        if not spec.get("token"):
            raise bad_request("token is required for TokenReview in authentication")
        status: Raw
        try:
            user, audiences = self._tokens.review(
                spec["token"], audiences=spec.get("audiences") or [ISSUER]
            )
        except InvalidTokenError as error:
            status = {"user": {}, "error": str(error)}
        else:
            groups = (*user.groups, "system:authenticated")
            info = _user_info(User(user.name, groups, user.uid, user.extra))
            status = {"authenticated": True, "user": info, "audiences": list(audiences)}
        return Reply(with_review_status(call, obj, status), 201)

    async def request(self, call: Call) -> Answer:
        """Reply with a token for the account in the path."""
        obj = read_posted(call)
        account = _account(call, obj)
        spec = dict(spec_of(obj))
        if spec.get("expirationSeconds") is None:
            spec["expirationSeconds"] = _SECONDS_DEFAULT
        seconds = spec["expirationSeconds"]
        spec["audiences"] = spec.get("audiences") or [ISSUER]
        if seconds < _SECONDS_MIN:
            problem = "may not specify a duration less than 10 minutes"
            raise _invalid("", "spec.expirationSeconds", seconds, problem)
        if seconds > _SECONDS_MAX:
            problem = "may not specify a duration larger than 2^32 seconds"
            raise _invalid("", "spec.expirationSeconds", seconds, problem)
        now = call.server.clock.now()
        holder = Holder(
            call.target.namespace, call.target.name, account["uid"], _bound_object(call, spec)
        )
        token = self._tokens.issue(holder, audiences=spec["audiences"], seconds=seconds)
        names = {key: account[key] for key in ("name", "namespace", "uid")}
        meta = {**metadata_of(obj), **names, "creationTimestamp": timestamp(now)}
        named = {**obj, "metadata": meta}
        status = {"token": token, "expirationTimestamp": timestamp(now + seconds)}
        answer = with_review_status(call, named, status)
        return Reply({**answer, "spec": {"boundObjectRef": None, **spec}}, 201)


def _account(call: Call, obj: Raw) -> Raw:
    """Return the metadata of the account; raise if the body names another one."""
    namespace = call.target.namespace
    name = call.target.name
    given = metadata_of(obj)
    for key, value in (("name", name), ("namespace", namespace)):
        if given.get(key) and given[key] != value:
            problem = f"must match the service account {key} if specified"
            raise _invalid(name, f"metadata.{key}", given[key], problem)
    stored = _stored_object(call, "serviceaccounts", namespace, name)
    if given.get("uid") and given["uid"] != stored["uid"]:
        detail = (
            f"the UID in the token request ({given['uid']}) does not match the UID of the "
            f"service account ({stored['uid']})"
        )
        raise conflict(Subject(_GROUP, "TokenRequest"), name, detail)
    return stored


def _bound_object(call: Call, spec: Raw) -> tuple[Bound, ...]:
    reference = spec.get("boundObjectRef")
    if not reference:
        return ()
    group, _, version = reference.get("apiVersion", "").rpartition("/")
    kind = reference.get("kind", "")
    name = reference.get("name", "")
    if group or kind not in ("Pod", "Secret", "Node"):
        raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    resource = f"{kind.lower()}s"
    where = "" if kind == "Node" else call.target.namespace
    stored = _stored_object(call, resource, where, name)
    if reference.get("uid") and reference["uid"] != stored["uid"]:
        detail = (
            f"the UID in the bound object reference ({reference['uid']}) does not match the UID "
            "in record. The object might have been deleted and then recreated"
        )
        raise conflict(Subject("", kind), name, detail)
    bound = Bound(resource, name, stored["uid"])
    return (bound, *_node_of_pod(call, name)) if kind == "Pod" else (bound,)


def _node_of_pod(call: Call, name: str) -> tuple[Bound, ...]:
    """Return the node of a pod, whether or not it exists."""
    pod = call.server.lookup.get("pods", call.target.namespace, name)
    spec = spec_of(pod or {})
    if spec.get("serviceAccountName") != call.target.name:
        raise bad_request(
            f'cannot bind token for serviceaccount "{call.target.name}" to pod running with '
            "different serviceaccount name."
        )
    node = spec.get("nodeName")
    if not node:
        return ()
    stored = call.server.lookup.get("nodes", "", node)
    return (Bound("nodes", node, stored["metadata"]["uid"] if stored else ""),)


def _stored_object(call: Call, resource: str, namespace: str, name: str) -> Raw:
    found = call.server.lookup.get(resource, namespace, name)
    if found is None:
        raise not_found(Subject("", resource), name)
    metadata: Raw = found["metadata"]
    return metadata


def _invalid(name: str, field: str, value: object, problem: str) -> Exception:
    found = FieldProblem(Reason.INVALID, field, value, problem)
    return invalid(Subject(_GROUP, "TokenRequest"), name, [found])


def _user_info(user: User) -> Raw:
    info: Raw = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(values) for key, values in sorted(user.extra.items())}
    return info
