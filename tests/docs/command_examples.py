"""Two examples for each command, for the reference pages; a test parses each call."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CommandExample:
    reason: str
    call: str


def _pair(first: tuple[str, str], second: tuple[str, str]) -> tuple[CommandExample, ...]:
    return CommandExample(*first), CommandExample(*second)


EXAMPLES: dict[str, tuple[CommandExample, ...]] = {
    "allocate": _pair(
        (
            "Test manifests against the nodes in a file.",
            "dryrack allocate -f nodes.yaml -f manifests/",
        ),
        (
            "Test a manifest against two nodes of an instance type.",
            "dryrack allocate -f training.yaml --nodes 2 --instance-type p5.48xlarge",
        ),
    ),
    "claims": _pair(
        ("Show the claims of all namespaces.", "dryrack claims -A"),
        ("Show the claims in the dump of a cluster.", "dryrack claims -f dump.yaml"),
    ),
    "convert": _pair(
        ("Show how old API versions change.", "dryrack convert --diff manifests"),
        ("Replace GPUs of a device plugin by claims.", "dryrack convert -i --claims train.yaml"),
    ),
    "dashboard": _pair(
        (
            "Show the cluster of the current context.",
            "dryrack dashboard",
        ),
        ("Show the run of a scenario.", "dryrack dashboard --scenario first.yaml"),
    ),
    "demo": _pair(
        ("Run the whole demo.", "dryrack demo"),
        (
            "Run the demo in real time, and keep the cluster for kubectl.",
            "dryrack demo --keep",
        ),
    ),
    "devices": _pair(
        ("Show the devices of one node.", "dryrack devices --node node-1"),
        ("Show the devices as JSON.", "dryrack devices -o json"),
    ),
    "driver test": _pair(
        (
            "Check the example driver of Kubernetes.",
            (
                "dryrack driver test -- dra-example-kubeletplugin --node-name {node} "
                "--kubelet-plugins-directory-path {plugins} "
                "--kubelet-registrar-directory-path {registry} --cdi-root {cdi}"
            ),
        ),
        (
            "Check one requirement, and print a report for CI.",
            "dryrack driver test --focus prepare-after-a-reboot -o junit -- ./driver",
        ),
    ),
    "check": _pair(
        ("Check the invariants of the cluster of the current context.", "dryrack check"),
        (
            "Check a virtual cluster in CI; a violation must persist for a minute.",
            "dryrack check --name ci --wait 1m -o junit > report.xml",
        ),
    ),
    "doctor": _pair(
        ("Check this machine and the cluster of the current context.", "dryrack doctor"),
        (
            "Check whether an account may run the scheduler.",
            "dryrack doctor --for schedule --as system:serviceaccount:team:scheduler",
        ),
    ),
    "down": _pair(
        ("Stop the default cluster.", "dryrack down"),
        ("Stop all virtual clusters.", "dryrack down --all"),
    ),
    "examples copy": _pair(
        ("Copy an example to ./quickstart.", "dryrack examples copy quickstart"),
        ("Copy all examples to a directory.", "dryrack examples copy --all examples"),
    ),
    "examples list": _pair(
        ("List all examples.", "dryrack examples list"),
        ("List the examples of a group.", "dryrack examples list --group dra"),
    ),
    "examples show": _pair(
        ("Print an example.", "dryrack examples show quickstart"),
        (
            "Apply the first manifest of an example.",
            "dryrack examples show quickstart -o yaml | kubectl apply -f -",
        ),
    ),
    "explain": _pair(
        ("Explain a pending Pod of a cluster.", "dryrack explain pod nine-gpus"),
        (
            "Explain a claim in files.",
            "dryrack explain claim four-gpus -f nodes.yaml -f four-gpus.yaml",
        ),
    ),
    "fault api": _pair(
        (
            "Let one in ten writes of the components conflict, for one minute.",
            "dryrack fault api conflicts=0.1 --for 1m",
        ),
        (
            "Let one in five requests of the scheduler fail.",
            "dryrack fault api errors=0.2 engine=scheduler",
        ),
    ),
    "fault claim": _pair(
        ("Create a leaked claim.", "dryrack fault claim default/old-job leaked"),
        (
            "Create it in the cluster of a context.",
            "dryrack fault claim default/old-job leaked --context dryrack-lab",
        ),
    ),
    "fault clear": _pair(
        ("End all faults.", "dryrack fault clear"),
        ("End the faults of a node.", "dryrack fault clear node-1"),
    ),
    "fault device": _pair(
        ("Make a device unhealthy.", "dryrack fault device node-1/gpu-0 unhealthy"),
        (
            "Remove the first GPU of all nodes for 30 seconds.",
            "dryrack fault device 'node-*/gpu-0' lost --for 30s",
        ),
    ),
    "fault engine": _pair(
        ("Crash the scheduler.", "dryrack fault engine scheduler crash"),
        (
            "Crash the controllers, and restart them after one minute.",
            "dryrack fault engine controllers crash --for 1m",
        ),
    ),
    "fault list": _pair(
        ("List all faults.", "dryrack fault list"),
        ("List all faults as YAML.", "dryrack fault list -o yaml"),
    ),
    "fault node": _pair(
        ("Let the preparation of claims fail.", "dryrack fault node node-1 prepare=fail"),
        ("Restart a virtual node.", "dryrack fault node node-1 reboot"),
    ),
    "fault pool": _pair(
        ("Make the pools of a node incomplete.", "dryrack fault pool node-1 half"),
        (
            "Make the pool of one driver incomplete.",
            "dryrack fault pool node-1/gpu.example.com half",
        ),
    ),
    "fault watches": _pair(
        ("Close all watches.", "dryrack fault watches"),
        (
            "Close all watches, so that components list all objects.",
            "dryrack fault watches expired",
        ),
    ),
    "gangs": _pair(
        ("Show the gangs of all namespaces.", "dryrack gangs -A"),
        ("Show the gangs, and print changes.", "dryrack gangs -w"),
    ),
    "hardware classes": _pair(
        (
            "Create the DeviceClasses in a cluster.",
            "dryrack hardware classes | kubectl apply -f -",
        ),
        (
            "Print the DeviceClasses for your own catalog.",
            "dryrack hardware classes --catalogue-file catalog.yaml",
        ),
    ),
    "hardware list": _pair(
        ("List all instance types and device models.", "dryrack hardware list"),
        (
            "List the instance types with a device model.",
            "dryrack hardware list --model h200-141gb",
        ),
    ),
    "hardware show": _pair(
        ("Show the devices of an instance type.", "dryrack hardware show g6.xlarge"),
        ("Show the MIG partitions.", "dryrack hardware show a2-highgpu-1g --mig"),
    ),
    "image load": _pair(
        ("Import the image into the cluster of the current context.", "dryrack image load"),
        (
            "Import an archive into a kind cluster.",
            "dryrack image load dryrack.tar --to kind --cluster test",
        ),
    ),
    "image save": _pair(
        ("Write the image of this installation.", "dryrack image save dryrack.tar"),
        (
            "Give the image the name in your registry.",
            "dryrack image save dryrack.tar --tag registry.example.com/team/dryrack:1",
        ),
    ),
    "kubeconfig": _pair(
        (
            "Use the cluster in this terminal.",
            'export KUBECONFIG="$(dryrack kubeconfig --path)"',
        ),
        ("Print the kubeconfig of a cluster.", "dryrack kubeconfig --name lab"),
    ),
    "kubelet": _pair(
        (
            "Serve three new nodes, each with its own process of a driver.",
            "dryrack kubelet --node-count 3 --kubelet-dir /tmp/kubelets -- my-driver --cdi {cdi}",
        ),
        (
            "Grant the permissions that the virtual kubelets need.",
            "dryrack kubelet --print-rbac | kubectl apply -f -",
        ),
    ),
    "lint": _pair(
        ("Check manifests.", "dryrack lint manifests/*.yaml"),
        ("Write the findings for a code scanner.", "dryrack lint -o sarif manifests > lint.sarif"),
    ),
    "manifests": _pair(
        (
            "Install all parts of the chart.",
            "dryrack manifests --set namespace.create=true | kubectl apply -f -",
        ),
        (
            "Print the kubelet plugin for simulated GPUs.",
            "dryrack manifests plugin --set plugin.enabled=true --set plugin.devices={gpu:8}",
        ),
    ),
    "plan": _pair(
        (
            "Find the cheapest nodes for the pods of a folder.",
            "dryrack plan -f manifests/",
        ),
        (
            "Choose among some instance types, beside the nodes that the cluster has.",
            "dryrack plan --existing --instance-types 'g6.*,p5.48xlarge'",
        ),
    ),
    "plugin": _pair(
        ("Simulate eight devices on this node.", "dryrack plugin --devices fake:8"),
        (
            "Grant the permissions that the plugin needs.",
            "dryrack plugin --devices fake:8 --print-rbac | kubectl apply -f -",
        ),
    ),
    "provision": _pair(
        (
            "Create nodes of KWOK for the pending Pods of the current context.",
            "dryrack provision",
        ),
        (
            "Create the kinds NodePool and NodeClaim.",
            "dryrack provision --print-crds | kubectl apply -f -",
        ),
    ),
    "publish": _pair(
        ("Publish the ResourceSlices once.", "dryrack publish --once"),
        (
            "Print the ResourceSlices for the nodes and the device configuration in files.",
            "dryrack publish --dry-run -f nodes.yaml -f config.yaml",
        ),
    ),
    "record": _pair(
        ("Record the cluster of the current context.", "dryrack record -o production.yaml"),
        (
            "Record without the names of your objects.",
            "dryrack record --anonymize -o production.yaml",
        ),
    ),
    "run": _pair(
        (
            "Run the operator of a chart.",
            "dryrack run -n my-operator deployment/manager -- ./bin/manager",
        ),
        (
            "Listen at another port for webhooks.",
            "dryrack run -n my-operator deployment/manager --port 9443=19443 -- ./bin/manager",
        ),
    ),
    "scenario diff": _pair(
        (
            "Compare a recording with the same recording and other classes.",
            "dryrack scenario diff production.yaml --replace classes.yaml",
        ),
        ("Compare two scenarios.", "dryrack scenario diff before.yaml after.yaml"),
    ),
    "scenario fuzz": _pair(
        ("Run ten random scenarios.", "dryrack scenario fuzz --seeds 10"),
        ("Run one scenario again by its seed.", "dryrack scenario fuzz --first 42 --seeds 1"),
    ),
    "scenario init": _pair(
        ("Write a first scenario.", "dryrack scenario init first.yaml"),
        ("Write it with the default name.", "dryrack scenario init"),
    ),
    "scenario list": _pair(
        ("List the scenarios.", "dryrack scenario list"),
        ("List the scenarios as JSON.", "dryrack scenario list -o json"),
    ),
    "scenario run": _pair(
        ("Run a scenario.", "dryrack scenario run first.yaml"),
        (
            "Run a scenario, and write a JUnit report.",
            "dryrack scenario run first.yaml --junit report.xml",
        ),
    ),
    "scenario schema": _pair(
        ("Print the schema.", "dryrack scenario schema"),
        ("Write the schema to a file.", "dryrack scenario schema > scenario.schema.json"),
    ),
    "scenario show": _pair(
        ("Print a scenario.", "dryrack scenario show gang-gpu"),
        ("Copy a scenario to a file.", "dryrack scenario show gang-gpu > gang.yaml"),
    ),
    "scale": _pair(
        ("Give the cluster five virtual nodes.", "dryrack scale --nodes 5"),
        (
            "Give the cluster two nodes of an instance type.",
            "dryrack scale --nodes 2 --instance-type g6.xlarge",
        ),
    ),
    "schedule": _pair(
        (
            "Schedule the Pods with a schedulerName.",
            "dryrack schedule --name second-scheduler",
        ),
        (
            "Grant the permissions that the scheduler needs.",
            "dryrack schedule --print-rbac --name second-scheduler | kubectl apply -f -",
        ),
    ),
    "simulate": _pair(
        (
            "Repeat the published experiment with a trace of Alibaba.",
            "dryrack simulate pods.csv --format openb --nodes nodes.csv --inflate 1.3",
        ),
        (
            "Compare two policies on nodes of an instance type, as JSON.",
            "dryrack simulate jobs.csv --fleet p5.48xlarge:4 --policy fgd,best-fit -o json",
        ),
    ),
    "status": _pair(
        ("Show all virtual clusters.", "dryrack status"),
        ("Show one virtual cluster as JSON.", "dryrack status --name lab -o json"),
    ),
    "up": _pair(
        (
            "Start a cluster in the background, and let kubectl use it.",
            "dryrack up --detach --merge --nodes 3 --instance-type p5.48xlarge",
        ),
        (
            "Start a second cluster with eight GPUs on each node.",
            "dryrack up --detach --name lab --nodes 2 --devices gpu:8",
        ),
    ),
    "version": _pair(
        ("Print the version.", "dryrack version"),
        ("Print the version as JSON.", "dryrack version -o json"),
    ),
}
