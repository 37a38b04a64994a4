"""Record and check the answers of a real server."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from tests.parity.recording import RECORDED, differences, write
from tests.parity.run import Run
from tests.parity.script import load_all
from tests.parity.server import Server
from tests.realcluster.controlplane import Options
from tests.realcluster.guard import throw_away
from tests.realcluster.releases import RELEASES

from dryrack.kinds.releases import DEFAULT_RELEASE, Release

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


def options(release: Release) -> Options:
    """Return the options of a real server of a release."""
    return replace(OPTIONS, release=RELEASES[release.value])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.parity", description=__doc__)
    parser.add_argument("verb", choices=("record", "check"))
    parser.add_argument("names", nargs="*", metavar="NAME", help="a script; default: all scripts")
    parser.add_argument(
        "--release",
        choices=[each.value for each in RECORDED],
        default=DEFAULT_RELEASE.value,
        help="the release of the server; default: %(default)s",
    )
    given = parser.parse_args()
    release = Release(given.release)
    with throw_away(options(release)) as bed:
        server = Server.of(bed.plane.kubeconfig)
        found = 0
        for script in load_all(given.names):
            answers = list(Run(script, server, bed.plane.kubectl_path).answers())
            if given.verb == "record":
                write(script, answers, release)
            for line in differences(script, answers, release):
                sys.stdout.write(f"{line}\n")
                found += 1
            sys.stderr.write(f"{script.name}: {len(answers)} answers of {release.value}\n")
        return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
