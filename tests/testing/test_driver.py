"""The fixture `driver` starts a driver program, calls it, kills it, and checks requirements."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from dryrack.base.errors import ContentError
from dryrack.testing import DRIVER_REQUIREMENTS, DriverCallError, RequirementError

if TYPE_CHECKING:
    from dryrack.testing import Drivers

PLUGIN = (
    *(sys.executable, "-m", "dryrack", "plugin", "--devices", "fake:4", "--no-nas"),
    *("--kubelet-dir", "{kubelet}", "--cdi-dir", "{cdi}"),
)


def test_a_driver_is_called_as_by_a_kubelet(driver: Drivers) -> None:
    """Its answers survive a crash, and a device has one claim."""
    fake = driver(PLUGIN)
    assert (fake.name, fake.node) == ("fake.resource.3-shake.com", "node-1")
    assert fake.devices() == tuple(f"node-1/fake-{number}" for number in range(4))
    claim = fake.claim("node-1/fake-1")

    before = fake.prepare(claim)
    fake.kill()
    after = fake.prepare(claim)
    fake.reboot()

    assert before == after
    assert [each.device for each in after[claim.uid]] == ["fake-1"]
    assert any(name.startswith("FAKE_DEVICE") for name in fake.env(claim))
    other = fake.claim("node-1/fake-1")
    with pytest.raises(DriverCallError, match="is prepared for claim driver-test/claim-1"):
        fake.prepare(other)
    fake.unprepare(claim)
    fake.restart_kubelet()
    assert fake.prepare(other)


def test_requirements_are_checked_one_by_one(driver: Drivers) -> None:
    """One that is met returns; one that does not apply skips the test."""
    assert "prepare-is-idempotent" in DRIVER_REQUIREMENTS
    fake = driver(PLUGIN)
    fake.check("prepare-is-idempotent")
    with pytest.raises(pytest.skip.Exception, match="the driver publishes no partitions"):
        fake.check("partitions-can-be-prepared")
    with pytest.raises(ContentError, match="requirement 'nothing': unknown"):
        fake.check("nothing")


def test_a_failed_requirement_says_what_was_sent(driver: Drivers) -> None:
    """The error has the sentence of the contract, the call, and the answer."""
    words = (sys.executable, "-m", "tests.kubelet.defective", "shared-devices", *PLUGIN[3:])
    fake = driver(words)
    with pytest.raises(RequirementError, match=r"(?s)last line of defense.*sent: .*got: success"):
        fake.check("a-device-has-one-claim")


def test_a_driver_that_does_not_start_is_explained(driver: Drivers) -> None:
    """The error has the end of the log, and how the program ended."""
    with pytest.raises(ContentError, match=r"(?s)ended before it registered.*broken.*status 3"):
        driver(("sh", "-c", "echo broken; exit 3"))
    with pytest.raises(ContentError, match="no such program"):
        driver("no-such-program --x")
