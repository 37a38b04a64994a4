"""
What brings a cluster from what it is to what it should be.

`<kind>/<reason>.py`: each has a pure `plan` that says what to write, and a thin loop around it.
No controller deletes anything on partial knowledge: it acts when every cache it reads is whole.
"""
