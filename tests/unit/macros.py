"""The project's macros and generic tests (as macros `test_…`), and the adapter's, rendered alone: no dbt, no Spark."""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from types import CodeType, MappingProxyType, SimpleNamespace
from typing import Any

import jinja2

PROJECT = Path(__file__).parents[2]
ADAPTER = PROJECT / "python_helpers/dbt/include/sparkdelta/macros"
_MACRO = re.compile(r"\{%-? macro .*?\{%-? endmacro -?%\}", re.DOTALL)


class _Returned(Exception):
    """dbt's `return`: ends the macro with a value that is no text."""

    def __init__(self, value: Any) -> None:
        self.value = value


class CompilerError(Exception):
    pass


def _return(value: Any = None) -> Any:
    raise _Returned(value)


def _refuse(message: str) -> Any:
    raise CompilerError(message)


def _environment() -> jinja2.Environment:
    return jinja2.Environment(extensions=["jinja2.ext.do"], undefined=jinja2.StrictUndefined)


@cache
def _compiled() -> Sequence[CodeType]:
    """Once for all calls of `load`: it takes a second."""
    paths = [path for folder in ("macros", "tests/generic") for path in (PROJECT / folder).rglob("*.sql")]
    return [_environment().compile(_as_macro(path.read_text()), filename=str(path)) for path in paths]


def _as_macro(test: str) -> str:
    return test.replace("{% test ", "{% macro test_").replace("{% endtest %}", "{% endmacro %}")


def load(
    made: Mapping[str, Callable[..., Any]] = MappingProxyType({}),
    own: Mapping[str, Callable[..., Any]] = MappingProxyType({}),
    **context: Any,
) -> Mapping[str, Callable[..., Any]]:
    """All macros by name, with `context` beside what dbt gives: `adapter`, `graph`, `this`, … made: what they find in place of
    macros of these names. own: those of the project that uses the package."""
    environment = _environment()
    namespace = SimpleNamespace()
    adapter = context.setdefault("adapter", SimpleNamespace())
    for name in ("recall", "remember", "create_values_view"):  # one that keeps nothing, where a test has none that does
        if not hasattr(adapter, name):
            setattr(adapter, name, lambda *_: None)
    environment.globals.update(
        {
            "return": _return,
            "modules": SimpleNamespace(re=re, datetime=datetime),
            "fromjson": json.loads,
            "tojson": json.dumps,
            "execute": True,
            "delta_cdc": namespace,
            "env_var": lambda name, default: default,
            "local_md5": lambda text: hashlib.md5(text.encode()).hexdigest(),
            "target": {"method": "session"},
            "project_name": "user_project",
            "exceptions": SimpleNamespace(raise_compiler_error=_refuse),
            **context,
        }
    )
    macros: dict[str, Callable[..., Any]] = {}
    environment.globals["context"] = {"delta_cdc": macros, "user_project": own}
    for code in _compiled():
        template = jinja2.Template.from_code(environment, code, environment.globals)
        scope = template.new_context()
        list(template.root_render_func(scope))  # a module leaves out the private ones
        for name, macro in scope.vars.items():
            if isinstance(macro, jinja2.runtime.Macro):
                macros[name] = _callable_of(macro)
                setattr(namespace, name, macros[name])
    vars(namespace).update(made)
    return macros


def giving(values: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
    """For `load`: macros of these names, each of which gives its value, whatever it is given."""
    return {name: partial(lambda value, *_, **__: value, value) for name, value in values.items()}


def load_adapter(**context: Any) -> Mapping[str, Callable[..., Any]]:
    """The adapter's macros by name, without the materializations; `context`: what of dbt's they call."""
    environment = _environment()
    macros: dict[str, Callable[..., Any]] = {}
    texts = [text for path in sorted(ADAPTER.rglob("*.sql")) for text in _MACRO.findall(path.read_text())]
    names = [re.match(r"\{%-? macro (\w+)", text)[1] for text in texts]  # type: ignore[index]
    environment.globals.update({name: partial(lambda of, *args, **kwargs: macros[of](*args, **kwargs), name) for name in names})
    environment.globals.update(
        {
            "return": _return,
            "modules": SimpleNamespace(re=re),
            "local_md5": lambda text: hashlib.md5(text.encode()).hexdigest(),
            "exceptions": SimpleNamespace(raise_compiler_error=_refuse),
            **context,
        }
    )
    for name, text in zip(names, texts, strict=True):  # each alone: what it calls is to be a callable of ours
        macros[name] = _callable_of(getattr(environment.from_string(text).module, name))
    return macros


def _callable_of(macro: Any) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return str(macro(*args, **kwargs))
        except _Returned as returned:
            return returned.value

    return call
