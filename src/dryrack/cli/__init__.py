"""
The command line.

A command loads some hundred modules, and none of these objects is ever garbage. The threshold of
the garbage collector is raised before the first module, which makes the start faster.
"""

import gc

gc.set_threshold(200_000, 20, 50)
