"""
Rules of kinds: what an object of a kind says by saying nothing, and what is wrong with it.

Here is what can be said of an object by itself, for all kinds but those of devices, which
`kinds.validation` judges. The API server asks these rules and adds what is about requests:
changes, admission, subresources. `lint` asks them alone.
"""
