"""Device kinds that come with dryrack."""
