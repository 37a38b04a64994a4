"""What-if: the scheduler's decisions for the objects of files, their causes and remedies."""
