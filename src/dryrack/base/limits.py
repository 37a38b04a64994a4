"""The bounds of everything that would otherwise grow with what somebody else sends."""

# Kubernetes refuses a request body of more than 3 MiB; a file may hold many objects. 64 MiB is
# a fleet of some 10,000 nodes, and what a laptop reads without anybody noticing.
FILE_BYTES_MAX = 64 * 1024 * 1024

# The real server keeps some minutes of history for watches. A client that was away for longer
# than this many changes of one resource lists again; at 25,000 pods that is half of them.
WATCH_LOG_EVENTS_MAX = 10_000
