"""
Kill process groups when the process that started them ends. Runs as a script.

Each line of the input adds a process group ("+ID") or removes one ("-ID"). When the input ends, the
guard kills the groups that are left.
"""

import os
import signal
import sys
from contextlib import suppress


def main() -> None:
    groups = set()
    for line in sys.stdin:
        group = int(line[1:])
        if line.startswith("+"):
            groups.add(group)
        else:
            groups.discard(group)
    for group in groups:
        with suppress(OSError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
