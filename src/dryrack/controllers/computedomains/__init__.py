"""ComputeDomains of NVIDIA's driver: their claim templates, and the nodes that join them."""
