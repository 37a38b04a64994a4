"""The kubelet's side of the protocol of DRA drivers, for virtual nodes, and a test of drivers."""

from dryrack.kubelet.claims import CheckpointError
from dryrack.kubelet.conformance.bench import Bench
from dryrack.kubelet.conformance.program import BenchError, Program
from dryrack.kubelet.conformance.report import Outcome, Result
from dryrack.kubelet.conformance.requirements import REQUIREMENTS
from dryrack.kubelet.conformance.sequences import parse_sequence
from dryrack.kubelet.conformance.site import Site
from dryrack.kubelet.conformance.suite import check_requirement, run_suite
from dryrack.kubelet.drivers import RegisteredDrivers
from dryrack.kubelet.instance import CallError, ClaimReference, PreparedDevice
from dryrack.kubelet.programs import DriverPrograms, ProgramError, find_program, start_guard

__all__ = [
    "REQUIREMENTS",
    "Bench",
    "BenchError",
    "CallError",
    "CheckpointError",
    "ClaimReference",
    "DriverPrograms",
    "Outcome",
    "PreparedDevice",
    "Program",
    "ProgramError",
    "RegisteredDrivers",
    "Result",
    "Site",
    "check_requirement",
    "find_program",
    "parse_sequence",
    "run_suite",
    "start_guard",
]
