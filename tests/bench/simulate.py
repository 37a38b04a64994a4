"""
Simulations: the published experiment, and a day of a large fleet.

    python -m tests.bench.simulate [--traces DIR] [--seeds N] [--pods N] [--only LIST,...]

Without a folder of traces, a made-up list of 1,200 nodes and 8,000 pods is simulated with two
policies. With the folder of Alibaba's lists (openb_node_list_gpu_node.csv and
openb_pod_list_NAME.csv), each policy runs on four lists, and the means are held against the
published ones. Ends with 1 if a mean is further than 0.7 points away.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path
from random import Random

from tests.simulation.made_up import NODES, inputs, random_pods

from dryrack.simulation import Experiment, Input, Inputs, Run, Settings, run_one

TOLERANCE = 0.7
# Means of ten seeds, in percent of the GPUs, at a demand of 100 and of 130 percent.
PUBLISHED = {
    "default": {
        "random": (86.30, 87.47),
        "dot-product": (90.62, 90.85),
        "gpu-clustering": (91.65, 91.88),
        "gpu-packing": (91.78, 92.00),
        "best-fit": (92.86, 93.08),
        "fgd": (95.23, 95.39),
    },
    "gpuspec33": {
        "random": (83.87, 86.46),
        "dot-product": (79.82, 89.14),
        "gpu-clustering": (81.09, 92.12),
        "gpu-packing": (82.22, 93.22),
        "best-fit": (80.40, 93.09),
        "fgd": (87.84, 94.55),
    },
    "cpu100": {
        "random": (87.44, 89.11),
        "dot-product": (91.73, 91.96),
        "gpu-clustering": (92.42, 92.64),
        "gpu-packing": (92.50, 92.72),
        "best-fit": (93.26, 93.44),
        "fgd": (95.21, 95.35),
    },
    "multigpu30": {
        "random": (86.63, 89.27),
        "dot-product": (93.11, 93.28),
        "gpu-clustering": (94.55, 94.72),
        "gpu-packing": (94.70, 94.87),
        "best-fit": (94.57, 94.72),
        "fgd": (96.36, 96.46),
    },
}
DAY_SECONDS = 86_400.0


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def timed(source: Inputs, policy: str, settings: Settings) -> tuple[Run, float]:
    """Return a run, and the CPU seconds that it took."""
    began = time.process_time()
    result = run_one(source, Experiment(policy, 0, settings))
    assert isinstance(result, Run), result
    return result, time.process_time() - began


def made_up() -> None:
    """Simulate a made-up list of the size of the published one."""
    random = Random(1)
    sizes = [(96_000, 393_216, 8)] * 6 + [(64_000, 262_144, 2)] * 4
    rows = [NODES]
    for number in range(1200):
        cpu, memory, gpus = random.choice(sizes)
        rows.append(f"n{number:04},{cpu},{memory},{gpus},{random.choice('AB')}")
    source = inputs(random_pods(random, 8000), rows, "openb")
    for policy in ("fgd", "best-fit"):
        run, seconds = timed(source, policy, Settings(inflate=1.3))
        pods = f"{run.pods} pods in {seconds:.1f} CPU seconds"
        say(f"made-up list, {policy}: {100 * run.allocation_ratio:.2f} % allocated, {pods}")


def day(pods: int) -> None:
    """Simulate a day of 1,000 nodes with 8 GPUs each, at 95 percent of their capacity."""
    nodes = max(1, pods // 100)
    random = Random(1)
    kinds = [(random.choice((2, 4, 8)) * gpus, gpus) for gpus in (1, 1, 1, 1, 2, 4, 8) * 6][:40]
    mean = 0.95 * nodes * 8 * DAY_SECONDS / pods / (sum(gpus for _, gpus in kinds) / len(kinds))
    rows = ["name,arrival,duration,cpu,memory,devices"]
    for number in range(pods):
        cpu, gpus = random.choice(kinds)
        duration = random.lognormvariate(math.log(mean) - 0.72, 1.2)
        arrival = random.random() * DAY_SECONDS
        rows.append(f"j{number},{arrival:.3f},{duration:.3f},{cpu},{cpu}Gi,gpu:{gpus}")
    fleet = [NODES, *(f"n{number:04},96000,786432,8,A" for number in range(nodes))]
    run, seconds = timed(inputs(rows, fleet), "kubernetes", Settings())
    waits = run.waits.all
    say(
        f"a day of {nodes} nodes and {pods} pods: {seconds:.1f} CPU seconds, "
        f"{100 * run.allocation_ratio:.1f} % allocated, mean wait {waits.mean:.0f} s"
    )


def published(folder: Path, seeds: int, lists: list[str]) -> bool:
    """Return whether all means are near the published ones."""
    nodes = Input("nodes", "list", (folder / "openb_node_list_gpu_node.csv").read_bytes())
    is_near = True
    say("list       policy          @100 (published)   @130 (published)   CPU seconds a run")
    for name in lists:
        pods = Input("pods", "openb", (folder / f"openb_pod_list_{name}.csv").read_bytes())
        source = Inputs(pods, (nodes,))
        for policy, (at_100, at_130) in PUBLISHED[name].items():
            results = [
                timed(source, policy, Settings(seed=42 + number, inflate=1.3))
                for number in range(seeds)
            ]
            means = []
            for percent in (100, 130):
                points = [
                    next(it.allocated for it in run.curve if it.arrived == percent)
                    for run, _ in results
                ]
                means.append(sum(points) / len(points))
            seconds = sum(each for _, each in results) / seeds
            away = max(abs(means[0] - at_100), abs(means[1] - at_130))
            is_near = is_near and away <= TOLERANCE
            say(
                f"{name:<10} {policy:<15} {means[0]:.2f} ({at_100:.2f})      {means[1]:.2f} "
                f"({at_130:.2f})      {seconds:.1f}{'' if away <= TOLERANCE else '   TOO FAR'}"
            )
    return is_near


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--only", default=",".join(PUBLISHED))
    options = parser.parse_args()
    if options.traces is not None:
        return 0 if published(options.traces, options.seeds, options.only.split(",")) else 1
    made_up()
    day(options.pods)
    return 0


if __name__ == "__main__":
    sys.exit(main())
