"""The bounds of everything that would otherwise grow with what somebody else sends."""

# Kubernetes refuses a request body of more than 3 MiB; a file may hold many objects. 64 MiB is
# a fleet of some 10,000 nodes, and what a laptop reads without anybody noticing.
FILE_BYTES_MAX = 64 * 1024 * 1024

# The real server keeps some minutes of history for watches. A client that was away for longer
# than this many changes of one resource lists again; at 25,000 pods that is half of them.
WATCH_LOG_EVENTS_MAX = 10_000
# JSON that only the log of a resource keeps, because something newer has taken its place. A fleet
# whose slices are all written again would keep the old ones, 50 MB at a time.
WATCH_LOG_BYTES_MAX = 32 * 1024 * 1024

# One process works on one request at a time; more in hand only hold bodies in memory, at most
# 64 × 3 MiB. Waiting requests hold nothing but a connection.
REQUESTS_IN_HAND_MAX = 64
REQUESTS_WAITING_MAX = 4096
REQUEST_WAIT_SECONDS_MAX = 30.0

# How long the body of a request may take to arrive, and one chunk of an answer to leave. Who is
# slower than this over loopback has stopped; a watch that is cut lists again.
BODY_SECONDS_MAX = 30.0
CHUNK_SECONDS_MAX = 30.0

# client-go sends tokens of some kilobytes; Go's server refuses headers of more than 1 MiB in all.
# A tenth of that takes every token and label selector that people use.
HEADER_BYTES_MAX = 100 * 1024

# How much of a stream may wait for a slow reader in the process, per connection.
STREAM_BUFFER_BYTES_MAX = 1024 * 1024

# An idle connection, or one that never finishes its headers, is closed after this.
IDLE_SECONDS_MAX = 120.0

# How long requests in hand may take to end when the server stops.
STOP_SECONDS_MAX = 5.0

# As the real server: what etcd would take in one request, and twice that in JSON.
REQUEST_BODY_BYTES_MAX = 3 * 1024 * 1024
OBJECT_BYTES_MAX = 3 * 512 * 1024

# Words in a YAML body, keys too: it is read one by one, while everybody else waits. The largest
# object that is stored has some 150,000; what has more is no object but an attempt.
YAML_VALUES_MAX = 250_000

# Events that a watch may have outstanding before its reader is cut off. A reader that is this far
# behind lists again faster than it catches up.
WATCH_BACKLOG_EVENTS_MAX = 10_000
WATCH_BACKLOG_BYTES_MAX = 64 * 1024 * 1024

# Objects that are kept as values beside their JSON, those written last. What was just written is
# what is read and written next; all the others would cost ten times their JSON. Of objects that
# have much JSON it is a few: to read one again is little beside what a write of it takes.
READABLE_OBJECTS_MAX = 2048
READABLE_LARGE_OBJECTS_MAX = 16
LARGE_OBJECT_BYTES = 8 * 1024

# How often a request begins again because webhooks have to be asked: once for each of them, anew
# whenever another writer has changed the object meanwhile, and for every few objects of a
# collection that is deleted.
REVIEWS_MAX = 1000
REVIEWS_AT_ONCE_MAX = 20

# What one scenario may ask for. More nodes than one process can hold a fleet of, more steps than
# anybody reads, or more time than any lease and certificate lasts is a mistake in the file.
SCENARIO_NODES_MAX = 10_000
SCENARIO_STEPS_MAX = 10_000
SCENARIO_OBJECTS_MAX = 100_000
SCENARIO_SECONDS_MAX = 30 * 86_400.0

# Objects of a cluster are many and stay: looking through all of them for garbage after every 700
# new ones, as Python does, takes a quarter of the time.
GARBAGE_THRESHOLDS = (50_000, 20, 50)
