"""
Usage of quotas by objects.

Objects are raw JSON, in the version in which they are stored. Who admits and who counts go by the
same numbers, so they are here, below both.
"""
