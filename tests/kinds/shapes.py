"""Random documents of a kind, with additional fields that are not modelled."""

from typing import Any

from hypothesis import strategies as st

from dryrack.kinds import shape
from dryrack.kinds.quantity import Quantity

_names = st.sampled_from(["a", "b", "c", "gpu-0", "example.com/x"])
_quantities = st.sampled_from(["1", "1024Ki", "1.5Gi", "0", "500m", "+3", "1e3"])
_foreign = st.sampled_from([1, "x", None, {"deep": [1, {"y": None}]}, [True]])


def documents(known: shape.Shape) -> st.SearchStrategy[Any]:
    """Documents that decode as the shape says."""
    match known:
        case shape.Anything():
            return _foreign
        case shape.Integer():
            return st.integers(0, 9)
        case shape.Scalar(type=kind):
            return {str: _names, bool: st.booleans(), Quantity: _quantities}[kind]
        case shape.Items(item=item):
            return st.lists(documents(item), max_size=3)
        case shape.Entries(value=value):
            return st.dictionaries(_names, documents(value), max_size=2)
        case shape.Fields():
            return _objects(known)


@st.composite
def _objects(draw: st.DrawFn, known: shape.Fields) -> dict[str, Any]:
    """A few fields at a time: what matters is how neighbours fare, not how many there are."""
    fields = sorted(known.fields)
    some = st.lists(st.sampled_from(fields), max_size=3, unique=True) if fields else st.just([])
    value = {key: draw(documents(known.fields[key])) for key in draw(some)}
    if draw(st.booleans()):
        value["unmodelled"] = draw(_foreign)
    return value
