"""
Declarations of the language's extensions: optionals, strings, sets, lists.
"""

from __future__ import annotations

OPTIONALS = """
optional.of
    optional_of (V) -> optional_type(V)
optional.ofNonZeroValue
    optional_ofNonZeroValue (V) -> optional_type(V)
optional.none
    optional_none () -> optional_type(V)
value
    optional_value optional_type(V).() -> V
hasValue
    optional_hasValue optional_type(V).() -> bool
or
    optional_or_optional optional_type(V).(optional_type(V)) -> optional_type(V)
orValue
    optional_orValue_value optional_type(V).(V) -> V
_?._
    select_optional_field (dyn, string) -> optional_type(V)
_[?_]
    list_optindex_optional_int (list(V), int) -> optional_type(V)
    optional_list_optindex_optional_int (optional_type(list(V)), int) -> optional_type(V)
    map_optindex_optional_value (map(K, V), K) -> optional_type(V)
    optional_map_optindex_optional_value (optional_type(map(K, V)), K) -> optional_type(V)
_[_]
    optional_list_index_int (optional_type(list(V)), int) -> optional_type(V)
    optional_map_index_value (optional_type(map(K, V)), K) -> optional_type(V)
last
    list_last list(V).() -> optional_type(V)
first
    list_first list(V).() -> optional_type(V)
optional.unwrap
    optional_unwrap (list(optional_type(V))) -> list(V)
unwrapOpt
    optional_unwrapOpt list(optional_type(V)).() -> list(V)
"""

STRINGS = """
charAt
    string_char_at_int string.(int) -> string
indexOf
    string_index_of_string string.(string) -> int
    string_index_of_string_int string.(string, int) -> int
join
    list_join list(string).() -> string
    list_join_string list(string).(string) -> string
lastIndexOf
    string_last_index_of_string string.(string) -> int
    string_last_index_of_string_int string.(string, int) -> int
lowerAscii
    string_lower_ascii string.() -> string
replace
    string_replace_string_string string.(string, string) -> string
    string_replace_string_string_int string.(string, string, int) -> string
split
    string_split_string string.(string) -> list(string)
    string_split_string_int string.(string, int) -> list(string)
substring
    string_substring_int string.(int) -> string
    string_substring_int_int string.(int, int) -> string
trim
    string_trim string.() -> string
upperAscii
    string_upper_ascii string.() -> string
format
    string_format string.(list(dyn)) -> string
strings.quote
    strings_quote (string) -> string
"""

SETS = """
sets.contains
    list_sets_contains_list (list(T), list(T)) -> bool
sets.equivalent
    list_sets_equivalent_list (list(T), list(T)) -> bool
sets.intersects
    list_sets_intersects_list (list(T), list(T)) -> bool
"""

LISTS = """
slice
    list_slice list(T).(int, int) -> list(T)
flatten
    list_flatten list(list(T)).() -> list(T)
    list_flatten_int list(dyn).(int) -> list(dyn)
sort
    list_int_sort list(int).() -> list(int)
    list_uint_sort list(uint).() -> list(uint)
    list_double_sort list(double).() -> list(double)
    list_bool_sort list(bool).() -> list(bool)
    list_google.protobuf.Duration_sort list(duration).() -> list(duration)
    list_google.protobuf.Timestamp_sort list(timestamp).() -> list(timestamp)
    list_string_sort list(string).() -> list(string)
    list_bytes_sort list(bytes).() -> list(bytes)
@sortByAssociatedKeys
    list_int_sortByAssociatedKeys list(T).(list(int)) -> list(T)
    list_uint_sortByAssociatedKeys list(T).(list(uint)) -> list(T)
    list_double_sortByAssociatedKeys list(T).(list(double)) -> list(T)
    list_bool_sortByAssociatedKeys list(T).(list(bool)) -> list(T)
    list_google.protobuf.Duration_sortByAssociatedKeys list(T).(list(duration)) -> list(T)
    list_google.protobuf.Timestamp_sortByAssociatedKeys list(T).(list(timestamp)) -> list(T)
    list_string_sortByAssociatedKeys list(T).(list(string)) -> list(T)
    list_bytes_sortByAssociatedKeys list(T).(list(bytes)) -> list(T)
lists.range
    lists_range (int) -> list(int)
reverse
    list_reverse list(T).() -> list(T)
distinct
    list_distinct list(T).() -> list(T)
"""

TWO_VARIABLE_COMPREHENSIONS = """
cel.@mapInsert
    @mapInsert_map_key_value (map(K, V), K, V) -> map(K, V)
    @mapInsert_map_map (map(K, V), map(K, V)) -> map(K, V)
"""
