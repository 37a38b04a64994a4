"""Cost factors: the units that steps cost, for the estimate and for the evaluation alike."""

# Reading a whole string once costs a tenth of a unit per character.
STRING_TRAVERSAL = 0.1
# A guess of the reference: one expression of a regular expression is about four characters.
REGEX_LENGTH = 0.25

LIST_BASE = 10
MAP_BASE = 30
STRUCT_BASE = 40

# A check asks the authorizer; the price lets an expression afford two within the limit.
AUTHORIZATION_CHECK = 350_000
