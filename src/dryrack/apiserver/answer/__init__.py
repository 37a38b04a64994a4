"""Answers: objects, statuses and refusals, in the form that a client accepts."""
