"""A conformance suite for DRA drivers: the calls of a kubelet, and what a driver must answer."""
