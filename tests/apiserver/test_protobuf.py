"""Bodies in protobuf mean what the same client would have sent as JSON."""

from __future__ import annotations

import base64
import json
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apiserver.go_oracle import MODULE
from tests.golang import build

from dryrack.apiserver.protobuf import ProtobufError, to_object

ROUNDS = 20
SEED = 1


def field(number: int, value: bytes | int) -> bytes:
    """One field on the wire: bytes with their length, or a small number."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    assert len(value) < 128
    return bytes([number << 3 | 2, len(value)]) + value


def envelope(kind: str, api_version: str, raw: bytes) -> bytes:
    type_meta = field(1, api_version.encode()) + field(2, kind.encode())
    return b"k8s\0" + field(1, type_meta) + field(2, raw)


def test_zeroes_of_go_are_left_out_as_in_json() -> None:
    """Go writes every value that is no pointer; what JSON leaves out when empty is left out."""
    meta = field(1, b"settings") + field(2, b"") + field(3, b"default") + field(7, 0)
    entry = field(1, b"key") + field(2, b"value")
    body = envelope("ConfigMap", "v1", field(1, meta) + field(2, entry) + field(4, 0))
    assert to_object(body) == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "settings", "namespace": "default"},
        "data": {"key": "value"},
        "immutable": False,
    }


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-62135596799, "0001-01-01T00:00:01"), (-30610224001, "0999-12-31T23:59:59")],
)
def test_early_years_have_four_digits(seconds: int, shown: str) -> None:
    """A time before the year 1000 is written so that it can be read again."""
    number = seconds % 2**64
    moment = b"\x08"
    while number > 127:
        moment += bytes([number & 127 | 128])
        number >>= 7
    moment += bytes([number])
    spec = field(3, moment + field(2, 64)) + field(4, moment)
    made = to_object(envelope("Lease", "coordination.k8s.io/v1", field(2, spec)))["spec"]

    assert made["acquireTime"] == f"{shown}.000000Z"
    assert made["renewTime"] == f"{shown}.000000Z"
    born = to_object(envelope("ConfigMap", "v1", field(1, field(8, moment))))
    assert born["metadata"]["creationTimestamp"] == f"{shown}Z"


def test_parts_that_stand_in_their_object_do() -> None:
    """A volume's source has a message of its own, and no field; empty pointers stay."""
    volume = field(1, b"scratch") + field(2, field(2, b""))
    body = envelope("Pod", "v1", field(2, field(1, volume)))
    assert to_object(body)["spec"] == {"volumes": [{"name": "scratch", "emptyDir": {}}]}


def test_options_belong_to_every_group() -> None:
    """A deletion of a Deployment sends DeleteOptions in the version of Deployments."""
    body = envelope("DeleteOptions", "apps/v1", field(1, 5) + field(4, b"Foreground"))
    assert to_object(body)["propagationPolicy"] == "Foreground"


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"{}", "does not appear to be a protobuf message"),
        (b"k8s\0\x0a\x7f", "unexpected end"),
        (b"k8s\0\x0b", "wire type 3"),
        (b"k8s\0" + b"\xff" * 20, "too long"),
        (envelope("Gadget", "example.com/v1", b""), 'no kind "Gadget" is registered'),
        (envelope("Pod", "v1", field(1, 7)), "cannot be read"),
        (envelope("Pod", "v1", field(1, field(1, b"\xff"))), "cannot be read"),
    ],
)
def test_what_is_no_message_is_told(body: bytes, complaint: str) -> None:
    """Each with its reason, and none with an error of ours."""
    with pytest.raises(ProtobufError, match=complaint):
        to_object(body)


@given(st.binary(max_size=200))
def test_rubbish_is_refused_or_read(content: bytes) -> None:
    """Any bytes end as an object or a refusal."""
    for body in (b"k8s\0" + content, envelope("Pod", "v1", content[:100])):
        try:
            assert isinstance(to_object(body), dict)
        except ProtobufError:
            continue


def lean(value: Any) -> Any:
    """Return the object without empty structs and unset times, which Go writes."""
    if isinstance(value, dict):
        inner = {key: lean(item) for key, item in value.items()}
        return {key: item for key, item in inner.items() if item not in (None, {}, [])}
    return [lean(item) for item in value] if isinstance(value, list) else value


@pytest.mark.real
def test_every_kind_is_read_as_go_writes_it() -> None:
    """Random objects of every built-in kind: the protobuf says what the JSON says."""
    program = build(MODULE).path("wire")
    done = subprocess.run(
        [program, str(SEED), str(ROUNDS)], capture_output=True, check=True, text=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) > 50 * ROUNDS
    for line in lines:
        case = json.loads(line)
        assert lean(to_object(base64.b64decode(case["wire"]))) == lean(case["json"])
