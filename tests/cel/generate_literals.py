"""
Texts that expressions and devices are made of: constants of every type, and strings that
mean something to a library (versions, quantities, addresses, patterns), good ones and bad.

The same few words are used for devices and for expressions, so that they often meet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

WORDS = (
    "", "a", "fish", "bird", "A100", "H100-SXM5", "Tesla V100", "nvidia", "x=y", "a,b,c", "1",
    "-7", "true", "0x1F", "3.25", "naïve café", "日本語", "🐟🐠", "  padded\t", "UPPER lower",
    "aaa", "abcabc", "x" * 64, "tab\there", "back\\slash", 'quo"te', "per%cent", "new\nline",
    "gpu.example.com",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pool:
    """Texts that a function takes, and texts that look like it but are refused."""

    good: tuple[str, ...]
    bad: tuple[str, ...]

    def choose(self, chance: Random) -> str:
        return chance.choice(self.bad if chance.random() < 0.12 else self.good)


VERSIONS = Pool(
    ("1.0.0", "0.0.1", "1.2.3", "1.2.3-alpha.1", "1.2.3-alpha.beta", "1.2.3+build.5", "2.10.0",
     "10.0.0", "1.0.0-rc.1+b", "18446744073709551615.0.0"),
    ("v1.2.3", "1.2", "v1", "01.2.3", "1.2.3-01", "1.2.3.4", "", "x.y.z", "V1.0", "1.2.3-",
     "18446744073709551616.0.0", " 1.2.3", "1.01.1", "1.2.3+", "1..2"),
)  # fmt: skip
QUANTITIES = Pool(
    ("0", "1", "1Ki", "1Mi", "1Gi", "40Gi", "80Gi", "1.5Gi", "100m", "1500m", "0.5", "1e3", "1E3",
     "-1", "-2Ki", "12E", "9223372036854775807", "9223372036854775808", "1n", "3u", "1k", "1e-3",
     "+5", ".5", "5.", "1.0001n", "100000000000000000000Ei", "0.1Ki"),
    ("1K", "1 Gi", "Gi", "", "1ki", "--1", "1e", "1.2.3", "0x1"),
)  # fmt: skip
ADDRESSES = Pool(
    ("127.0.0.1", "192.168.0.1", "10.0.0.255", "0.0.0.0", "::1", "::", "fe80::1", "ff02::1",
     "224.0.0.1", "169.254.1.1", "2001:db8::abcd", "2001:DB8::ABCD", "0:0:0:0:0:0:0:1"),
    ("::ffff:1.2.3.4", "1.2.3", "1.2.3.256", "", "fe80::1%eth0", "01.2.3.4", "1.2.3.4/8", "abcd"),
)  # fmt: skip
NETWORKS = Pool(
    ("127.0.0.0/8", "192.168.0.0/24", "192.168.0.1/24", "0.0.0.0/0", "::/0", "::1/128", "fe80::/10",
     "2001:db8::/32", "10.0.0.1/32"),
    ("10.0.0.0/33", "10.0.0.0", "10.0.0.0/", "10.0.0.0/08", "::ffff:1.2.3.0/120", "",
     "fe80::1%eth0/64"),
)  # fmt: skip
URLS = Pool(
    ("https://example.com:443/a/b?x=1&x=2&y=3", "http://example.com", "/path/only",
     "http://[::1]:80/", "https://user:pw@host/p%20q?z=%41#frag", "https://example.com/ü?ä=ö",
     "mailto:a@b.c", "https://h:0?k", "http://h?a;b"),
    ("not a url", "http://a b", "//host/path", "", "ftp://h:x/", "http://h/%zz", "a:b"),
)  # fmt: skip
PATTERNS = Pool(
    ("", "a", "^a.*z$", "[0-9]+", "fi(s|x)h", "(?i)FISH", r"\d{2,4}", r"\bx\b", r"\pL+",
     r"(?P<n>a)b", "x*", "^$", r"[[:alpha:]]+", r"\Qa.b\E", "(?s)a.c", "a|b|", r"\w+\s\w+",
     "(a)(b)?", "日", r"\x41", "a+?", "[^a]", "(?U)a+"),
    ("(", "[a-", "a**", "a{1001}", "(?=a)", r"\1", r"\C", "a)"),
)  # fmt: skip
TIMESTAMPS = Pool(
    ("2024-01-31T12:30:45Z", "1970-01-01T00:00:00Z", "2023-06-01T00:00:00.123456789Z",
     "2024-02-29T23:59:59+05:30", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z",
     "1969-12-31T23:59:59.5Z"),
    ("2024-13-01T00:00:00Z", "2024-01-01", "2024-01-01T00:00:00", "2024-01-01t00:00:00z",
     "10000-01-01T00:00:00Z", "2024-06-30T23:59:60Z", ""),
)  # fmt: skip
DURATIONS = Pool(
    ("1h", "90m", "-1.5h", "1h30m5s", "100ms", "1us", "1ns", "0", "0s", "9223372036s",
     "9223372036854775807ns", "+5s", ".5s", "1µs", "2562047h47m"),
    ("1d", "", "315576000001s", "1.", "3h-5m", "2562047h48m", "s"),
)  # fmt: skip
ZONES = Pool(
    ("UTC", "America/New_York", "Asia/Kolkata", "+05:30", "-08:00", "02:00", "Europe/Berlin"),
    ("Mars/Base", "", "+5:00", "5", "+a:b", "+25:00"),
)  # fmt: skip
FORMAT_NAMES = Pool(
    ("dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "labelValue", "uri",
     "uuid", "byte", "date", "datetime", "dns1123LabelPrefix", "dns1123SubdomainPrefix",
     "dns1035LabelPrefix"),
    ("nope", ""),
)  # fmt: skip
FORMATTED = Pool(
    ("my-label", "a.b.c", "123", "k8s.io/name", "https://example.com", "aGVsbG8=", "2024-01-31",
     "123e4567-e89b-12d3-a456-426614174000", "2024-01-31T12:30:45Z", "my-label-"),
    ("My-Label", "-bad", "x" * 70, "", "a b", "a/b/c"),
)  # fmt: skip
TEMPLATES = Pool(
    ("%s", "%d", "%s-%d", "%.2f", "%e", "%x", "%X", "%o", "%b", "%%", "%s %s %s", "%.3e", "%d%%",
     "no verbs"),
    ("%z", "%", "%5d", "%."),
)  # fmt: skip
NUMBERS = Pool(
    ("1", "-7", "3.25", "1e3", "9223372036854775807", "18446744073709551615", "NaN", "+3"),
    ("0x1F", "9223372036854775808", " 1", "inf", "-Infinity", "1_0", "", "0b1", "1.", ".5"),
)  # fmt: skip
BOOLEANS = Pool(
    ("true", "false", "True", "t", "1", "0", "FALSE", "F", "TRUE"), ("yes", "", "tRUE", "2")
)

POOLS = {
    "version": VERSIONS,
    "quantity": QUANTITIES,
    "address": ADDRESSES,
    "network": NETWORKS,
    "url": URLS,
    "pattern": PATTERNS,
    "timestamp": TIMESTAMPS,
    "duration": DURATIONS,
    "zone": ZONES,
    "format": FORMAT_NAMES,
    "formatted": FORMATTED,
    "template": TEMPLATES,
    "number": NUMBERS,
    "boolean": BOOLEANS,
}

INTS = (
    "0", "1", "2", "3", "7", "-1", "-2", "10", "42", "64", "80", "0x1F", "-0x10", "1000000",
    "9223372036854775807", "-9223372036854775808", "2147483648", "0xFFFFFFFF",
)  # fmt: skip
UINTS = ("0u", "1u", "2u", "7U", "0x1Fu", "42u", "18446744073709551615u", "9223372036854775808u")
DOUBLES = (
    "0.0", "1.0", "-1.5", "3.25", "1e3", "1E-3", ".5", "-0.0", "1.7976931348623157e308", "4e-324",
    "9223372036854775807.0", "9223372036854775808.0", "18446744073709551616.0", "0.1", "2.0e0",
)  # fmt: skip
OUT_OF_RANGE = ("9223372036854775808", "18446744073709551616u", "1e999", "0x10000000000000000")

INFIX = {
    f"_{sign}_": sign
    for sign in ("&&", "||", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%")
} | {"@in": "in"}
PREFIX = {"!_": "!", "-_": "-"}

_POOL_OF = {
    "semver": "version", "isSemver": "version", "quantity": "quantity", "isQuantity": "quantity",
    "ip": "address", "isIP": "address", "ip.isCanonical": "address", "containsIP": "address",
    "cidr": "network", "isCIDR": "network", "containsCIDR": "network", "url": "url", "isURL": "url",
    "matches": "pattern", "find": "pattern", "findAll": "pattern", "timestamp": "timestamp",
    "duration": "duration", "format.named": "format", "validate": "formatted", "int": "number",
    "uint": "number", "double": "number", "bool": "boolean",
}  # fmt: skip


def pool_of(function: str) -> str | None:
    """The texts that mean something to the function's string argument."""
    if function.startswith("get"):
        return "zone"
    return _POOL_OF.get(function)


_ESCAPES = (
    r"\n",
    r"\t",
    r"\x41",
    r"\u00e9",
    r"\U0001F41F",
    r"\101",
    r"\\",
    r"\"",
    r"\'",
    r"\?",
    r"\a",
)
_BAD_ESCAPES = (r"\q", r"\x4", r"\u12", r"\ud800", r"\U00110000", r"\400", r"\8")


def quoted(chance: Random, text: str) -> str:
    """The text as a literal in one of the language's many quotings."""
    style = chance.random()
    if style < 0.04 and "'''" not in text and "\\" not in text and not text.endswith("'"):
        return f"'''{text}'''"
    if style < 0.08 and '"' not in text and "\n" not in text and not text.endswith("\\"):
        return f'{chance.choice("rR")}"{text}"'
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
    if style < 0.4:
        return "'" + escaped.replace("'", "\\'") + "'"
    if style < 0.44:
        return '"""' + escaped.replace('"', '\\"') + '"""'
    return '"' + escaped.replace('"', '\\"') + '"'


def string(chance: Random, pool: str | None = None) -> str:
    roll = chance.random()
    if pool is not None and roll < 0.85:
        return quoted(chance, POOLS[pool].choose(chance))
    if roll < 0.03:
        escapes = _BAD_ESCAPES if chance.random() < 0.2 else _ESCAPES
        return f'"x{chance.choice(escapes)}y"'
    if roll < 0.08:
        return quoted(chance, POOLS[chance.choice(tuple(POOLS))].choose(chance))
    return quoted(chance, chance.choice(WORDS))


def bytes_literal(chance: Random) -> str:
    if chance.random() < 0.2:
        return chance.choice(('b"\\xff\\x00"', "b'\\377'", 'B"é"', 'b"\\u00e9"', 'rb"\\x"', "b''"))
    return chance.choice("bB") + quoted(chance, chance.choice(WORDS)).lstrip("rR")


def number(chance: Random, usual: tuple[str, ...]) -> str:
    return chance.choice(OUT_OF_RANGE if chance.random() < 0.005 else usual)


def integer(chance: Random) -> str:
    if chance.random() < 0.6:
        return str(chance.randint(-3, 12))
    return number(chance, INTS)
