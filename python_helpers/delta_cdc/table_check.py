"""What must hold between the settings of one table, and between them and its columns."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence

from delta_cdc.added_columns import HISTORY_COLUMNS
from delta_cdc.errors import Problem, did_you_mean, nearest
from delta_cdc.feed_check import COLUMN_LISTS, OF_FINAL, column_list, may_be_misspelled
from delta_cdc.formats import FORMATS
from delta_cdc.project import PartitionColumn, Table, sequence_name
from delta_cdc.settings import SAYS_NO, setting_defaults, wants
from delta_cdc.settings_block import Block, shown
from delta_cdc.spark_types import can_be_compared, has_statistics
from delta_cdc.sql_names import (
    IDENTIFIER,
    is_several,
    names_in,
    names_none_of,
    parted_at_commas,
    sql_name,
    unquoted,
    why_not_sql,
)
from delta_cdc.table_list import parts

_OF_A_CHANGE = ("sequence_by", "ordinal", "transaction", "occurred_at", "deleted_when", "truncated_when")
# what `entity_states` and `multiset_rows` keep of a change beside the table's columns
_OF_A_ROW = ("_cdc_sequence", "_cdc_ordinal", "_cdc_batch_id", "_cdc_row")
_OF_ROWS_WITH_A_KEY = (
    "track_columns",
    "old_keys",
    "key_changes",
    "apply",
    "alternate_keys",
    "history",
    "delete_mode",
    "created_at",
    "updated_at",
    "set_on_insert",
    "max_delete_share",
    "compact_after_days",
)
_OF_DEBEZIUM = ("decimal_handling", "time_unit", "unavailable_value")
_OF_HISTORY = {name for name, _, _ in HISTORY_COLUMNS if not name.startswith("_cdc_")}


class TableCheck:
    """What must hold between the settings of one table. listed: its columns with those of `never_store`."""

    def __init__(self, table: Table, listed: Sequence[str], feed_block: Block, block: Block, problems: list[Problem]) -> None:
        self.table = table
        self.listed = listed
        self.settings = table.settings
        self.format = FORMATS.get(table.settings.format or "")
        self.out_of_place = self.format.takes_no if self.format else ()
        self.feed_block = feed_block
        self.block = block
        self.broken = feed_block.broken | block.broken
        self.types = {column.name: column.data_type for column in table.columns}
        self.names = list(self.types)
        self.published = [column.name for column in table.published_columns]
        self.problems = problems

    def run(self) -> None:
        self.keys()
        self.renamed()
        self.order()
        self.told_by_format()
        self.operations()
        self.columns()
        self.privacy()
        self.partitions()
        self.clustering()
        self.lives()
        self.contradictions()

    def level(self, name: str) -> int:
        """2 if the table gives the setting, 1 if its feed does, 0 if nobody."""
        return 2 if name in self.block.given else 1 if name in self.feed_block.given else 0

    def problem(self, message: str, name: str | None = None) -> None:
        block = self.feed_block if name and self.level(name) == 1 else self.block
        line = block.lines.get(name) if name else None
        line = line or self.block.line or self.table.line
        self.problems.append(Problem(message, self.table.feed, self.table.name, self.table.file, line))

    def known_columns(self, setting: str, named: Iterable[str]) -> None:
        """Each name must be a column, or in lists of final one that `expressions` make. A feed's lists need only fit one table
        (checked for the feed)."""
        if setting in COLUMN_LISTS and self.level(setting) == 1:
            return
        known = [*self.names, *(self.settings.expressions if setting in OF_FINAL else ())]
        twice: set[str] = set()
        never = {name.lower() for name in self.settings.never_store}
        for name in named:
            if name.lower() in never:
                self.problem(f"`{setting}` names `{name}`, which `never_store` keeps out. Take one of them out.", setting)
            elif name not in known and self.names:
                self.problem(
                    f"`{setting}` names `{name}`, which is no column. {did_you_mean(name, known)}",
                    setting,
                )
            elif name in twice:
                self.problem(f"`{setting}` names `{name}` twice. Take one out.", setting)
            twice.add(name)

    def comparable(self, setting: str, named: Iterable[str]) -> None:
        """None of them may be a map or a variant: two of such are not equal to Spark."""
        for name in named:
            if not can_be_compared(self.types.get(name, "")):
                what = "orders" if setting == "sequence_by" else "tells"
                self.problem(
                    f"`{setting}` {what} rows by their values, `{name}` is {self.types[name]}, which Spark cannot compare. "
                    "Take the column out, or give it the data_type string.",
                    setting,
                )

    def known_expression(self, setting: str, expression: str) -> None:
        """Each name in it must be a column or a field of the format; what else it says is Spark's to judge."""
        if not self.names:
            return
        if expression in self.names and not IDENTIFIER.fullmatch(expression):
            quoted = json.dumps(sql_name(expression), ensure_ascii=False)
            written = f"{setting}: [{quoted}]" if isinstance(getattr(self.settings, setting), list) else quoted
            message = f"`{setting}` takes SQL; there the column '{expression}' stands in backticks, and for yml those in quotes"
            self.problem(f"{message}: {written}.", setting)
            return
        if setting not in ("expressions", "mask") and is_several(expression):  # in these `a, b` is a struct
            self.problem(f"`{setting}` has `{expression}`, which is more than one expression. It takes one.", setting)
            return
        if why := why_not_sql(expression):
            self.problem(f"`{setting}` has `{expression}`, which is no SQL expression: {why}.", setting)
            return
        if self.format is None and unquoted(expression) in (None, expression):
            return  # the fields of a format of the project's own are not known here
        if setting in ("deleted_when", "truncated_when") and expression.strip().lower() in ("true", "false"):
            return  # a condition that always or never holds
        columns = {each.lower() for each in self.names}
        of_final = setting in ("expressions", "partition_by")  # made from staging, where a change has no such fields any more
        fields = self.format.fields if self.format and not of_final else ()
        made = self.settings.expressions if of_final else ()
        known = [*self.names, *(f"_cdc{field}" if field in columns else field for field in fields), *made]
        single = unquoted(expression)
        for name in names_in(expression) if single is None else [single]:
            if name.lower() in [each.lower() for each in self.settings.never_store]:
                self.problem(f"`{setting}` names `{name}`, which `never_store` keeps out. Take one of them out.", setting)
            elif (single is None or setting == "expressions") and name.lower().startswith("_cdc_"):  # one of staging's own
                kept = (*_OF_A_ROW, *(["_cdc_occurred_at"] if self.table.has_entities else []))
                if of_final and not self.table.appends_only and name.lower() not in kept:
                    message = f"`{setting}` names `{name}`, which only staging has. History and final know of a row's last change"
                    self.problem(f"{message} {', '.join(kept)}.", setting)
            elif name.lower() not in [each.lower() for each in known]:
                message = f"`{setting}` names `{name}`, which is no column. {did_you_mean(name, known)}"
                self.problem(message, setting)
        # `deleted_when: "false"` is one that is meant; text in quotes is a column's name, mistaken
        may_be_constant = setting != "sequence_by" and not re.search("['\"]", expression)
        if setting in _OF_A_CHANGE and single is None and not may_be_constant and names_none_of(expression, columns):
            message = f"`{setting}` has `{expression}`, which names no column, so it tells nothing of a change."
            self.problem(f"{message} A column stands by its name, or in backticks; what is in quotes is text.", setting)

    def parted_at_commas(self, setting: str) -> Collection[int]:
        """The places in a list of expressions that yml parted at their commas."""
        parted = parted_at_commas(getattr(self.settings, setting))
        for whole in dict.fromkeys(parted.values()):
            message = f"`{setting}` has `{whole}` in parts, for between brackets yml parts texts at commas. Put it in quotes: "
            self.problem(f"{message}[{json.dumps(whole, ensure_ascii=False)}].", setting)
        return parted

    def keys(self) -> None:
        settings = self.settings
        if not settings.keys and self.table.has_entities and "keys" not in self.broken:
            message = "`keys` is missing. Give the columns that identify a row, e.g. [id]"
            without = "; or say `insert_only: true`, or `keyless: append` or `keyless: multiset` for a table without a key."
            copies = ": the copies of a table are compared by them."
            self.problem(message + (copies if "keyless" in self.out_of_place else without))
        self.known_columns("keys", settings.keys)
        if settings.keys and settings.keyless != "none":
            self.problem(f"`keyless` is {settings.keyless}, and `keys` are given. Take one of them out.", "keyless")
        if settings.keyless == "multiset" and settings.insert_only:
            message = "`keyless` is multiset, where a delete takes a row away, and `insert_only` is true, which quarantines"
            self.problem(f"{message} deletes. Take one out (`insert_only: false` undoes the feed's).", "keyless")
        if settings.surrogate != "none" and settings.keyless == "none":
            message = "`surrogate` is for a table without a key. Say `keyless: append` or `keyless: multiset`, or take it out."
            self.problem(message, "surrogate")
        for setting, named in (
            ("nullable_keys", settings.nullable_keys),
            ("old_keys", list(settings.old_keys)),
        ):
            for name in named:
                if name not in settings.keys and "keys" not in self.broken:
                    hint = did_you_mean(name, settings.keys)
                    self.problem(f"`{setting}` names `{name}`, which is not one of `keys`. {hint}", setting)
        self.known_columns("old_keys", settings.old_keys.values())
        self.comparable("keys", settings.keys)
        if settings.keyless == "multiset" or settings.surrogate == "hash":
            setting = "keyless" if settings.keyless == "multiset" else "surrogate"
            self.comparable(setting, self.published)
            if self.published and not self.values():
                message = f"`{setting}` is {getattr(settings, setting)}, by which rows are their values, and final has none of"
                message += " these: its columns are made by `expressions`, or tell order or operation. Publish one of the feed"
                self.problem(f"{message} (`columns`, `except_columns`).", setting)
        for alternate in settings.alternate_keys:
            self.known_columns("alternate_keys", alternate)
            self.comparable("alternate_keys", alternate)
            if set(alternate) <= set(settings.keys):  # an event that tells no key tells none of these
                which = "are" if set(alternate) == set(settings.keys) else "are part of"
                message = f"`alternate_keys` names [{', '.join(alternate)}], which {which} `keys`. Take it out."
                self.problem(message, "alternate_keys")

    def values(self) -> list[str]:
        """The columns by which rows without a key are equal (N1), as the macro `_values_of_multiset`."""
        settings = self.settings
        others = [
            *settings.sequence_by, settings.ordinal, settings.transaction, settings.occurred_at, settings.deleted_when,
            settings.truncated_when,
        ]  # fmt: skip
        return [
            name for name in self.published
            if name in self.names and name != settings.operation and not any(_named_in(sql, [name]) for sql in others if sql)
        ]  # fmt: skip

    def why_left_out(self, name: str) -> str:
        """Why history and final do not have a column."""
        settings = self.settings
        if settings.columns is not None or settings.except_columns:
            shaped_by = "except_columns" if settings.columns is None else "columns"
            return f"`{shaped_by}` leaves it out. Have it published there, or take it out here"
        told_by = "operation" if name == settings.operation else "old_keys"
        return f"`{told_by}` names it. Take it out, or say with `columns` what they have"

    def renamed(self) -> None:
        settings = self.settings
        olds: dict[str, str] = {}
        for new, old in settings.renamed_columns.items():
            if new.lower() not in {name.lower() for name in (*self.names, *settings.never_store)} and self.names:
                hint = f"It takes the new name first: {{{old}: {new}}}." if old in self.names else did_you_mean(new, self.names)
                self.problem(f"`renamed_columns` names `{new}`, which is no column. {hint}", "renamed_columns")
            elif old in self.names:
                message = f"`renamed_columns` says that `{new}` was `{old}`, which is a column too. Take one of them out."
                self.problem(message, "renamed_columns")
            if old.lower() in olds:
                two = f"`{olds[old.lower()]}` and of `{new}`"
                self.problem(f"`renamed_columns` says of {two} that they were `{old}`. Take one out.", "renamed_columns")
            olds[old.lower()] = new

    def order(self) -> None:
        settings = self.settings
        if not settings.sequence_by and not {"sequence_by", "format"} & self.broken:
            self.problem("`sequence_by` is missing. Give the columns that order the source's changes, e.g. [lsn].")
        seen: set[str] = set()
        parted = self.parted_at_commas("sequence_by")
        for place, name in enumerate(settings.sequence_by):
            bare = (unquoted(name) or name).lower()
            if place in parted:
                pass
            elif bare in seen:
                self.problem(f"`sequence_by` names `{name}` twice. Take one out.", "sequence_by")
            elif re.search(r"\s(asc|desc)\s*$", name, re.IGNORECASE):
                message = f"`sequence_by` has `{name}`. What is higher is newer; write an expression that rises with time."
                self.problem(message, "sequence_by")
            elif len(parts(name)) > 1:
                message = f"`sequence_by` has `{name}` as one expression. Write each by itself: [{', '.join(parts(name))}]."
                self.problem(message, "sequence_by")
            else:
                self.known_expression("sequence_by", name)
            seen.add(bare)
        for place, part in enumerate(settings.sequence_by, 1):
            field = sequence_name(part, place)
            if field.lower() in seen and field not in (part, unquoted(part)):
                message = f"`sequence_by` has `{field}`, which is also what {part} is called, being at place {place}."
                self.problem(message + " Put it elsewhere.", "sequence_by")
        named = {(unquoted(name) or "").lower() for name in settings.sequence_by}
        self.comparable("sequence_by", [name for name in self.names if name.lower() in named])
        for setting in _OF_A_CHANGE:
            expression = getattr(settings, setting)
            if isinstance(expression, str) and setting not in self.out_of_place:
                self.known_expression(setting, expression)
                data_type = self.table.type_of(expression) if setting.endswith("_when") else None
                # Spark reads true and false in texts, and in nothing else
                if data_type and not re.match(r"\s*(boolean|string|(var)?char)", data_type, re.IGNORECASE):
                    message = f"`{setting}` is `{expression}`, whose type is {data_type}, and it takes a condition. Say when: "
                    self.problem(f"{message}`{expression} = 1`, or `{expression} is not null`.", setting)

    def told_by_format(self) -> None:
        """Settings for what the format tells by itself, or cannot tell, and those of another format."""
        for setting in _OF_DEBEZIUM:
            if self.level(setting) and self.format and self.settings.format != "debezium":
                message = f"`{setting}` is for `format: debezium`, and this feed is {self.settings.format}. Take it out."
                self.problem(message, setting)
        for setting in self.out_of_place:
            if not self.level(setting) or getattr(self.settings, setting) in (None, False, "none", [], {}):
                continue
            if self.settings.format == "snapshots":
                message = (
                    f"`{setting}` has no meaning with `format: snapshots`: each change set is the whole table, and what changed "
                    "is worked out by `keys`. Take it out."
                )
            else:
                message = f"`{setting}` is for flat rows; {self.settings.format} says that itself. Take it out."
            self.problem(message, setting)

    def operations(self) -> None:
        settings = self.settings
        code = next((code for code, meaning in settings.operation_codes.items() if meaning == "before"), None)
        if settings.format != "rows" and code is not None:
            message = f"`operation_codes` gives `{code}` the meaning `before`, which is for `format: rows`, and this feed is "
            self.problem(f"{message}{settings.format}. Take it out.", "operation_codes")
        if "operation" in self.out_of_place:
            return
        if settings.operation is not None:
            self.known_columns("operation", [settings.operation])
            if [(unquoted(part) or part).lower() for part in settings.sequence_by] == [settings.operation.lower()]:
                message = f"`operation` and `sequence_by` both name `{settings.operation}`: what a change does is not when."
                self.problem(f"{message} Give `sequence_by` what grows with each change.", "sequence_by")
        elif (  # a table without the feed's column has no use for its codes
            settings.operation_codes
            and self.format is not None
            and "operation" not in self.broken
            and self.level("operation_codes") >= self.level("operation")
        ):
            message = "`operation_codes` is given without `operation`, the column that holds the codes. Add it."
            self.problem(message, "operation_codes")

    def columns(self) -> None:
        settings, table = self.settings, self.table
        if settings.columns is not None and settings.except_columns:
            message = "`columns` and `except_columns` are both given. Keep one (`columns: null` undoes the feed's)."
            self.problem(message, "columns" if self.level("columns") == 2 else "except_columns")
            return
        self.known_columns("ignore_null_updates", column_list(settings.ignore_null_updates))
        for name in settings.ignore_null_updates if isinstance(settings.ignore_null_updates, list) else ():
            if name in settings.keys and self.level("ignore_null_updates") == 2:
                self.problem(f"`ignore_null_updates` names `{name}`, which is one of `keys`. Take it out.", "ignore_null_updates")
        self.known_columns("columns", settings.columns or [])
        self.known_columns("except_columns", settings.except_columns)
        shaped_by = "columns" if settings.columns is not None else "except_columns"
        for key in settings.keys:
            if key in self.names and key not in self.published:
                message = f"`{shaped_by}` leaves out the key column `{key}`. History and final need it."
                if settings.columns is None and not settings.except_columns:
                    shaped_by = "operation" if key == settings.operation else "old_keys"
                    message = f"`{shaped_by}` names the key column `{key}`. It takes a column that is not one of `keys`."
                self.problem(message, shaped_by)
        self.known_columns("track_columns", column_list(settings.track_columns))
        for name in column_list(settings.track_columns):
            if name in self.names and name not in self.published and self.level("track_columns") == 2:
                message = f"`track_columns` names `{name}`, which history does not have: {self.why_left_out(name)}."
                self.problem(message, "track_columns")
        if table.history_name is not None:
            for name in self.published:
                if name.lower() in _OF_HISTORY:
                    made = name not in self.names
                    self.problem(
                        f"`expressions` makes `{name}`, a column that history adds. Give it another name."
                        if made
                        else f"column `{name}` has the name of a column that history adds. Leave it out with "
                        f"`except_columns`, e.g. [{name}]; staging keeps it.",
                        "expressions" if made else None,
                    )

    def privacy(self) -> None:
        """`mask`, `never_store` and `expressions`."""
        settings = self.settings
        self.known_columns("mask", settings.mask)
        for name in settings.never_store:
            # it need not be listed, so one that is misspelled would store what must not be stored
            known = name.lower() in [each.lower() for each in self.listed]
            if not known and self.level("never_store") == 2 and (close := nearest(name, self.listed)):
                self.problem(may_be_misspelled(name, close), "never_store")
        for key, old in settings.old_keys.items():
            if key in settings.mask and old not in settings.mask:
                self.problem(f"`mask` names the key column `{key}`, and `{old}` holds its old value. Mask that too.", "mask")
        for setting, made in (("mask", settings.mask), ("expressions", settings.expressions)):
            for sql in made.values():
                if sql.strip().lower() not in _BARE_WORDS_OF_SQL:
                    self.known_expression(setting, sql)
        names = list(settings.expressions)
        for place, name in enumerate(names):
            # Spark knows a column that stands before in the same select
            not_yet = {each.lower() for each in names[place:]} - {each.lower() for each in self.names}
            for used in names_in(settings.expressions[name]):
                if used.lower() in not_yet:
                    what = "which is itself" if used.lower() == name.lower() else "which it makes after that: put it before"
                    self.problem(f"`expressions` makes `{name}` of `{used}`, {what}.", "expressions")
            if name in settings.keys:
                self.problem(
                    f"`expressions` names the key column `{name}`: it tells rows apart. Use `mask`, which "
                    "changes it before anything is stored.",
                    "expressions",
                )
            elif name.lower().startswith("_cdc_"):
                message = f"`expressions` names `{name}`: names that begin with _cdc_ are taken. Give it another."
                self.problem(message, "expressions")
            elif name.lower() in {each.name.lower() for each in self.table.partition_columns if each.derived}:
                message = f"`expressions` and `partition_by` both make a column `{name}`. Take one of them out."
                self.problem(message, "expressions")

    def partitions(self) -> None:
        settings, table = self.settings, self.table
        seen: set[str] = set()
        parted = self.parted_at_commas("partition_by")
        for place, (entry, partition) in enumerate(zip(settings.partition_by, table.partition_columns, strict=True)):
            if place in parted:
                continue
            name = partition.name
            if wrong := self.wrong_with_derived(entry, partition) if partition.derived else self.wrong_with_plain(name):
                self.problem(wrong, "partition_by")
            elif partition.derived:
                self.known_expression("partition_by", partition.expression)
            if name.lower() in seen:
                self.problem(f"`partition_by` names `{name}` twice. Take one out.", "partition_by")
            seen.add(name.lower())
        rewrites = settings.apply == "replace_partitions" and table.has_entities  # of others a feed does not mean it
        if rewrites and not settings.partition_by and "partition_by" not in self.broken:
            remedy = "Say by what final is partitioned, e.g. [year(created_at) as created_year]."
            self.problem(f"`apply` is replace_partitions, and `partition_by` is missing. {remedy}", "apply")

    def wrong_with_plain(self, name: str) -> str | None:
        """Why final cannot be partitioned by a column as it is; None where it can."""
        data_type = self.types.get(name, "")
        if name not in self.published:
            return f"`partition_by` names `{name}`, which final does not have: {self.why_left_out(name)}."
        if _is_nested(data_type):
            return f"`partition_by` names `{name}`, which is {data_type}. Spark takes simple types there. Take it out."
        if data_type.strip().lower() == "binary":
            remedy = f"Partition by a text made of it, e.g. [hex({name}) as {name}_hex]."
            return f"`partition_by` names `{name}`, which is binary. Delta names partitions by text. {remedy}"
        return None

    def wrong_with_derived(self, entry: str, partition: PartitionColumn) -> str | None:
        """Why final cannot be partitioned by what an expression makes, as far as its names and types tell; None where it can.
        entry: as it stands in the setting."""
        name, expression = partition.name, partition.expression
        types = {each.lower(): self.types.get(each, "") for each in (*self.settings.expressions, *self.names)}
        data_type = types.get(expression.lower(), "")
        if is_several(entry):
            return f"`partition_by` has `{entry}` as one expression. Write each by itself: [{', '.join(parts(entry))}]."
        if IDENTIFIER.fullmatch(expression) and self.names and expression.lower() not in types:
            return f"`partition_by` names `{expression}`, which is no column. {did_you_mean(expression, self.names)}"
        if _is_nested(data_type) or re.match(r"\s*binary\b", data_type, re.IGNORECASE):
            return f"`partition_by` names `{expression}`, which is {data_type}. Spark takes simple types there. Take it out."
        if name.lower().startswith("_cdc_"):
            return f"`partition_by` makes a column `{name}`: names that begin with _cdc_ are taken. Name it otherwise."
        if not name or name[0].isdigit():
            return f"`partition_by`: `{expression}` needs a name: {expression} as part."
        if self.table.has_entities and (left_out := _named_in(expression, set(self.names) - set(self.published))):
            remedy = "Publish it (`columns`, `except_columns`)."
            return f"`partition_by`: `{expression}` is made from `{left_out}`, which final does not have. {remedy}"
        if name.lower() in [column.lower() for column in self.names]:
            return f"`partition_by` makes a column `{name}`, and the table has one. Give it another name: {expression} as part."
        return None

    def clustering(self) -> None:
        """`cluster_by` and `zorder_by`: Delta takes columns of which it has the lowest and highest value in each file."""
        settings = self.settings
        partitions = {partition.name.lower() for partition in self.table.partition_columns}
        with_statistics = [name for name in self.published if name.lower() not in partitions][:32]
        for setting, named in (("cluster_by", settings.cluster_by), ("zorder_by", settings.zorder_by)):
            self.known_columns(setting, named)
            for name in named:
                if name not in self.names:
                    continue
                if name not in self.published:
                    why = f"which final does not have: {self.why_left_out(name)}"
                elif name.lower() in partitions:
                    why = "by which final is partitioned: the files of a partition have one value of it"
                elif not has_statistics(self.types[name]):
                    why = f"whose type is {self.types[name]}. It takes columns with an order: numbers, texts, dates and times"
                elif name not in with_statistics:
                    why = "which is not among the first 32 of final: Delta has no statistics of it. List it further up"
                else:
                    continue
                self.problem(f"`{setting}` names `{name}`, {why}.", setting)
        if settings.cluster_by and settings.partition_by:
            message = "`partition_by` and `cluster_by` are both given; Delta takes one of them. Take one out."
            self.problem(message, "cluster_by")
        if settings.zorder_by and settings.cluster_by:
            message = "`cluster_by` and `zorder_by` are both given; a clustered table is ordered by its clustering. Take one out."
            self.problem(message, "zorder_by")
        if len(settings.cluster_by) > 4:
            message = f"`cluster_by` names {len(settings.cluster_by)} columns; Delta takes four at most. Take some out."
            self.problem(message, "cluster_by")

    def lives(self) -> None:
        """What final tells of a row's life: `created_at`, `updated_at`, `set_on_insert`, soft deletes."""
        settings, table = self.settings, self.table
        taken = {c.name.lower(): "a column of final" for c in table.published_columns}
        taken |= {c.name.lower(): "made by `partition_by`" for c in table.partition_columns if c.derived}
        for setting in ("created_at", "updated_at"):
            name = getattr(settings, setting)
            if name is None or not table.has_entities:
                continue
            if not IDENTIFIER.fullmatch(name) or name.lower().startswith("_cdc_"):
                self.problem(
                    f"`{setting}` is {shown(name)}. It takes {wants(setting)}, not beginning with _cdc_.",
                    setting,
                )
            elif name.lower() in taken:
                message = f"`{setting}` names `{name}`, which is {taken[name.lower()]} already. Give it another name."
                self.problem(message, setting)
            taken[name.lower()] = f"given by `{setting}`"
        self.known_columns("set_on_insert", settings.set_on_insert)
        for name in settings.set_on_insert:
            if name in self.names and name not in self.published and self.level("set_on_insert") == 2:
                message = f"`set_on_insert` names `{name}`, which final does not have: {self.why_left_out(name)}."
                self.problem(message, "set_on_insert")
            if name in settings.keys and self.level("set_on_insert") == 2:
                message = f"`set_on_insert` names `{name}`, which is one of `keys`. A key is always the row's own. Take it out."
                self.problem(message, "set_on_insert")
        is_default = self.level("soft_delete_nulls") < self.level("delete_mode")  # of the feed, for its other tables
        if settings.soft_delete_nulls and settings.delete_mode == "hard" and not is_default and "delete_mode" not in self.broken:
            message = "`soft_delete_nulls` is for `delete_mode: soft`. Add that, or take it out."
            self.problem(message, "soft_delete_nulls")

    def contradictions(self) -> None:
        settings = self.settings
        if settings.paused is not None and settings.paused.strip().lower() in SAYS_NO:
            message = f"`paused` is {shown(settings.paused)}, and whatever it says pauses. Give the reason, or take it out "
            self.problem(f"{message}(`paused: null` undoes the feed's).", "paused")
        if settings.change_table is not None and (settings.jdbc is None or "{table}" not in (settings.location or "")):
            message = "`change_table` is for a feed with `jdbc` and `{table}` in `location`. Take it out."
            if not {"jdbc", "location"} & self.broken:
                self.problem(message, "change_table")
        if settings.final_name is not None and not IDENTIFIER.fullmatch(settings.final_name):
            message = f"`final_name` is {shown(settings.final_name)}. It takes {wants('final_name')}."
            self.problem(message, "final_name")
        if not self.table.has_entities:
            why = "insert_only" if settings.insert_only else "keyless"
            says = "`insert_only: true`" if settings.insert_only else f"`keyless: {settings.keyless}`"
            defaults = setting_defaults()
            for setting in _OF_ROWS_WITH_A_KEY:
                given = getattr(settings, setting)
                # what only the feed says is a default for its other tables
                if given is not False and given != defaults[setting] and self.level(setting) >= max(self.level(why), 1):
                    message = f"`{setting}` has no meaning with {says}: it is for rows with a key. Take one out."
                    self.problem(message, setting)
        if settings.compact_after_days is not None and self.table.has_entities:
            against = {"history": settings.history == "table", "alternate_keys": bool(settings.alternate_keys)}
            for setting, given in against.items():
                if given and self.level("compact_after_days") >= self.level(setting):
                    what = "`history: table`" if setting == "history" else f"`{setting}`"
                    message = f"`compact_after_days` and {what} are both given; a table with the latter is not compacted."
                    self.problem(f"{message} Take one out.", "compact_after_days")


def _is_nested(data_type: str) -> bool:
    return bool(re.match(r"\s*(array|map|struct|variant)\b", data_type, re.IGNORECASE))


_NO_COLUMN = re.compile(
    r"""\binterval(?:\s+[-+]?\s*(?:[\d.]+|'[^']*')\s+\w+(?:\s+to\s+\w+)?)+|\btimestamp(?:add|diff)\s*\(\s*\w+\s*,"""
    r"""|(`(?:[^`]|``)*`)|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\bas\s+\w+|::\s*\w+|\bextract\s*\(\s*\w+\s+from\b|\w+\s*\(""",
    re.IGNORECASE,
)


def _named_in(expression: str, names: Iterable[str]) -> str | None:
    """One of the columns that an SQL expression names, or None; not what is text in it, a function or a type."""
    ticked = {match[1].lower() for match in _NO_COLUMN.finditer(expression) if match[1]}
    sql = _NO_COLUMN.sub("(", expression)

    def is_named(name: str) -> bool:
        in_ticks = "`" + name.replace("`", "``").lower() + "`"
        # after a dot stands a field
        return in_ticks in ticked or re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", sql, re.IGNORECASE) is not None

    return next(filter(is_named, sorted(names)), None)


_BARE_WORDS_OF_SQL = ("null", "true", "false", "current_date", "current_timestamp", "current_user", "localtimestamp", "user")
