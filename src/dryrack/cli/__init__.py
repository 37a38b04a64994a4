"""The command line: words and tables for people, plain data for programs."""
