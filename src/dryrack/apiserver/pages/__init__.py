"""Pages beside objects: discovery, OpenAPI, health, metrics."""
