"""
Extensions of an API: custom kinds, and admission policies.

Both are judged with CEL's compiler, which is why their rules are not in `kinds`. The API server
serves and enforces them; `lint` judges them alone.
"""
