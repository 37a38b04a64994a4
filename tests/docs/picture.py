"""
Make the picture of the dashboard in README.md: 200 nodes with MIG partitions.

    python -m tests.docs.picture [FILE]

It starts a virtual cluster with its own state, and Chromium without a window.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.dashboard.browser import requirements
from tests.dashboard.browser.chromium import opened
from yarl import URL

if TYPE_CHECKING:
    from collections.abc import Iterator

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "dashboard.png"
NODES = 200
WIDTH, HEIGHT = 1440, 810
NAMESPACES = ("research", "serving", "training", "vision")
# How often jobs request each profile.
PROFILES = {"1g.5gb": 5, "2g.10gb": 4, "3g.20gb": 4, "4g.20gb": 1, "7g.40gb": 1}
PODS = 3 * NODES
GANGS = 10
_GANG = "pod-group.scheduling.kubenexus.io"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.docs.picture")
    parser.add_argument("file", type=Path, nargs="?", default=PICTURE, metavar="FILE")
    file = parser.parse_args().file
    requirements.ensure()
    # The cluster ends with this program.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="dryrack-picture-") as home:
        os.environ["DRYRACK_HOME"] = home
        objects = Path(home) / "objects.yaml"
        objects.write_text("".join(f"---\n{json.dumps(each)}\n" for each in _objects()))
        try:
            up = _dryrack("up", "--detach", "--catalogue", "--config", str(objects))
            found = re.search(r"dashboard: (http://\S+)", up)
            assert found is not None, up
            _wait_for_pods(URL(found[1]))
            file.write_bytes(asyncio.run(_picture(found[1])))
        finally:
            _dryrack("down", "--all")
    sys.stdout.write(f"wrote {file}\n")
    return 0


def _dryrack(*words: str) -> str:
    command = [sys.executable, "-m", "dryrack", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def _wait_for_pods(address: URL) -> None:
    """Return when the scheduler has placed all pods."""
    pods = address.with_path("/api/v1/pods", keep_query=True).update_query(pending="1")
    stream = address.with_path("/api/v1/stream", keep_query=True)
    with urllib.request.urlopen(str(stream)) as events:
        while True:
            with urllib.request.urlopen(str(pods)) as answer:
                if not json.load(answer)["pods"]:
                    return
            while not events.readline().startswith(b"event: update"):
                pass


async def _picture(address: str) -> bytes:
    async with opened() as tab:
        await tab.scheme("light")
        await tab.size(WIDTH, HEIGHT)
        await tab.open(address)
        await tab.until("document.querySelector('#connection').textContent === 'live'")
        await tab.go("#/fleet?color=namespace")
        await tab.until("document.querySelector('.owned .entry')")
        await tab.until("performance.getEntriesByName('map').length")
        await tab.js("new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))")
        return await tab.screenshot()


def _objects() -> Iterator[dict[str, Any]]:
    for n in range(NODES):
        labels = {
            "node.kubernetes.io/instance-type": "p4d.24xlarge",
            "topology.kubernetes.io/zone": f"zone-{'abc'[n * 3 // NODES]}",
            "dryrack.dev/mig": "dynamic",
        }
        metadata = {"labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}}
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"node-{n + 1}", **metadata},
        }
    for namespace in NAMESPACES:
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        for profile in PROFILES:
            yield _template(namespace, profile)
    chance = random.Random(1)
    for n in range(PODS):
        [profile] = chance.choices([*PROFILES], [*PROFILES.values()])
        yield _pod(f"job-{n}", chance.choice(NAMESPACES), profile)
    for n in range(GANGS):
        labels = {f"{_GANG}/name": f"gang-{n}", f"{_GANG}/min-available": "4"}
        for member in range(4):
            yield _pod(f"gang-{n}-{member}", "training", "7g.40gb", labels)


def _template(namespace: str, profile: str) -> dict[str, Any]:
    expression = f"device.attributes['gpu.nvidia.com'].profile == '{profile}'"
    exactly = {
        "deviceClassName": "mig.nvidia.com",
        "selectors": [{"cel": {"expression": expression}}],
    }
    request = {"name": "gpu", "exactly": exactly}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": profile, "namespace": namespace},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


def _pod(
    name: str, namespace: str, profile: str, labels: dict[str, str] | None = None
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "spec": {
            "containers": [{"name": "job", "image": "job"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": profile}],
        },
    }


if __name__ == "__main__":
    sys.exit(main())
