"""
`dryrack` and `python -m dryrack`.

A third of a start is imports. Who presses Ctrl-C meanwhile ends the process, and is not told in
which of them that was.
"""

import signal


def main() -> None:
    """The console script."""
    handler = signal.getsignal(signal.SIGINT)
    # In the background of a script the signal is ignored, and stays so.
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from dryrack.cli.main import run

    signal.signal(signal.SIGINT, handler)
    run()


if __name__ == "__main__":
    main()
