"""`python -m dryrack`."""

from dryrack.cli.main import run

run()
