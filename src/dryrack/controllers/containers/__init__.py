"""The containers of pods on virtual nodes: environment, files, and processes in virtual time."""
