"""Service account tokens: who they speak for, how long, and what ends them."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apiserver.token_world import ROBOT, TokenWorld

from dryrack.apiserver.authentication.tokens import (
    ISSUER,
    Bound,
    Holder,
    InvalidTokenError,
    Tokens,
)
from dryrack.client.timekeeping import VirtualClock
from dryrack.cluster.signing import EllipticKey


@pytest.fixture(scope="module")
def key() -> EllipticKey:
    return EllipticKey.fresh()


def test_a_token_speaks_for_its_account(key: EllipticKey) -> None:
    """Name, uid and groups are those that Kubernetes gives an account."""
    world = TokenWorld(key=key)
    user = world.tokens.user_of(world.issue())
    assert user is not None
    assert (user.name, user.uid) == ("system:serviceaccount:factory:robot", "uid-1")
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:factory")
    assert user.extra == {"authentication.kubernetes.io/credential-id": ("JTI=token-1",)}


def test_a_token_ends_when_it_says(key: EllipticKey) -> None:
    """A minute of difference between clocks is forgiven, more is not."""
    world = TokenWorld(key=key)
    token = world.issue(seconds=600)
    world.clock = VirtualClock(world.clock.now() + 659)
    world.tokens = Tokens(key, world, clock=world.clock, chance=world)
    assert world.tokens.user_of(token) is not None
    late = Tokens(key, world, clock=VirtualClock(world.clock.now() + 2), chance=world)
    with pytest.raises(InvalidTokenError, match="has expired"):
        late.review(token, audiences=[ISSUER])
    early = Tokens(key, world, clock=VirtualClock(world.clock.now() - 1000), chance=world)
    with pytest.raises(InvalidTokenError, match="not valid yet"):
        early.review(token, audiences=[ISSUER])


def test_a_token_dies_with_its_account(key: EllipticKey) -> None:
    """An account that is gone, or made anew under the same name, has no tokens."""
    world = TokenWorld(key=key)
    token = world.issue()
    world.stored["serviceaccounts", "factory", "robot"] = "uid-2"
    assert world.tokens.user_of(token) is None
    del world.stored["serviceaccounts", "factory", "robot"]
    with pytest.raises(InvalidTokenError, match='"robot" not found'):
        world.tokens.review(token, audiences=[ISSUER])


def test_a_bound_token_dies_with_its_pod(key: EllipticKey) -> None:
    """A pod's token names the pod and its node, and is valid only with the pod."""
    world = TokenWorld(key=key)
    world.stored["pods", "factory", "worker"] = "pod-1"
    bound = (Bound("pods", "worker", "pod-1"), Bound("nodes", "node-1", "node-uid"))
    token = world.issue(Holder("factory", "robot", "uid-1", bound))
    user = world.tokens.user_of(token)
    assert user is not None
    assert user.extra["authentication.kubernetes.io/pod-name"] == ("worker",)
    assert user.extra["authentication.kubernetes.io/node-name"] == ("node-1",)
    del world.stored["pods", "factory", "worker"]
    assert world.tokens.user_of(token) is None


def test_a_token_for_others_is_not_for_us(key: EllipticKey) -> None:
    """A server outside the audiences refuses the token; a review names the matching ones."""
    world = TokenWorld(key=key)
    token = world.tokens.issue(ROBOT, audiences=["vault", "git"], seconds=3600)
    assert world.tokens.user_of(token) is None
    assert world.tokens.review(token, audiences=["git", "mail"])[1] == ("git",)


def test_nobody_else_can_make_one(key: EllipticKey) -> None:
    """Another key, no signature, or another claim under the same signature: all refused."""
    world = TokenWorld(key=key)
    stranger = TokenWorld()
    assert world.tokens.user_of(stranger.issue()) is None
    header, payload, signature = world.issue().split(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    claims["sub"] = "system:serviceaccount:kube-system:admin"
    forged = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    unsigned = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    for token in (
        f"{header}.{forged}.{signature}",
        f"{unsigned}.{payload}.",
        f"{header}.{payload}.",
    ):
        assert world.tokens.user_of(token) is None


WORLD = TokenWorld()


@given(st.one_of(st.text(), st.from_regex(r"[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*")))
def test_rubbish_is_no_token(token: str) -> None:
    """Any invalid text is refused, without an internal error."""
    assert WORLD.tokens.user_of(token) is None
