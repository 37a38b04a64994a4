"""
What users add to an API: kinds that they define, and policies that they write.

Both are judged with CEL's compiler, which is why their rules are not in `kinds`. The API server
serves and enforces them; `lint` judges them alone.
"""
