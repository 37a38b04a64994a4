"""
A trace through the decider: which policy wastes least, without an API and without a clock.

    inputs = Inputs(trace, (fleet,))
    result = run_one(inputs, Experiment("fgd", 0, Settings(seed=42)))
"""

from dryrack.simulation.engine import Settings
from dryrack.simulation.failures import Change, read_changes
from dryrack.simulation.fleets import FleetError, FleetSpec, catalogue_fleet, objects_of
from dryrack.simulation.importers.manifests import Arrivals, objects_fleet
from dryrack.simulation.policies import KUBERNETES, POLICIES, PolicyError, check_policy
from dryrack.simulation.results import Cost, Run, Summary, summarize
from dryrack.simulation.sweep import (
    MANIFESTS,
    NODE_LIST,
    OBJECTS,
    RECORDING,
    TRACE_FORMATS,
    Experiment,
    FailedRun,
    Input,
    Inputs,
    document,
    experiments,
    measure_peak,
    merge_shards,
    read_input_fleet,
    read_input_trace,
    run_one,
    shard,
    shard_document,
)
from dryrack.simulation.tables import TraceError
from dryrack.simulation.workload import Check, Trace

__all__ = [
    "KUBERNETES",
    "MANIFESTS",
    "NODE_LIST",
    "OBJECTS",
    "POLICIES",
    "RECORDING",
    "TRACE_FORMATS",
    "Arrivals",
    "Change",
    "Check",
    "Cost",
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
    "measure_peak",
    "merge_shards",
    "objects_fleet",
    "objects_of",
    "read_changes",
    "read_input_fleet",
    "read_input_trace",
    "run_one",
    "shard",
    "shard_document",
    "summarize",
]
