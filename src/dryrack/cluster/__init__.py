"""
The one place that wires.

Clocks, chance, keys, files and sockets come together here with the engines that need them; no
other room knows where any of it comes from. Two clusters in one process share nothing.
"""
