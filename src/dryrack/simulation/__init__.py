"""
A trace through the decider: which policy wastes least, without an API and without a clock.

    inputs = Inputs(trace, (fleet,))
    result = run_one(inputs, Experiment("fgd", 0, Settings(seed=42)))
"""

from dryrack.simulation.engine import Settings
from dryrack.simulation.fleets import FleetError, FleetSpec, catalogue_fleet, objects_of
from dryrack.simulation.policies import KUBERNETES, POLICIES, PolicyError, check_policy
from dryrack.simulation.results import Run, Summary, summarize
from dryrack.simulation.sweep import (
    NODE_FORMATS,
    OBJECTS,
    TRACE_FORMATS,
    Experiment,
    FailedRun,
    Input,
    Inputs,
    document,
    experiments,
    read_input_fleet,
    read_input_trace,
    run_one,
    shard,
)
from dryrack.simulation.tables import TraceError
from dryrack.simulation.workload import Check, Trace

__all__ = [
    "KUBERNETES",
    "NODE_FORMATS",
    "OBJECTS",
    "POLICIES",
    "TRACE_FORMATS",
    "Check",
    "Experiment",
    "FailedRun",
    "FleetError",
    "FleetSpec",
    "Input",
    "Inputs",
    "PolicyError",
    "Run",
    "Settings",
    "Summary",
    "Trace",
    "TraceError",
    "catalogue_fleet",
    "check_policy",
    "document",
    "experiments",
    "objects_of",
    "read_input_fleet",
    "read_input_trace",
    "run_one",
    "shard",
    "summarize",
]
