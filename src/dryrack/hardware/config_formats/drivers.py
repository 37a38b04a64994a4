"""
Names of drivers, as people write them.

`example.com/gpu` cannot be a driver's name; the rule by which it becomes one is that of
Karpenter's driver, so that a document means the same to both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.hardware import names
from dryrack.hardware.config_formats.fields import text
from dryrack.hardware.config_formats.report import Topic
from dryrack.kinds.validation.names import DRIVER_NAME_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.hardware.config_formats.fields import Given
    from dryrack.hardware.config_formats.forms import Template
    from dryrack.hardware.config_formats.report import Report

EMPTY = "driver name cannot be empty"


def sanitised(given: Given, report: Report) -> str:
    """The name as the API allows it; "" where there is none."""
    written = text(given, report)
    if not written:
        return ""
    if len(written.encode()) > DRIVER_NAME_BYTES_MAX:
        what = (
            f"driver name '{written[:20]}…' must be a valid DNS subdomain"
            f" of no more than {DRIVER_NAME_BYTES_MAX} bytes"
        )
        report.refuse(given.path, what, "choose a shorter name")
        return ""
    better = names.driver_name(written)
    if better != written:
        what = f"driver name {written!r} is not allowed by the API"
        report.remark(Topic.DRIVER_NAME, given.path, what, f"write {better!r}")
    return better


def agree(of_slice: str, templates: Sequence[Template], report: Report) -> None:
    """Refuse a device whose driver differs from the driver of its slice."""
    known = of_slice
    for each in templates:
        given = each.driver
        if given is None or not isinstance(given.value, str) or not given.value:
            continue
        stated = names.driver_name(given.value)
        known = known or stated
        if stated != known:
            what = f"driver {given.value!r} differs from the driver of the slice, {known!r}"
            report.refuse(given.path, what, "put the device into a separate slice")
        else:
            what = "the API has no driver field in a device; the driver is a field of the slice"
            report.remark(Topic.SPELLING, given.path, what, "leave it out")
