"""
The command line.

A command loads some hundred modules, and nothing of that is ever garbage. Looking for garbage
after every 700 new objects would only slow a start down; so it is looked for more
seldom, from the first module on.
"""

import gc

gc.set_threshold(200_000, 20, 50)
