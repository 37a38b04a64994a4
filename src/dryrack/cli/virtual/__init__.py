"""Commands for virtual clusters."""
