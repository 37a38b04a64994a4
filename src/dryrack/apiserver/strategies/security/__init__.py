"""How safe the pods of a namespace must be, as its labels say."""
