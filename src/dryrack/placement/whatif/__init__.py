"""What-if: the scheduler's answer for the objects of files, and why, and what would help."""
