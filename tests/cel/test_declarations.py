"""The tables of functions, and what is made of them."""

from __future__ import annotations

from dryrack.cel.checking import types as t
from dryrack.cel.declarations import Overload, functions
from dryrack.cel.declarations.signatures import read_table
from dryrack.cel.evaluation.dispatch import FUNCTIONS, OVERLOADS
from dryrack.kinds.releases import Release


def test_a_table_is_read_as_it_is_written() -> None:
    """Receivers, type parameters and nested types come out as declared."""
    table = read_table("find\n    a_id map(K, list(V)).(K, int) -> optional_type(V)\n")
    k = t.type_param("K")
    v = t.type_param("V")

    assert table == {
        "find": (
            Overload(
                id="a_id",
                args=(t.map_of(k, t.list_of(v)), k, t.INT),
                result=t.optional_of(v),
                member=True,
                type_params=("K", "V"),
            ),
        )
    }


def test_overload_ids_are_unique_in_a_function() -> None:
    """An id says which overload of a function is meant."""
    for name, overloads in functions(includes=True).items():
        ids = [overload.id for overload in overloads]

        assert len(ids) == len(set(ids)), name


def test_libraries_that_share_a_function_keep_their_order() -> None:
    """Kubernetes adds its lists before the strings, and quantities before versions."""
    declared = functions(includes=True)

    assert declared["lastIndexOf"][0].id == "list_a_last_index_of_int"
    assert [o.id for o in declared["compareTo"]] == ["quantity_compare_to", "semver_compare_to"]


def test_every_result_parameter_is_told_by_an_argument() -> None:
    """A type parameter in a result means nothing unless an argument or a caller fixes it."""
    free = {
        overload.id
        for overloads in functions(includes=True).values()
        for overload in overloads
        if not overload.result.closed and all(arg.closed for arg in overload.args)
    }

    assert free == {"optional_none", "select_optional_field"}


def test_includes_is_there_only_on_demand() -> None:
    """It is the one function that a gate can take away."""
    assert set(functions(includes=True)) - set(functions(includes=False)) == {"includes"}


def test_every_overload_of_every_release_has_an_implementation() -> None:
    """A release with other overloads lacks none of them, apart from operators."""
    lacking = {
        release: {
            overload.id
            for name, overloads in functions(includes=True, release=release).items()
            for overload in overloads
            if name not in FUNCTIONS and overload.id not in OVERLOADS and name[0] not in "_o"
        }
        for release in Release
    }

    assert not any(lacking.values()), lacking
