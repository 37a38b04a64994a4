"""The bounds of everything that would otherwise grow with what a client sends or does not read."""

# One input of a command. `kubectl get -o json` of 400 nodes and 2,000 pods is 100 MB, and takes
# eight times its size in memory. The limit stops inputs without an end, such as /dev/zero, before
# they take all memory; a larger input is an error that names it.
FILE_BYTES_MAX = 1024 * 1024 * 1024

# The real server keeps some minutes of history for watches. A client that was away for longer
# than this many changes of one resource lists again; at 25,000 pods that is half of them.
WATCH_LOG_EVENTS_MAX = 10_000
# JSON that only the log of a resource keeps, because something newer has taken its place. A fleet
# whose slices are all written again would keep the old ones, 50 MB at a time.
WATCH_LOG_BYTES_MAX = 32 * 1024 * 1024

# One process works on one request at a time; more in hand only hold memory. A request gets its
# place when its body is there, so that a client that sends none of it takes no place. A waiting
# request holds a connection and its body.
REQUESTS_IN_HAND_MAX = 64
REQUESTS_WAITING_MAX = 4096
REQUEST_WAIT_SECONDS_MAX = 30.0

# The bodies of all requests together, from the first byte to the answer: 64 of the largest. When
# they are more, the server refuses the body that has been on its way for longest, because over
# loopback only a client that has stopped takes longer than the others.
BODIES_BYTES_MAX = 192 * 1024 * 1024

# What the server keeps of a body before it knows who sends it. A connection may exceed this by one
# read of the socket, 256 KiB.
UNREAD_BODY_BYTES_MAX = 64 * 1024

# Each connection costs some 50 KB for TLS, and up to 0.5 MB if its client sends much and reads
# nothing. When there are more, the server closes connections of clients that have not proven who
# they are, then idle ones.
CONNECTIONS_MAX = 2048

# Requests that a client sends before it has read the answers to earlier ones. Nothing but tests
# does that; those above this number are parsed when the earlier ones are answered.
PIPELINED_REQUESTS_MAX = 8

# How long the body of a request may take to arrive, and one chunk of an answer to leave. Who is
# slower than this over loopback has stopped; a watch that is cut lists again.
BODY_SECONDS_MAX = 30.0
CHUNK_SECONDS_MAX = 30.0

# client-go sends tokens of some kilobytes; Go's server refuses headers of more than 1 MiB in all.
# A tenth of that takes every token and label selector that people use.
# Trailers and the size lines of chunks have the same bound, each time until content follows.
HEADER_BYTES_MAX = 100 * 1024
# A header costs some 200 bytes however short it is. Impersonation sends one per group.
HEADERS_MAX = 1000

# The answers that clients have not taken, all together. A list of a large fleet has 100 MB. When
# they are more, the server closes the connection of the client that has taken longest.
ANSWERS_BYTES_MAX = 512 * 1024 * 1024

# The server writes an answer in pieces of this size.
STREAM_BUFFER_BYTES_MAX = 1024 * 1024
# What may wait in the process before the next piece is written, per connection.
WRITE_BUFFER_BYTES_MAX = 64 * 1024

# A message from the client of a WebSocket, in all its fragments. A watch ignores what its client
# says, and kubectl sends at most 32 KiB at a time.
WEBSOCKET_MESSAGE_BYTES_MAX = 64 * 1024

# An idle connection, or one that never finishes its headers, is closed after this.
IDLE_SECONDS_MAX = 120.0

# How long requests in hand may take to end when the server stops.
STOP_SECONDS_MAX = 5.0

# The only body that the dashboard reads describes a change to try, some hundred bytes.
DASHBOARD_BODY_BYTES_MAX = 64 * 1024
# Updates that the dashboard keeps for readers that come again, for all of them together.
DASHBOARD_UPDATES_MAX = 1000
DASHBOARD_UPDATES_BYTES_MAX = 16 * 1024 * 1024
# Updates that one slow reader may have to read. They are among those above, so that slow readers
# take no memory of their own.
DASHBOARD_BACKLOG_UPDATES_MAX = 256
# What the dashboard remembers of the past. A day of a busy cluster; a moment with one pool of eight
# devices takes about a kilobyte.
DASHBOARD_MOMENTS_MAX = 20_000
DASHBOARD_MOMENT_DEVICES_MAX = 400_000

# As the real server: what etcd would take in one request, and twice that in JSON.
REQUEST_BODY_BYTES_MAX = 3 * 1024 * 1024
OBJECT_BYTES_MAX = 3 * 512 * 1024

# An answer of an API server, after decompression. Lists are read in pages of 500 objects; 500 of
# the largest objects that etcd stores are 750 MiB.
API_ANSWER_BYTES_MAX = 1024 * 1024 * 1024
# An answer of a webhook, after decompression. A patch that replaces the largest object is 4 MiB in
# base64.
WEBHOOK_ANSWER_BYTES_MAX = 8 * 1024 * 1024

# The number of values in a YAML body, including keys: reading it blocks all other requests. The
# largest object that can be stored has some 150,000; a body with more is an attack.
YAML_VALUES_MAX = 250_000

# Events that one watch may have to send before it expires. A client that is this far behind lists
# again faster than it catches up.
WATCH_BACKLOG_EVENTS_MAX = 10_000
# What all watches together keep for clients that do not read: versions that the store has no
# longer, each counted once, and 128 bytes for each event of each watch. When it is more, the watch
# whose client has read nothing for longest expires.
WATCH_BACKLOGS_BYTES_MAX = 64 * 1024 * 1024
# What a watch renders at a time, one event at least. Until it is sent each connection has its own.
WATCH_CHUNK_BYTES_MAX = 128 * 1024

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

# How much JSON one ConversionReview sends. A list is converted in one review; one that is larger
# takes several, because the response, which may be larger than the request, is read with a limit.
CONVERSION_REVIEW_BYTES_MAX = 1024 * 1024

# What one scenario may ask for. More nodes than one process can hold a fleet of, more steps than
# anybody reads, or more time than any lease and certificate lasts is a mistake in the file.
SCENARIO_NODES_MAX = 10_000
SCENARIO_STEPS_MAX = 10_000
SCENARIO_OBJECTS_MAX = 100_000
SCENARIO_SECONDS_MAX = 30 * 86_400.0

# Objects of a cluster are many and stay: looking through all of them for garbage after every 700
# new ones, as Python does, takes a quarter of the time.
GARBAGE_THRESHOLDS = (50_000, 20, 50)
