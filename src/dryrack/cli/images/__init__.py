"""The container image of dryrack: its archive, and the tools that import it into a cluster."""
