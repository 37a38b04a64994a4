"""
Defaults and validation of objects, by kind.

The rules need only the object itself. They cover all kinds but those of devices, which
`kinds.validation` covers. The API server applies them and adds what depends on requests: changes,
admission, subresources. `lint` applies only them.
"""
