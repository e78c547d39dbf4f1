"""What can be told of an SQL expression without Spark: whether it is a name, whether its quotes and brackets are closed, and
which names in it must be columns. Whatever is not sure to be a column's name is left to Spark."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
IN_BACKTICKS = re.compile(r"`((?:[^`]|``)+)`")
_TOKEN = re.compile(
    r"""(?P<text>\b[rR]'[^']*'|\b[rR]"[^"]*"|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
      | (?P<gap>--[^\n]*|/\*.*?\*/|\s+)
      | (?P<number>\d[\w.]*)
      | (?P<ticked>`(?:[^`]|``)+`)
      | (?P<name>[^\W\d]\w*)
      | (?P<sign>->|=>|::|.)""",
    re.VERBOSE | re.DOTALL,
)
# words of expressions, and units of time, also as `extract`, `timestampdiff` and `interval` have them
_WORD = re.compile(
    r"""all|and|any|array|as|at|between|binary|both|case|cast|current|distinct|div|else|end|escape|exists|false|filter|following
      |for|from|group|ignore|ilike|in|interval|is|leading|like|map|mod|named_struct|not|nulls?|or|order|partition|placing|preceding
      |range|regexp|respect|rlike|rows?|some|struct|then|to|trailing|true|unbounded|using|when|where|within|without|zone|first|last
      |current_(catalog|database|date|schema|time|timestamp|user)|localtimestamp|session_user|user|time|epoch|dow|doy|iso(dow|year)
      |dayof(week|year)|yearofweek|(year|quarter|month|week|day|hour|minute|second|(milli|micro|nano)second)s?""",
    re.VERBOSE,
)
# of what follows these the names may be others than columns: tables, collations, fields of a type
_NOT_LOOKED_INTO = {"collate", "over", "select", "with"}
_LACKS_AN_END = {*"=<>+-*/%,|&", "and", "or", "not"}
_CLOSED_BY = {"(": ")", "[": "]", "{": "}"}


def unquoted(expression: str) -> str | None:
    """The name that an SQL expression consists of, or None if it is more than a name.

    >>> unquoted("lsn"), unquoted("`commit time`"), unquoted("a + b")
    ('lsn', 'commit time', None)
    """
    quoted = IN_BACKTICKS.fullmatch(expression.strip())
    if quoted:
        return quoted[1].replace("``", "`")
    return expression.strip() if IDENTIFIER.fullmatch(expression.strip()) else None


def sql_name(name: str) -> str:
    return name if IDENTIFIER.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def why_not_sql(sql: str) -> str | None:
    """What is not closed or lacks its end in an SQL expression, or that more or something else stands there; None where nothing
    is known against it.

    >>> why_not_sql("op = 'D"), why_not_sql("coalesce(a, b"), why_not_sql("a = ')'"), why_not_sql("a and")
    ("a quote (') is not closed", '`(` is not closed', None, 'it ends with `and`')
    >>> why_not_sql("größe > '…' or `…` = 1")
    """
    open_: list[str] = []
    tokens = list(_tokens(sql))
    for kind, text in tokens:
        if kind == "name" and text.lower() == "as" and not open_ and len(tokens) > 1:
            return "`as` gives a name, which has no place here"
        if kind != "sign":
            continue
        if text in "'\"`":
            return f"a quote ({text}) is not closed"
        if text in _CLOSED_BY:
            open_.append(text)
        elif text in _CLOSED_BY.values() and (not open_ or _CLOSED_BY[open_.pop()] != text):
            return f"`{text}` closes nothing"
        elif text == ";":
            return "`;` ends a statement, and it takes an expression"
        elif not text.isascii():  # what a word processor makes of quotes
            sign = text if text.isprintable() else ascii(text)[1:-1]
            return f"`{sign}` is no sign of SQL: texts stand in ' and names in backticks"
    if open_:
        return f"`{open_[-1]}` is not closed"
    if any(match[0].startswith("--") and match.end() == len(sql) for match in _TOKEN.finditer(sql)):
        return "`--` hides what the table's SQL has behind it. Write the comment into the yml"
    if len(tokens) > 1 and tokens[0][1].lower() == "select":
        return "`select` makes a statement, and it takes an expression"
    last = tokens[-1][1] if tokens else ""
    return f"it ends with `{last}`" if len(tokens) > 1 and last.lower() in _LACKS_AN_END else None


def is_several(sql: str) -> bool:
    """Whether it is sure that commas part several expressions.

    >>> is_several("a, b"), is_several("coalesce(a, b)"), is_several("a = 'b, c'"), is_several("a::map<string, int>")
    (True, False, False, False)
    """
    tokens = list(_tokens(sql))
    depth = 0
    for kind, text in tokens if not _names_nested_type([text.lower() for _, text in tokens]) else ():
        if kind == "sign":
            depth += (text in _CLOSED_BY) - (text in _CLOSED_BY.values())
            if text == "," and not depth:
                return True
    return False


def parted_at_commas(expressions: Sequence[str]) -> dict[int, str]:
    """The expressions of a list that yml parted at their commas, as it does with what is not quoted: each place, and the whole.

    >>> parted_at_commas(["a", "coalesce(b", "0)"]), parted_at_commas(["f(a", "b"])
    ({1: 'coalesce(b, 0)', 2: 'coalesce(b, 0)'}, {})
    """
    wholes: dict[int, str] = {}
    for first, expression in enumerate(expressions):
        if first in wholes or not _is_open(expression):
            continue
        for end in range(first + 2, len(expressions) + 1):
            if not _is_open(whole := ", ".join(expressions[first:end])):
                wholes |= dict.fromkeys(range(first, end), whole)
                break
    return wholes


def _is_open(sql: str) -> bool:
    return (why_not_sql(sql) or "").endswith("is not closed")


def names_in(sql: str) -> list[str]:
    """The names in an SQL expression that must be columns, each once: not functions, fields behind a dot, aliases, types,
    words of SQL or the parameters of a lambda.

    >>> names_in("coalesce(a.b, `c d`, cast(e as decimal(3, 1))) > date '2026-01-01' and exists(f, x -> x = g)")
    ['a', 'c d', 'e', 'f', 'g']
    """
    tokens = list(_tokens(sql))
    words = [text.lower() for _, text in tokens]
    if _NOT_LOOKED_INTO & {word for word, (kind, _) in zip(words, tokens, strict=True) if kind == "name"}:
        return []
    if _names_nested_type(words):
        return []
    bound = set(_lambda_parameters(words))
    found = []
    for place, (kind, text) in enumerate(tokens):
        if kind not in ("name", "ticked"):
            continue
        before, after = words[place - 1] if place else "", words[place + 1] if place + 1 < len(words) else ""
        is_typed_text = kind == "name" and place + 1 < len(words) and tokens[place + 1][0] == "text"
        is_function = kind == "name" and (after == "(" or _is_function_behind_dots(words, place))
        is_part_of_time = words[max(place - 2, 0) : place] == ["extract", "("]
        is_no_column = before in (".", "as", ":", "::") or after == "=>" or is_typed_text or is_function or is_part_of_time
        if is_no_column or words[place] in bound or (kind == "name" and _WORD.fullmatch(words[place])):
            continue
        found.append(text[1:-1].replace("``", "`") if kind == "ticked" else text)
    return list(dict.fromkeys(found))


def names_none_of(sql: str, columns: Collection[str]) -> bool:
    """Whether it is sure that an SQL expression names no column. columns: those that there are, in lower case; their names may be
    words of SQL too.

    >>> names_none_of('"at"', ["at"]), names_none_of("cast(date as int)", ["date"]), names_none_of("(select max(x) from t)", [])
    (True, False, False)
    """
    words = [text.strip("`").lower() for kind, text in _tokens(sql) if kind in ("name", "ticked")]
    return not names_in(sql) and _NOT_LOOKED_INTO.isdisjoint(words) and not set(words) & set(columns)


def _tokens(sql: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(sql):
        if match.lastgroup != "gap":
            yield str(match.lastgroup), match[0]


def _names_nested_type(words: list[str]) -> bool:
    return any(word in ("array", "map", "struct") and after == "<" for word, after in pairwise(words))


def _lambda_parameters(words: list[str]) -> Iterator[str]:
    for place, word in enumerate(words):
        if word == "->" and place and words[place - 1] != ")":
            yield words[place - 1]
        elif word == "->" and "(" in words[:place]:
            start = place - words[:place][::-1].index("(")
            yield from words[start : place - 1]


def _is_function_behind_dots(words: list[str], place: int) -> bool:
    """`db.name(`, and not `column.field`."""
    while words[place + 1 : place + 2] == ["."]:
        place += 2
    return words[place + 1 : place + 2] == ["("]
