"""
A real Kubernetes on one Linux machine, without Docker, as a test bed.

    python -m tests.realcluster up|down|status|build

Programs are built once from Go modules into a cache outside the clone; a cluster lives in a
directory of its own, listens on loopback only, and stops exactly what it started.
"""
