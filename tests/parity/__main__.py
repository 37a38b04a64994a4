"""Records and checks the answers of a real server."""

from __future__ import annotations

import sys

from tests.parity.recording import differences, write
from tests.parity.run import Run
from tests.parity.script import load_all
from tests.parity.server import Server
from tests.realcluster.controlplane import Options
from tests.realcluster.guard import throw_away

# Served beside the defaults, so that their conversion is recorded too.
OPTIONS = Options(
    runtime_config={"resource.k8s.io/v1beta1": True, "resource.k8s.io/v1beta2": True},
    feature_gates={"DRADeviceTaintRules": True},
    with_scheduler=False,
    # They write to objects that a script only speaks of, now or a moment later.
    without_controllers=(
        "resourceclaim-controller",
        "ttl-controller",
        "persistentvolume-binder-controller",
        "persistentvolume-protection-controller",
        "persistentvolumeclaim-protection-controller",
    ),
)


def main(words: list[str]) -> int:
    verb, *names = words or ["help"]
    if verb not in ("record", "check"):
        sys.stderr.write("python -m tests.parity record|check [NAME…]\n")
        return 2
    with throw_away(OPTIONS) as bed:
        server = Server.of(bed.plane.kubeconfig)
        found = 0
        for script in load_all(names):
            answers = list(Run(script, server, bed.plane.kubectl_path).answers())
            if verb == "record":
                write(script, answers)
            for line in differences(script, answers):
                sys.stdout.write(f"{line}\n")
                found += 1
            sys.stderr.write(f"{script.name}: {len(answers)} answers\n")
        return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
