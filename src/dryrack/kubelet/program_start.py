"""
Start a program that the kernel kills when its parent ends. Runs as a script.

The arguments are the process ID of the parent, and the words of the program.
"""

import ctypes
import os
import signal
import sys

_DEATH_SIGNAL = 1


def main() -> None:
    parent, *words = sys.argv[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != int(parent):
            # The parent ended before the call.
            sys.exit(1)
    try:
        os.execv(words[0], words)
    except OSError as error:
        sys.exit(f"{words[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
