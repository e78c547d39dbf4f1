"""Which texts are Spark SQL types that a Delta table can hold."""

from __future__ import annotations

import re
from collections.abc import Mapping

from delta_cdc.errors import nearest

SIMPLE = frozenset(
    {"tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long", "float", "real", "double"}
    | {"decimal", "dec", "numeric", "string", "binary", "boolean"}
    | {"date", "timestamp", "timestamp_ntz", "timestamp_ltz", "variant"}
)
# so many numbers in brackets at the most
_SIZED = {"decimal": 2, "dec": 2, "numeric": 2, "char": 1, "character": 1, "varchar": 1}
_LONGEST_TEXT = 2**31 - 1  # Spark counts in an int of Java's
_KNOWN = SIMPLE | set(_SIZED) | {"array", "map", "struct"}


def by_word(words_of: Mapping[str, str]) -> dict[str, str]:
    """{another system's word: Spark type}, from the words of each Spark type."""
    return {word.strip(): data_type for data_type, words in words_of.items() for word in words.split(",")}


# What people write out of habit, and Spark's word for it.
_FOREIGN = by_word(
    {
        "boolean": "bit, bool",
        "smallint": "int2, int16",
        "int": "int4, int32, mediumint, serial",
        "bigint": "int8, int64, int unsigned, bigserial",
        "float": "float4, float32",
        "double": "double precision, float8, float64",
        "decimal(19,4)": "money",
        "decimal(20,0)": "bigint unsigned",
        "decimal(38,10)": "number",
        "string": (
            "clob, character varying, interval, inet, json, jsonb, longtext, mediumtext, nchar, nvarchar, nvarchar2, "
            "text, time, tinytext, uniqueidentifier, uuid, varchar2, xml"
        ),
        "binary": "bytea, blob, long raw, longblob, raw, varbinary",
        "timestamp": (
            "datetime, datetime2, datetimeoffset, smalldatetime, timestamp with local time zone, "
            "timestamp with time zone, timestamptz"
        ),
        "timestamp_ntz": "timestamp without time zone",
    }
)
_TOKEN = re.compile(r"\s*(?:(?P<name>`(?:[^`]|``)*`|[A-Za-z_]\w*)|(?P<number>\d+)|(?P<mark>[<>(),:])|(?P<bad>\S))")


class _Unreadable(Exception):
    pass


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens = [(m.lastgroup or "", m.group(m.lastgroup or 0)) for m in _TOKEN.finditer(text)]
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def take(self, kind: str) -> str:
        if self.at >= len(self.tokens):
            raise _Unreadable("it ends too early")
        found, text = self.tokens[self.at]
        if kind not in (found, text):
            raise _Unreadable(f"`{text}` is not expected there")
        self.at += 1
        return text

    def type(self) -> None:
        word = self.take("name").lower()
        if word == "array":
            self.take("<")
            self.type()
            self.take(">")
        elif word == "map":
            self.take("<")
            key = self.peek().lower()
            if key in SIMPLE and key != "string":
                raise _Unreadable(f"the names in a map are text: `map<string, …>`, not `map<{key}, …>`")
            self.type()
            self.take(",")
            self.type()
            self.take(">")
        elif word == "struct":
            self.take("<")
            names = [self.field()]
            while self.peek() == ",":
                self.take(",")
                names.append(self.field())
            self.take(">")
            if twice := [name for place, name in enumerate(names) if name.lower() in map(str.lower, names[:place])]:
                raise _Unreadable(f"a struct has `{twice[0]}` twice (to Spark, case makes no difference)")
        elif word in _SIZED:
            self.sizes(word)
        elif word not in SIMPLE:
            better = _FOREIGN.get(word) or nearest(word, _KNOWN)
            raise _Unreadable(f"`{word}` is not one. Did you mean `{better}`?" if better else f"`{word}` is not one")

    def field(self) -> str:
        """The field's name."""
        name = self.take("name").strip("`")
        if self.peek() == ":":
            self.take(":")
        self.type()
        if self.peek().lower() == "not":
            self.take("name")
            if self.take("name").lower() != "null":
                raise _Unreadable("`not` wants `null` after it")
        if self.peek().lower() == "comment":
            raise _Unreadable("comments of fields are not taken")
        return name

    def sizes(self, word: str) -> None:
        sizes: list[int] = []
        if self.peek() == "(":
            self.take("(")
            sizes.append(int(self.take("number")))
            while self.peek() == ",":
                self.take(",")
                sizes.append(int(self.take("number")))
            self.take(")")
        elif word not in SIMPLE:
            raise _Unreadable(f"`{word}` wants a length, e.g. {word}(10)")
        if len(sizes) > _SIZED[word]:
            raise _Unreadable(f"`{word}` takes no {len(sizes)} numbers")
        if _SIZED[word] == 1 and not 1 <= sizes[0] <= _LONGEST_TEXT:
            raise _Unreadable(f"the length {sizes[0]} is not between 1 and {_LONGEST_TEXT}")
        if _SIZED[word] == 2 and sizes:
            precision, scale = sizes[0], sizes[1] if len(sizes) == 2 else 0
            if not 1 <= precision <= 38:
                raise _Unreadable(f"the precision {precision} is not between 1 and 38")
            if scale > precision:
                raise _Unreadable(f"the scale {scale} is above the precision {precision}")


def why_not_a_type(text: str) -> str | None:
    """None if `text` is a type, else what is wrong with it."""
    # as another database writes it: its words, and its sizes, which stay where Spark's type has such
    words = " ".join(re.sub(r"\([^)]*\)", " ", text).lower().split())
    size = re.search(r"\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", text)
    if words == "number" and size:
        return f"`{text}` is not one. Did you mean `decimal({size[1]},{size[2] or 0})`?"
    if words in _FOREIGN:
        return f"`{text}` is not one. Did you mean `{_FOREIGN[words]}`?"
    if words in SIMPLE - set(_SIZED) and size:  # MySQL's widths; a float of more than 24 bits is no float of Spark's
        better = "double" if words == "float" and size[2] is None and int(size[1]) > 24 else words
        return f"`{text}` is not one. Did you mean `{better}`?"
    if words.startswith("timestamp") and "(" in text:
        return f"`{text}` is not one. Did you mean `{words}`?"
    if words == "varchar" and "(" in text and size is None:
        return f"`{text}` is not one. Did you mean `string`?"
    parser = _Parser(text)
    try:
        parser.type()
        if parser.at < len(parser.tokens):
            raise _Unreadable(f"`{parser.peek()}` is not expected there")
    except _Unreadable as unreadable:
        return str(unreadable).rstrip(".")
    return None


def can_be_compared(data_type: str) -> bool:
    """Whether two values of this type can be told to be equal: maps and variants cannot, nor what holds one."""
    return not re.search(r"\bmap\s*<|\bvariant\b(?!\s*:)", data_type, re.IGNORECASE)


def has_statistics(data_type: str) -> bool:
    """Whether Delta keeps the lowest and the highest value that a file has of a column of this type."""
    return not re.match(r"\s*(binary|boolean|variant|array|map|struct)\b", data_type, re.IGNORECASE)
