"""`dryrack plan`: the cheapest nodes for a workload."""
