"""The supply: pools, taints, counters, capacity, and the devices in use."""
