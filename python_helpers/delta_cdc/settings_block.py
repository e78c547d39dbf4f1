"""A `cdc:` block as written: are its settings known, in their place and of the right type?"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from delta_cdc.errors import did_you_mean, nearest
from delta_cdc.settings import (
    CsvOptions,
    Jdbc,
    Kafka,
    Settings,
    setting_level,
    setting_meant,
    settings_naming_columns,
    wants,
    which_setting,
)
from delta_cdc.source_files import Lined, Renderer, is_template

LANDED_BY: Mapping[str, Any] = {"kafka": Kafka, "jdbc": Jdbc}
_WITH_OPTIONS: Mapping[str, Any] = {**LANDED_BY, "csv_options": CsvOptions}
_WANTS_QUOTES = " Between braces, a text with a comma wants quotes."
_YML_READS = " Yml reads yes and on as true, no and off as false: quote what is text."
_VARIABLE = re.compile(r"\$\{[A-Za-z_]\w*\}")
_SECRET = re.compile(r"password|secret", re.IGNORECASE)
# in a URL, or in what Kafka's client takes as `sasl.jaas.config`
_SECRET_IN_TEXT = re.compile(
    r"(password|secret)\s*=(?!\s*[\"']?\$\{)|://[^/@:]*:(?!\$\{)[^/@]*@|:thin:[^/@:]*/(?!\$\{)[^/@]+@|PRIVATE KEY", re.IGNORECASE
)


def is_plain_secret(option: str, value: Any) -> bool:
    """Whether an option of Kafka or JDBC holds a secret that is not taken from the environment (`${NAME}`)."""
    return bool((_SECRET.search(option) and not _VARIABLE.search(str(value))) or _SECRET_IN_TEXT.search(str(value)))


def shown(value: object) -> str:
    """A value as a person wrote it, shortened."""
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif value is None:
        text = "empty"
    elif isinstance(value, str):
        text = "'" + re.sub(r"[\x00-\x1f\x7f]", lambda sign: repr(sign[0])[1:-1], value) + "'"
    elif isinstance(value, list):
        text = f"[{', '.join(shown(item) for item in value)}]"
    elif isinstance(value, dict):
        text = "{" + ", ".join(f"{k if isinstance(k, str) else shown(k)}: {shown(v)}" for k, v in value.items()) + "}"
    else:
        text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."


@dataclass
class Block:
    """A `cdc:` block as written: its settings that are of the right type, and the names of those that are not."""

    file: str
    line: int | None = None
    given: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)


def read_settings(raw: Lined, block: Block, here: str, renderer: Renderer, tell: Callable[[str, int | None], None]) -> None:
    """Take the settings into the block whose names and types are right.

    here: `feed` or `table`, whose block it is. tell: gets what is wrong, and its line.
    """
    block.lines = {str(key): at for key, at in raw.lines.items()}
    elsewhere = "feed" if here == "table" else "table"

    def problem(name: str, message: str) -> None:
        block.broken.add(name)
        tell(message, block.lines.get(name))

    for key, at in raw.twice.items():
        tell(f"`{key}` is given twice. Keep one.", at)
    for before, (key, value) in zip([None, *raw], raw.items(), strict=False):
        name = str(key)
        in_any_case = name in settings_naming_columns()
        for twice, at in _given_twice(value, in_any_case):
            same = " (names that differ only in case are one name to Spark)" if in_any_case and twice not in value.twice else ""
            tell(f"`{name}` has `{twice}` twice{same}, and one is lost. Keep one.", at)
        if before is not None and _is_rest(key, value):
            block.given.pop(str(before), None)
            problem(str(before), f"`{before}` ends at a comma, and `{name}` is read as a setting.{_WANTS_QUOTES}")
        elif isinstance(key, bool):
            problem(name, f"setting `{shown(key)}` is not known.{_YML_READS}")
        elif name not in Settings.model_fields:
            close = setting_meant(name)
            block.broken |= {close} if close else set()
            problem(name, f"setting `{name}` is not known. {which_setting(name)}")
        elif setting_level(name) == elsewhere:
            problem(name, f"`{name}` is a setting of the {elsewhere}, not of the {here}. Move it there.")
        else:
            try:
                block.given[name] = renderer.render(value)
            except ValueError as error:
                problem(name, f"`{name}`: {error}.")
    for name, inner in _wrong_types(block.given).items():
        value = block.given.pop(name)
        if name in LANDED_BY and isinstance(value, dict):  # it may hold a secret: only what is wrong in it is shown
            for message in (f"`{name}` is not right. It takes {wants(name)}.{inner}", *plain_secrets(name, value)):
                problem(name, message)
            continue
        better = inner or _better_value(name, value)
        if isinstance(value, str) and isinstance(raw.get(name), str) and is_template(raw[name]):
            better += " What a template gives is text: end it with `| as_bool`, `| as_number` or `| as_native`."
            if "as_native" in raw[name]:
                better = " `| as_native` takes what Python writes, e.g. ['a', 'b'] or {'a': 'b'}; all else stays text."
        problem(name, f"`{name}` is {shown(value)}. It takes {wants(name)}.{better}")


def _is_rest(key: Any, value: Any) -> bool:
    """Whether a key of a mapping in braces is what stands behind the comma of an expression: `{x: coalesce(a, 0)}` has `0)`."""
    return value is None and bool(re.search(r"[()=<>'\"]", str(key)))


def _holds_flag(value: Any) -> bool:
    """Whether a list or a mapping holds true or false."""
    items = [*value, *value.values()] if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return any(isinstance(item, bool) or _holds_flag(item) for item in items)


def _given_twice(value: Any, in_any_case: bool) -> Iterator[tuple[str, int]]:
    """The keys that a mapping, or one in it, has twice, each with its line. in_any_case: they are names of columns."""
    if not isinstance(value, Lined):
        return
    yield from value.twice.items()
    spelled: dict[str, Any] = {}
    for key, line in value.lines.items():
        if in_any_case and spelled.setdefault(str(key).lower(), key) != key:
            yield key, line
    for inner in value.values():
        yield from _given_twice(inner, in_any_case)


def _wrong_types(given: Mapping[str, Any]) -> dict[str, str]:
    """The settings that are of the wrong type, each with what is wrong inside of it, if anything is."""
    try:
        Settings.model_validate(given)
    except ValidationError as error:
        wrong: dict[str, str] = {}
        for detail in error.errors():
            name = str(detail["loc"][0])
            told = _inside(detail)
            wrong[name] = wrong.get(name, "") + ("" if told in wrong.get(name, "") else told)
        return wrong
    return {}


def plain_secrets(name: str, landed: Mapping[str, Any]) -> Iterator[str]:
    """What `kafka` or `jdbc` says that only the environment should."""
    remedy = "in plain text. Put it into the environment, and `${NAME}` here."
    options = landed.get("options")
    for option, value in options.items() if isinstance(options, Mapping) else ():
        if is_plain_secret(str(option), value):
            yield f"`{name}.options` has `{option}` {remedy}"
    for url in ("url", "schema_registry"):
        if _SECRET_IN_TEXT.search(str(landed.get(url, ""))):
            yield f"`{name}.{url}` has a password {remedy}"


def _inside(detail: Mapping[str, Any]) -> str:
    """What is wrong inside of `kafka`, `jdbc` or `csv_options`, a sentence with a space before it; nothing for other settings."""
    name, *inside = (str(part) for part in detail["loc"])
    if name not in _WITH_OPTIONS or not inside:
        return ""
    if inside[-1] == "[key]":
        return f" `{name}.{inside[0]}` names {shown(detail['input'])}, which is no text. Quote it."
    is_option = inside[0] == "options" and len(inside) > 1
    inside = inside[:2] if is_option else inside  # behind its name stands a type of those that it may have
    place = ".".join((name, *inside))
    if detail["type"] == "extra_forbidden":
        return f" `{place}` is not known. {did_you_mean(inside[-1], _WITH_OPTIONS[name].__annotations__)}"
    if detail["type"] == "missing":
        return f" `{place}` is missing."
    is_secret = is_plain_secret(inside[-1], detail["input"])
    takes = " It takes text, a whole number, true or false." if is_option else ""
    return f" `{place}` is {'no text' if is_secret else shown(detail['input'])}.{takes}"


def _better_value(name: str, value: object) -> str:
    """What a value of the wrong type was probably meant to be: a sentence with a space before it, or nothing."""
    if isinstance(value, Mapping) and any(_is_rest(key, inner) for key, inner in value.items()):
        return _WANTS_QUOTES
    if _holds_flag(value) and name not in _WITH_OPTIONS:
        return _YML_READS
    annotation = str(Settings.model_fields[name].annotation)
    if isinstance(value, str) and annotation.startswith("list["):
        return f" Write [{value}]." if len(value) <= 60 else " Write it in brackets."
    if annotation.startswith("typing.Literal") and isinstance(value, str):
        close = nearest(value, re.findall(r"'([^']+)'", annotation))
        return f" Did you mean `{close}`?" if close else ""
    return ""
