"""What is answered: objects as they are written, statuses and refusals."""
