"""Controllers of groups of pods that are scheduled together."""
