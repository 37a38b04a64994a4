"""The parts of a pod's spec, and what may be wrong with them."""
