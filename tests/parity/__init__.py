"""
Recorded answers of a real API server.

A script is a list of requests, written by hand. Its answers are recorded from a real server of
each release, normalised, and never edited by hand:

    python -m tests.parity record [NAME…] [--release 1.37]     ask a real server, keep its answers
    python -m tests.parity check [NAME…] [--release 1.37]      ask again, and print what differs

The tests send the same requests to the embedded API server and compare its answers.
"""
