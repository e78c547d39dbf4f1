"""`delta_cdc` for sqlfluff's Jinja templater: each macro of the project wants its arguments, as dbt has it, and gives a query."""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import Parameter, Signature
from pathlib import Path

import jinja2

FOLDER = Path(__file__).parents[2] / "macros"


def _stub(macro: jinja2.nodes.Macro) -> Callable[..., str]:
    defaults = [Parameter.empty] * (len(macro.args) - len(macro.defaults)) + [None] * len(macro.defaults)
    signature = Signature(
        [
            Parameter(each.name, Parameter.POSITIONAL_OR_KEYWORD, default=default)
            for each, default in zip(macro.args, defaults, strict=True)
        ]
    )

    def call(*args: object, **kwargs: object) -> str:
        signature.bind(*args, **kwargs)
        return "select 1 as one"

    return call


# the heads alone: sqlfluff loads this for each file that it lints
_heads = (head for path in FOLDER.rglob("*.sql") for head in re.findall(r"\{%-? *macro .*?%\}", path.read_text(), re.DOTALL))
_parsed = jinja2.Environment().parse("".join(f"{head}{{% endmacro %}}" for head in _heads))
globals().update({macro.name: _stub(macro) for macro in _parsed.find_all(jinja2.nodes.Macro)})
