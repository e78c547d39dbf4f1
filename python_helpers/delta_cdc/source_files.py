"""The yml files of a dbt project that hold sources, with the line of every key, and without dbt.

A wrong file must give one clear sentence before anything is started, so the files are read here as text.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import jinja2
import yaml
from jinja2.nativetypes import NativeEnvironment, NativeTemplate
from pathspec import PathSpec

from delta_cdc.errors import Problem, ProjectError


class Lined(dict[Any, Any]):
    """A yml mapping that knows the line of each of its keys, and which keys were written twice."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[Any, int] = {}
        self.twice: dict[Any, int] = {}


class _Loader(yaml.SafeLoader):
    pass


def _construct_mapping(loader: _Loader, node: yaml.MappingNode) -> Iterator[Lined]:
    result = Lined()
    yield result
    own = [key.value for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
    loader.flatten_mapping(node)
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, Hashable):
            raise yaml.constructor.ConstructorError(None, None, "a key must be a word", key_node.start_mark)
        line = key_node.start_mark.line + 1
        value = loader.construct_object(value_node, deep=True)
        if key in result and own.count(key_node.value) > 1:
            result.twice[key] = line
            if isinstance(value, list) and isinstance(result[key], list):  # one mistake: what names the first's is right
                value = [*(each for each in result[key] if each not in value), *value]
        result[key] = value
        result.lines[key] = line


def _construct_timestamp(loader: _Loader, node: yaml.ScalarNode) -> Any:
    try:
        return loader.construct_yaml_timestamp(node)
    except ValueError as error:
        what = f"{error}: {node.value}. Quote it, if it is text"
        raise yaml.constructor.ConstructorError(None, None, what, node.start_mark) from None


_Loader.add_constructor("tag:yaml.org,2002:map", _construct_mapping)
_Loader.add_constructor("tag:yaml.org,2002:timestamp", _construct_timestamp)


def content_of(text: str) -> Any:
    """What a yml text says, its mappings as `Lined`. Raises yaml.YAMLError."""
    return yaml.load(text, Loader=_Loader)


@dataclass(frozen=True)
class SourceFile:
    """One yml file with `sources:`; `path` is relative to the project."""

    path: str
    content: Lined


@dataclass(frozen=True)
class DbtProject:
    """What dbt_project.yml says that matters here."""

    root: Path
    name: str
    model_paths: tuple[str, ...]
    macro_paths: tuple[str, ...]
    variables: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, Any] = field(default_factory=dict)

    def enabled(self, file: str, source: str, table: str) -> Any:
        """What its `sources:` say of a table of a source in a file: `enabled` as written; None if nothing."""
        top = max((path for path in self.model_paths if Path(file).is_relative_to(path)), key=len, default="")
        found: Any = None
        level: Any = self.sources
        for name in ("", self.name, *Path(file).relative_to(top).parts[:-1], source, table):
            level = level.get(name) if name else level
            if not isinstance(level, dict):
                break
            told = {str(key).removeprefix("+").strip(): value for key, value in level.items()}.get("enabled")
            found = found if told is None or isinstance(told, dict) else told
        return found


def read_project(root: Path) -> DbtProject:
    path = root / "dbt_project.yml"
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except OSError as error:
        raise ProjectError(
            f"There is no dbt project in {root}: dbt_project.yml cannot be read. Go to the project's folder, or name it with "
            "--project-dir."
        ) from error
    except (yaml.YAMLError, ValueError) as error:  # also a date that is none, and what is not UTF-8
        raise ProjectError(f"dbt_project.yml is not valid yml: {one_line(error)}") from error
    if not isinstance(content, dict) or not isinstance(content.get("name"), str):
        raise ProjectError(f"dbt_project.yml in {root} gives the project no `name`. Write one, e.g. name: my_project.")
    name = content["name"]
    given = content.get("vars") or {}
    variables = dict(given) if isinstance(given, dict) else {}  # also what stands under a package's name: to dbt that is a value
    if isinstance(given, dict) and isinstance(given.get(name), dict):
        variables |= given[name]
    return DbtProject(
        root=root,
        name=name,
        model_paths=_folders(content, "model-paths", "models"),
        macro_paths=_folders(content, "macro-paths", "macros"),
        variables=variables,
        sources=content["sources"] if isinstance(content.get("sources"), dict) else {},
    )


def _folders(content: dict[str, Any], key: str, default: str) -> tuple[str, ...]:
    given = content.get(key) or [default]
    if not isinstance(given, list) or not all(isinstance(folder, str) for folder in given):
        raise ProjectError(f"dbt_project.yml: `{key}` is {given!r}. It takes a list of folders: [{default}].")
    return tuple(Path(folder).as_posix() for folder in given)  # `./models/` is `models`: paths below it are compared as text


def one_line(error: Exception) -> str:
    """A yml error without its excerpt: «line 3, column 5: what».

    >>> one_line(ValueError("a\\n  b"))
    'a b'
    """
    if isinstance(error, yaml.MarkedYAMLError) and error.problem:
        mark = error.problem_mark
        at = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        return f"{at}{error.problem}"
    return " ".join(str(error).split())


def read_source_files(project: DbtProject, problems: list[Problem]) -> list[SourceFile]:
    """Every yml file under the model paths that dbt reads and that has `sources:`. What cannot be read becomes a problem, and so
    do settings without sources."""
    files = []
    passed_over = _passed_over_by_dbt(project.root)
    for folder in project.model_paths:
        base = project.root / folder
        for path in sorted([*base.rglob("*.yml"), *base.rglob("*.yaml")]):
            name = Path(os.path.relpath(path, project.root)).as_posix()
            if passed_over(name):
                continue
            try:
                text = path.read_text(encoding="utf-8")
            except OSError as error:
                problems.append(Problem(f"the file cannot be read: {one_line(error)}.", file=name))
                continue
            except UnicodeDecodeError as error:
                problems.append(Problem(f"the file is not UTF-8 ({one_line(error)}). Save it as UTF-8.", file=name))
                continue
            if not re.search(r"\b(sources|cdc)[\"']?\s*:", text):
                continue
            try:
                content = content_of(text)
            except (yaml.YAMLError, ValueError) as error:  # ValueError: not what its tag says
                what, line = _why_no_yml(error, text)
                problems.append(Problem(f"this is not valid yml: {what}", file=name, line=line))
                continue
            if isinstance(content, Lined) and "sources" in content:
                files.append(SourceFile(name, content))
            elif block := next(blocks_in(content), None):
                holder, key = block
                message = "`cdc` is not read here: the file has no `sources:`. Settings belong to a source, as in "
                message += "sources: [{name: …, config: {meta: {cdc: …}}, tables: […]}]."
                problems.append(Problem(message, file=name, line=holder.lines[key]))
    return files


_TABS = "Yml is indented with blanks, not with tabs."
# What a parser of yml says, and what has mostly been written then.
_MOSTLY = {
    "found unexpected end of stream": "A quote that begins in this line is not closed.",
    "expected ',' or .*<stream end>": "A brace or bracket that begins in this line is not closed.",
    "expected ',' or ": "A text between braces or brackets that holds a comma, a colon, a bracket or a quote wants quotes.",
    "expected <block end>": "Indent it as what stands beside it; or a quote or bracket above is not closed where it should be.",
    "mapping values are not": "Indent it as what stands beside it; a text that holds a colon wants quotes.",
    r"found character '\\t'": _TABS,
    "found character '[`@%]'": "A text that begins with it wants quotes.",
    "found unknown escape": "Between single quotes a backslash stands for itself; between double ones it is written twice.",
    "but found another": "A file holds one document: take out the `---` between them.",
}


def _why_no_yml(error: Exception, text: str) -> tuple[str, int | None]:
    """What is wrong with a text that is no yml, in sentences, and its line, if that is known."""
    if isinstance(error, yaml.reader.ReaderError):
        sign = f"it holds a character that nobody sees ({error.character:#06x}), which yml does not take. Take it out."
        return sign, text.count("\n", 0, error.position) + 1
    what = getattr(error, "problem", None) or one_line(error)
    mark, began = getattr(error, "problem_mark", None), getattr(error, "context_mark", None)
    if "end of stream" in what or "<stream end>" in what:  # where it began is of more help
        mark = began or mark
    line = mark.line + 1 if mark else None
    excerpt = text.splitlines()[line - 1] if line and line <= len(text.splitlines()) else ""
    if re.match(r" *\t", excerpt):
        hint = _TABS
    elif re.search(r"\{\{|\{table\}|\$\{", re.sub(r"'[^']*'|\"[^\"]*\"", "", excerpt)):
        hint = "A text with braces wants quotes."
    elif what.startswith("expected ',' or ") and began and mark and began.line < mark.line:
        hint = f"A brace or bracket that begins in line {began.line + 1} is not closed, or a text in it wants quotes."
    else:
        hint = next((told for said, told in _MOSTLY.items() if re.match(said, what)), "")
    return f"{what}. {hint}".rstrip(), line


def _passed_over_by_dbt(root: Path) -> Callable[[str], bool]:
    """Whether dbt does not look at a file, by its path relative to the project: `.#` and `._` before the names of others are what
    editors and macOS leave beside them, and there is what .dbtignore names."""
    lines: list[str] = []
    with suppress(OSError, UnicodeDecodeError):
        lines = (root / ".dbtignore").read_text(encoding="utf-8").splitlines()
    ignored = PathSpec.from_lines("gitwildmatch", lines)  # as dbt reads it
    return lambda name: name.rpartition("/")[2][0] in ".#~" or ignored.match_file(name)


def metas_of(node: Mapping[str, Any]) -> tuple[Any, Any]:
    """What a source or table has under `meta`, and what under `config: meta`: the second counts where both have a `cdc`."""
    config = node.get("config")
    return node.get("meta"), config.get("meta") if isinstance(config, dict) else None


def blocks_in(node: Any, but: str = "") -> Iterator[tuple[Lined, Any]]:
    """Every mapping that stands under `cdc`, however that is spelled, at any depth: what holds it, and its key. but: a key of the
    node where not to look."""
    for key, value in node.items() if isinstance(node, Lined) else enumerate(node) if isinstance(node, list) else ():
        if isinstance(value, Lined) and str(key).casefold() == "cdc":
            yield node, key
        elif key != but:
            yield from blocks_in(value)


def _concat(values: Iterable[Any]) -> Any:
    """What a template gives, as dbt has it: a single value as it is, so a text stays a text; else all as one text."""
    parts = list(values)
    return parts[0] if len(parts) == 1 else "".join(map(str, parts))


class _Environment(NativeEnvironment):
    concat = staticmethod(_concat)


class _Template(NativeTemplate):
    environment_class = _Environment


_Environment.template_class = _Template


def _of_type(kinds: tuple[type, ...], text: Any) -> Any:
    """A text as dbt makes a value of it: as Python writes one. What is none stays text, where no type is asked for."""
    value = text
    with suppress(ValueError, SyntaxError, MemoryError):
        value = ast.literal_eval(text) if isinstance(text, str) else text
    if kinds and (not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)):
        raise ValueError(f"{text!r} is no {'number' if int in kinds else 'flag: dbt takes True and False, spelled so'}")
    return value


_NOT_GIVEN = object()


class Renderer:
    """Gives `{{ env_var(…) }}` and `{{ var(…) }}` their values, as dbt does with settings; all else stays
    as it is."""

    def __init__(self, variables: dict[str, Any]) -> None:
        self._variables = variables
        self._environment = _Environment(undefined=jinja2.StrictUndefined)
        self._environment.filters |= {
            "as_text": str,
            "as_bool": partial(_of_type, (bool,)),
            "as_number": partial(_of_type, (int, float)),
            "as_native": partial(_of_type, ()),
        }

    def render(self, value: Any) -> Any:
        """The value with its templates filled in. Raises ValueError with what is missing."""
        if isinstance(value, list):
            return [self.render(item) for item in value]
        if isinstance(value, dict):
            return {key: self.render(item) for key, item in value.items()}
        if not isinstance(value, str) or not is_template(value):
            return value
        try:
            found = self._environment.from_string(value).render(env_var=self._env_var, var=self._var)
            if isinstance(found, jinja2.Undefined):
                str(found)  # raises: a name alone is not worked out by rendering it
            return found
        except ValueError:
            raise
        except Exception as error:  # whatever the template does
            raise ValueError(
                f"`{value}` cannot be worked out here ({one_line(error)}). Only env_var and var may be used in settings"
            ) from error

    def _env_var(self, name: str, default: str | None = None) -> str:
        if name.startswith("DBT_ENV_SECRET"):
            raise ValueError(f"dbt gives {name}, a secret by its name, to profiles.yml and packages.yml alone. Take another")
        found = os.environ.get(name, default)
        if found is None:
            raise ValueError(f"the environment variable {name} is not set. Set it, or give env_var a default")
        return found

    def _var(self, name: str, default: Any = _NOT_GIVEN) -> Any:
        found = self._variables.get(name, default)
        if found is _NOT_GIVEN:
            raise ValueError(f"the variable {name} is not in dbt_project.yml. Put it under vars:, or give var a default")
        return found


def is_template(text: str) -> bool:
    return any(mark in text for mark in ("{{", "{%", "{#"))
