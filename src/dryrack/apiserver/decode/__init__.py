"""Bodies of requests to objects, as strictly as a client asks."""
