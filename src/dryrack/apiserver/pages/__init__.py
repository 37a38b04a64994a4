"""What is served beside objects: discovery, OpenAPI, health, metrics."""
