"""The yml of a feed's models: descriptions, types and tests of all of them, and an exposure of the final tables."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import yaml

from delta_cdc.added_columns import (
    HISTORY_COLUMNS,
    KEYS_COLUMNS,
    RAW_COLUMNS,
    STAGING_COLUMNS,
    SURROGATE,
    added,
    final_columns,
)
from delta_cdc.model_files import final_is, jinja, source
from delta_cdc.project import Column, Feed, Table


def models_yml(feed: Feed) -> str:
    """Descriptions, types and tests of all models of a feed, and an exposure that names its final tables."""
    models = []
    if feed.raw_name:
        what = f"Every message of feed {feed.name}, once, with the table it is of. Read once for all tables."
        models.append(_model(feed.raw_name, what, [Column(n, t or "", d) for n, t, d in RAW_COLUMNS], []))
    for table in feed.tables:
        models += _table_models(table)
    exposure = {
        "name": f"{feed.name}_tables",
        "label": f"Tables of {feed.name}",
        "type": "application",
        "owner": {"name": f"Readers of {feed.name}"},
        "description": f"What readers of feed {feed.name} use: its final tables. {feed.description}".strip(),
        "depends_on": [f"ref('{table.final_name}')" for table in feed.tables],
    }
    return _to_yml({"version": 2, "models": models, "exposures": [exposure]})


def _table_models(table: Table) -> Iterator[dict[str, Any]]:
    name = table.full_name
    about = f" {table.description}" if table.description else ""
    keys = [_argument(key) for key in table.settings.keys] or ([SURROGATE] if table.settings.surrogate == "hash" else [])
    of_table = {"source_table": source(table)}
    rebuilt_from = of_table | {"staging": f"ref('{table.staging_name}')"}
    if table.keys_name:
        rebuilt_from["keys"] = f"ref('{table.keys_name}')"
    has_keys = bool(table.settings.keys)
    masked = table.settings.mask
    in_table = table.settings.history == "table"  # a view is worked out from all of staging whenever it is read
    yield _model(
        table.staging_name,
        f"One row a change of {name}; what was delivered twice is there once. All other tables of {name} are made of it; rows "
        f"with `_cdc_error` count in none of them.{about}",
        [*table.columns, *added(table, STAGING_COLUMNS)],
        _data_tests("each_change_once", of_table, each_run=has_keys),
        masked,
    )
    if table.keys_name:
        yield _model(
            table.keys_name,
            f"Which row each change of {name} is of, where keys change: one row a change, of the keys that ever changed. "
            "History and final are made with it; for readers it holds nothing.",
            added(table, KEYS_COLUMNS),
            [],
        )
    if table.history_name:
        yield _model(
            table.history_name,
            f"One row a version of each row of {name}, by source time (SCD2). As it is: `is_current`. As it was at a moment: "
            f"`(valid_from is null or valid_from <= moment) and (valid_to is null or valid_to > moment)`.{about}",
            [*table.published_columns, *added(table, HISTORY_COLUMNS)],
            [
                *_data_tests("one_current_row_per_key", {"keys": keys} | of_table, each_run=in_table),
                *_data_tests("history_intervals_do_not_overlap", of_table, each_run=in_table),
                *(_data_tests("history_equals_rebuild_from_staging", rebuilt_from, each_run=True) if in_table else []),
            ],
            masked,
        )
    rows = final_is(table)
    more = ", one row a key" if table.has_entities else ""
    more += "; `not _cdc_is_deleted`: the live ones" if table.deletes_softly else ""
    yield _model(
        table.final_name,
        f"{rows[0].upper()}{rows[1:]} (SCD1){more}.{about}",
        final_columns(table),
        [
            *(
                _data_tests("one_row_per_key", {"keys": keys} | of_table, each_run=has_keys)
                if keys and not table.settings.insert_only
                else []
            ),
            *_data_tests("final_equals_rebuild_from_staging", rebuilt_from, each_run=has_keys),
        ],
        masked,
    )


EACH_RUN, NIGHTLY = "each_run", "nightly"
_CALLED = re.compile(r"\s*(env_var|ref|var|source|doc)\s*\(.+\)\s*$")


def _argument(name: str) -> str:
    """A name as an argument of a test, where dbt calls what looks like a call of its functions.

    >>> _argument("id"), _argument("ref (old)")
    ('id', "{{ 'ref (old)' | as_text }}")
    """
    return f"{{{{ {jinja(name)} | as_text }}}}" if _CALLED.match(name) else name


def _data_tests(name: str, arguments: dict[str, Any], *, each_run: bool) -> list[dict[str, Any]]:
    """The test of a whole table, and with `each_run` the one of the keys that its newest load touched."""

    def tagged(tag: str, **more: bool) -> dict[str, Any]:
        return {f"delta_cdc.{name}": {"arguments": arguments | more, "config": {"tags": [tag]}}}

    return [tagged(NIGHTLY), *([tagged(EACH_RUN, touched_only=True)] if each_run else [])]


def _model(
    name: str, description: str, columns: Sequence[Column], tests: list[Any], masked: Collection[str] = ()
) -> dict[str, Any]:
    """masked: the columns that `mask` makes; its SQL, which may hold a secret, is not told."""
    model: dict[str, Any] = {"name": name, "description": description}
    model["columns"] = [
        {
            "name": column.name,
            **({"data_type": column.data_type} if column.data_type else {}),
            "description": column.description
            or f"{column.name} of the source table{', masked' if column.name in masked else ''}.",
        }
        for column in columns
    ]
    if tests:
        model["data_tests"] = tests
    return model


class _Dumper(yaml.SafeDumper):
    """Block style, lists indented under their key, a column on one line."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_mapping(dumper: _Dumper, data: dict[str, Any]) -> yaml.MappingNode:
    one_line = "description" in data and "columns" not in data and "owner" not in data
    tag = "tag:yaml.org,2002:map"
    return dumper.represent_mapping(tag, data.items(), flow_style=one_line or "arguments" in data)


_Dumper.add_representer(dict, _represent_mapping)


def _to_yml(content: Any) -> str:
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**6)
