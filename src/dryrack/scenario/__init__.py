"""
Scenarios: a fleet, the steps that change it, and the expected results.

    loaded = load_scenario(Path("scenario.yaml"))
    outcome = run_in_virtual_time(loaded, EmbeddedRun(seed=1))
"""

from typing import TYPE_CHECKING

from dryrack.base.lazy import exports

if TYPE_CHECKING:
    from dryrack.scenario.cluster_world import ENGINES, ClusterRun, run_on_cluster
    from dryrack.scenario.embedded_world import (
        EmbeddedRun,
        run_in_real_time,
        run_in_virtual_time,
    )
    from dryrack.scenario.fuzzing.fuzzing import FuzzInput, SeedOutcome, fuzz
    from dryrack.scenario.fuzzing.user_worlds import UserWorld
    from dryrack.scenario.invariants.at_rest import PreparedClaims
    from dryrack.scenario.invariants.cluster_state import (
        ClusterState,
        InvariantResult,
        check_state,
        find_lasting,
        read_state,
    )
    from dryrack.scenario.invariants.violations import Invariant, Violation
    from dryrack.scenario.model import Step
    from dryrack.scenario.outcome import Outcome, StepOutcome, Verdict
    from dryrack.scenario.own_kinds import own_problems
    from dryrack.scenario.packaged import (
        DEMOS,
        SCHEMA,
        load_packaged,
        packaged_file,
        packaged_names,
    )
    from dryrack.scenario.reading import LoadedScenario, ScenarioError, load_scenario, read_scenario
    from dryrack.scenario.replay.anonymity import anonymous
    from dryrack.scenario.replay.comparison import Comparison, Fidelity, compare
    from dryrack.scenario.replay.placements import PodPlacement
    from dryrack.scenario.replay.recording import record
    from dryrack.scenario.replay.replacement import (
        with_fleet,
        with_objects,
        without_place,
    )
    from dryrack.scenario.runner import Observer, SilentObserver, title_of
    from dryrack.scenario.step_output import StepOutput
else:
    __getattr__ = exports(
        __name__,
        {
            "cluster_world": "ENGINES ClusterRun run_on_cluster",
            "embedded_world": "EmbeddedRun run_in_real_time run_in_virtual_time",
            "invariants.at_rest": "PreparedClaims",
            "invariants.cluster_state": (
                "ClusterState InvariantResult check_state find_lasting read_state"
            ),
            "invariants.violations": "Invariant Violation",
            "step_output": "StepOutput",
            "model": "Step",
            "outcome": "Outcome StepOutcome Verdict",
            "own_kinds": "own_problems",
            "packaged": "DEMOS SCHEMA load_packaged packaged_file packaged_names",
            "reading": "LoadedScenario ScenarioError load_scenario read_scenario",
            "replay.anonymity": "anonymous",
            "replay.comparison": "Comparison Fidelity compare",
            "replay.placements": "PodPlacement",
            "replay.recording": "record",
            "replay.replacement": "with_fleet with_objects without_place",
            "runner": "SilentObserver Observer title_of",
            "fuzzing.fuzzing": "FuzzInput SeedOutcome fuzz",
            "fuzzing.user_worlds": "UserWorld",
        },
    )

__all__ = [
    "DEMOS",
    "ENGINES",
    "SCHEMA",
    "ClusterRun",
    "ClusterState",
    "Comparison",
    "EmbeddedRun",
    "Fidelity",
    "FuzzInput",
    "Invariant",
    "InvariantResult",
    "LoadedScenario",
    "Observer",
    "Outcome",
    "PodPlacement",
    "PreparedClaims",
    "ScenarioError",
    "SeedOutcome",
    "SilentObserver",
    "Step",
    "StepOutcome",
    "StepOutput",
    "UserWorld",
    "Verdict",
    "Violation",
    "anonymous",
    "check_state",
    "compare",
    "find_lasting",
    "fuzz",
    "load_packaged",
    "load_scenario",
    "own_problems",
    "packaged_file",
    "packaged_names",
    "read_scenario",
    "read_state",
    "record",
    "run_in_real_time",
    "run_in_virtual_time",
    "run_on_cluster",
    "title_of",
    "with_fleet",
    "with_objects",
    "without_place",
]
