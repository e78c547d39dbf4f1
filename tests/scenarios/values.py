"""Rows of a table beside those that a file expects: each value in one spelling, by the type that the table gives it.

Files write numbers with or without a point or as text, moments with or without a zone, bytes as hexadecimal, text, base64 or a
list of numbers, structures as JSON or as its text; so each value is spelled by the Python type of what was found in its place.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from pyspark.sql.types import VariantVal

from delta_cdc.errors import nearest

Rows = Sequence[Mapping[str, Any]]
# The names by which files say what a case is and where it is from.
ABOUT = ("name", "source", "commit", "test", "description", "note", "title", "comment", "url", "license", "rule", "since")
MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d)(:\d\d)?(?:\.(\d{1,9}))?)? ?(Z|UTC|[+-]\d\d(?::?\d\d)?)?")


class Map(dict[Any, Any]):
    """A map that was found: a key of it that holds null is not one that is absent, as a field of a structure is."""


def read_exactly(path: Path, fields: Sequence[str]) -> dict[str, Any]:
    """A file's JSON object, with all digits of the decimals in these of its fields."""
    text = path.read_text("utf-8-sig")
    exact = json.loads(text, parse_float=Decimal)
    return dict(json.loads(text) | {name: exact[name] for name in fields if name in exact})


def refuse_misspelled(given: Iterable[str], known: Collection[str]) -> None:
    """Raises ValueError for a name that is meant for a known one: without it the case would be another. What else a file tells of
    itself is passed over."""
    for name in given:
        close = None if name in known else nearest(name, {*known, *ABOUT}, likeness=0.85)
        if close is not None and close not in ABOUT:
            raise ValueError(f"`{name}` is no setting, nor a field of a case. Did you mean `{close}`?")


def exact_json(value: Any) -> str:
    """JSON with all digits of its decimals."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(k)}: {exact_json(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(exact_json, value)) + "]"
    return _digits(value) if isinstance(value, Decimal) else json.dumps(value)


def _digits(number: Decimal) -> str:
    """A number as files write it: `str` gives small ones an exponent, and of such a number some 17 digits are read."""
    return f"{number:f}" if -38 < number.adjusted() < 0 else str(number)


def difference(expected: Rows, found: Rows) -> str | None:
    """The rows that are expected and not there (-), and those that are there and not expected (+); None if they are equal.

    A column that a row does not name is null in it.
    """
    columns = sorted({name for rows in (expected, found) for row in rows for name in row})
    like = {name: _example([row.get(name) for row in found]) for name in columns}
    for name, each in like.items():
        known = set(_bytes_in([row.get(name) for row in found]))
        expected = [{**row, name: _with_bytes(row[name], each, known)} if known and name in row else row for row in expected]
    for name in [name for name, each in like.items() if isinstance(each, VariantVal)]:
        texts = {spelled(row.get(name), like[name]) for row in found}  # a text in a variant may look like JSON: "5", "true"
        expected = [{**row, name: json.dumps(row[name])} if _is_text_of(texts, row.get(name)) else row for row in expected]
    for name in [name for name, each in like.items() if isinstance(each, str)]:  # a structure, and the text of it
        found_as = {_json(told): row[name] for row in found if isinstance(told := _parsed(row.get(name)), (Mapping, list))}
        expected = [{**row, name: found_as.get(_json(row[name]), row[name])} if name in row else row for row in expected]
    wanted, got = (
        Counter(tuple(json.dumps(spelled(row.get(name), like[name]), ensure_ascii=False) for name in columns) for row in rows)
        for rows in (expected, found)
    )
    said = ""
    for sign, rows in (("-", wanted - got), ("+", got - wanted)):
        for row in rows.elements():
            said += f"  {sign} " + ", ".join(f"{name}: {value}" for name, value in zip(columns, row, strict=True)) + "\n"
    return said or None


def spelled(value: Any, like: Any) -> Any:
    """A value as JSON can hold it, in the one spelling of values such as `like`, which was found in the same place."""
    if value is None:
        return None
    if isinstance(like, VariantVal):
        return _json(_parsed(str(value) if isinstance(value, VariantVal) else value))
    if isinstance(like, Mapping):
        value = _parsed(value)
        if not isinstance(value, Mapping):
            return value
        key = next(iter(like), None)  # of a map it may be other than text, which JSON tells as text
        fields = () if isinstance(like, Map) else like
        value, fields, like = ({str(spelled(n, key)): each[n] for n in each} if each else {} for each in (value, fields, like))
        return {name: spelled(value.get(name), like.get(name)) for name in sorted({*value, *fields})}
    if isinstance(like, list):
        value = _parsed(value)
        return [spelled(each, like[0] if like else None) for each in value] if isinstance(value, list) else value
    if isinstance(like, bool):
        return {"t": "true", "1": "true", "f": "false", "0": "false"}.get(str(value).lower(), str(value).lower())
    if isinstance(like, (int, float, Decimal)):
        return _number(_double(value) if isinstance(like, float) else value)
    if isinstance(like, (bytes, bytearray)):
        return _hexadecimal(value)
    if isinstance(like, datetime):
        return _moment(value)
    if isinstance(like, date):
        days = _moment(value).removesuffix(" 00:00:00")
        return str(date(1970, 1, 1) + timedelta(int(days))) if days.lstrip("-").isdigit() else days
    if isinstance(value, Decimal):
        return _digits(value)
    return value if isinstance(value, str) else json.dumps(value, default=str, sort_keys=True, ensure_ascii=False)


def _example(values: Sequence[Any]) -> Any:
    """A value such as these, which are of one type, with all that they have inside."""
    known = sorted((value for value in values if value is not None), key=lambda value: isinstance(value, str))  # moments first
    if not known:
        return None
    if isinstance(known[0], Mapping):
        names = {name for value in known for name in value}
        example = {name: _example([value.get(name) for value in known]) for name in names}
        return Map(example) if isinstance(known[0], Map) else example
    if isinstance(known[0], list):
        return [_example([each for value in known for each in value])]
    return known[0]


def _is_text_of(known: Collection[Any], value: Any) -> bool:
    """Whether a value is a text that is among these, which are spelled."""
    return isinstance(value, str) and _json(value) in known


def _json(value: Any) -> str:
    """JSON with each number, and each object, in one spelling."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(name)}: {_json(value[name])}" for name in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_json, value)) + "]"
    return json.dumps(value) if value is None or isinstance(value, (bool, str)) else _number(value)


def _parsed(value: Any) -> Any:
    try:
        return json.loads(value, parse_float=Decimal) if isinstance(value, str) else value
    except ValueError:
        return value


def _number(value: Any) -> str:
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return str(value)
    if not number.is_finite():
        return str(number)
    text = format(number, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def _double(value: Any) -> Any:
    """A number as a double holds it: a file may have more digits of it."""
    try:
        return float(value)
    except (ValueError, TypeError, OverflowError):
        return value


def _bytes_in(value: Any) -> Iterator[str]:
    """All bytes in a value, in hexadecimal."""
    if isinstance(value, (bytes, bytearray)):
        yield _hexadecimal(value)
    elif isinstance(value, (Mapping, list)):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _bytes_in(each)


def _with_bytes(value: Any, like: Any, known: Collection[str]) -> Any:
    """A value with each text that stands where bytes were found as `_one_of` these."""
    if isinstance(like, (bytes, bytearray)):
        return _one_of(known, value) if isinstance(value, str) else value
    if isinstance(like, (Mapping, list)):
        value = _parsed(value)
    if isinstance(like, Mapping) and isinstance(value, Mapping):
        return {name: _with_bytes(each, like.get(name), known) for name, each in value.items()}
    if isinstance(like, list) and isinstance(value, list):
        return [_with_bytes(each, like[0] if like else None, known) for each in value]
    return value


def _one_of(known: Collection[str], text: str) -> str:
    """Bytes as that of the known ones (hexadecimal) which a text tells in hexadecimal, as it stands (so `rows` reads it) or in
    base64; else the text."""
    readings = [_hexadecimal(text), text.encode().hex()]
    with suppress(ValueError):
        readings.append(base64.b64decode(text, validate=True).hex())
    return next((each for each in readings if each in known), text)


def _hexadecimal(value: Any) -> str:
    """Bytes; their hexadecimal, also as PostgreSQL writes it; or a list of them, as Java's signed numbers."""
    value = _parsed(value) if str(value).startswith("[") else value
    if isinstance(value, list):
        return bytes(each & 255 for each in value).hex()
    return bytes(value).hex() if isinstance(value, (bytes, bytearray)) else str(value).removeprefix("\\x").lower()


def _moment(value: Any) -> str:
    """A moment in UTC to the microsecond; other texts as they are."""
    if isinstance(value, datetime):
        return str(value)
    parts = MOMENT.fullmatch(str(value).strip())
    if parts is None:
        return str(value)
    day, minute, second, fraction, zone = parts.groups()
    try:
        moment = datetime.fromisoformat(f"{day} {minute or '00:00'}{second or ':00'}.{(fraction or '')[:6]:0<6}")
    except ValueError:  # none of Python's
        return str(value).replace("T", " ")
    if zone and zone[0] in "+-":
        hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
        moment -= (1 if zone[0] == "+" else -1) * timedelta(hours=hours, minutes=minutes)
    return str(moment)
