"""
A small shell in virtual time, for the containers of virtual nodes.

It runs what manifests, documentation and tests of Kubernetes projects contain: `sh -c` scripts, and
the commands in `commands`. It has no access to the machine that it runs on.
"""
