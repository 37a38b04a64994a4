"""Claims of devices: made for pods, freed after them."""
