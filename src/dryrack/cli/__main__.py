"""`python -m dryrack.cli`."""

from dryrack.cli.main import run

run()
