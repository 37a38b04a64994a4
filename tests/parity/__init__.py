"""
Recorded answers of a real API server.

A script is a list of requests, written by hand. Its answers are recorded from a real server,
normalised, and never edited by hand:

    python -m tests.parity record [NAME…]     ask a real server and keep its answers
    python -m tests.parity check [NAME…]      ask again, and tell what differs

Whatever claims to be an API server is asked the same and must answer the same.
"""
