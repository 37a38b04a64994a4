"""The nouns of the Kubernetes API: typed, frozen objects, quantities, selectors, decoding."""
