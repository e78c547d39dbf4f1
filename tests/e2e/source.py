"""The source: tables of several kinds, and clients that write to them at the same time."""

from __future__ import annotations

import json
import subprocess
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

from tests.e2e.postgres import Postgres

CLIENTS = 4
KEYS = 40
# 23505: the key is taken; 40P01: deadlock; 25P02, 3B001: what follows an error in its transaction
EXPECTED_ERRORS = {"23505", "40P01", "25P02", "3B001"}
TEXTS = ("", " ", "plain", "it's", 'a "word"', "back\\slash", "\\N", "null", "two\nlines", "tab\t,comma;", "ä 漢字 😀", "\u2028")
ZONES = ("UTC", "America/St_Johns", "Asia/Kathmandu", "Pacific/Apia")

STATEMENTS = {"insert": 30, "update": 45, "delete": 12, "replace": 3, "move": 5, "chain": 2, "swap": 3, "own": 4}


@dataclass(frozen=True)
class Table:
    """keys: key columns, of which key(n) makes the SQL of the nth key's values. columns: the others, with PostgreSQL's types.
    toasted: those that are mostly left as they are. deferred: the key is checked at commit, and the replica identity is FULL, for
    such a key cannot be one. statements: of its own, from two numbers of keys. added: columns that come while clients write."""

    name: str
    keys: dict[str, str]
    key: Callable[[int], tuple[str, ...]]
    columns: dict[str, str]
    toasted: tuple[str, ...] = ()
    deferred: bool = False
    statements: tuple[Callable[[int, int], str], ...] = ()
    added: dict[str, str] = field(default_factory=dict)

    @property
    def types(self) -> dict[str, str]:
        return {**self.keys, **self.columns, **self.added}


TABLES = [
    Table(
        "account",
        {"id": "int"},
        lambda n: (str(n),),
        {"owner": "text", "balance": "numeric(38,10)", "opened": "date", "active": "boolean", "seen": "timestamptz"},
        added={"note": "text"},
    ),
    Table(
        "line",
        {"order_id": "int", "line_no": "smallint"},
        lambda n: (str(n // 6), str(n % 6)),
        {"qty": "bigint", "price": "numeric(12,4)", "changed": "timestamp", "ratio": "real"},
    ),
    Table(
        "doc",
        {"id": "uuid"},
        lambda n: (f"'{uuid.UUID(int=n)}'",),
        {"title": "text", "body": "text", "meta": "json", "props": "jsonb", "raw": "bytea"},
        toasted=("body", "raw"),
    ),
    # swaps and shifts in one statement
    Table(
        "rank",
        {"place": "bigint"},
        lambda n: (str(n),),
        {"who": "text", "story": "text", "score": "double precision", "tags": "text[]", "marks": "int[]", "at": "time"},
        toasted=("story",),
        deferred=True,
        statements=(
            lambda a, b: f"update rank set place = case place when {a} then {b} else {a} end where place in ({a}, {b})",
            lambda a, b: f"update rank set place = place + 1 where place between {min(a, b)} and {min(a, b) + 3}",
        ),
    ),
    Table(
        "setting",
        {"name": "text"},
        lambda n: (_text(f"{TEXTS[n % len(TEXTS)]}{n}"),),
        {"value": "text", "enabled": "boolean"},
    ),
    Table("event", {"id": "bigint"}, lambda n: (str(2**53 + n),), {"kind": "text", "happened": "timestamptz", "code": "uuid"}),
]


class Source:
    """A database with the tables, and what its clients did."""

    def __init__(self, server: Postgres, name: str) -> None:
        self.server = server
        self.name = name
        self.writing = threading.Event()
        self.has_added = threading.Event()
        server.psql("postgres", f"create database {name}")
        for table in TABLES:
            columns = ", ".join(f"{name} {type_}" for name, type_ in {**table.keys, **table.columns}.items())
            deferred = "deferrable initially deferred" if table.deferred else ""
            self.sql(f"create table {table.name} ({columns}, primary key ({', '.join(table.keys)}) {deferred})")
            for column in table.toasted:
                # not compressed, so long enough to be stored elsewhere
                self.sql(f"alter table {table.name} alter column {column} set storage external")
            if table.deferred:
                self.sql(f"alter table {table.name} replica identity full")

    def sql(self, sql: str) -> str:
        return self.server.psql(self.name, sql)

    def seed(self) -> None:
        chance = Random(0)
        self.sql("".join(_insert(t, n, chance, added=False) + ";\n" for t in TABLES for n in range(0, KEYS, 2)))

    def change_shape(self, wait: float) -> None:
        """What happens to tables while clients write, after some seconds of it."""
        time.sleep(wait)
        for table in TABLES:
            for column, type_ in table.added.items():
                self.sql(f"alter table {table.name} add column {column} {type_}")
        self.has_added.set()
        self.sql("truncate event")

    def overtake(self) -> None:
        """A key is given to a row before the one that has it is gone: what a check at commit allows."""
        for table in TABLES:
            if not table.deferred:
                continue
            chance, n = Random(1), KEYS + CLIENTS
            self.sql(_insert(table, n, chance, added=True))
            with (self.server.folder / "errors").open("wb") as log:
                heir = self.server.session(self.name, log)
                self._tell(heir, f"begin;\n{_insert(table, n, chance, added=True)}")
                self.sql(_delete(table, n))
                self._tell(heir, "commit")
                heir.communicate()
            assert self.sql(f"select count(*) from {table.name} where {_is(table, n)}") == "1\n"

    def write(self, client: int, errors: Path) -> None:
        """Transactions of one client, as long as `writing` is set."""
        chance = Random(client)
        with errors.open("wb") as log:
            session = self.server.session(self.name, log)
            try:
                self._tell(session, f"set time zone '{ZONES[client % len(ZONES)]}'")
                while self.writing.is_set():
                    self._tell(session, self._transaction(chance, client))
                    time.sleep(chance.uniform(0, 0.04))
            finally:
                session.communicate()
        found = {line.rsplit(":", 1)[-1].strip() for line in errors.read_text().splitlines() if line.startswith("ERROR")}
        assert found <= EXPECTED_ERRORS, f"client {client}: {found - EXPECTED_ERRORS}"

    @staticmethod
    def _tell(session: subprocess.Popen[str], sql: str) -> None:
        assert session.stdin
        assert session.stdout
        session.stdin.write(f"{sql};\n\\echo done\n")
        session.stdin.flush()
        line = session.stdout.readline()
        assert line == "done\n", f"psql ended: {line}"

    def _transaction(self, chance: Random, client: int) -> str:
        statements = []
        for _ in range(chance.randint(1, 6)):
            statement = self._statement(chance, client)
            undone = chance.random() < 0.05
            statements += ["savepoint s", statement, "rollback to s"] if undone else [statement]
            if chance.random() < 0.05:
                statements.append(f"select pg_sleep({chance.uniform(0, 0.3):.3f})")
        end = "rollback" if chance.random() < 0.08 else "commit"
        return ";\n".join(["begin", *statements, end])

    def _statement(self, chance: Random, client: int) -> str:
        table = chance.choice(TABLES)
        n, other = chance.sample(range(KEYS), 2)
        added = self.has_added.is_set()
        kind = chance.choices(list(STATEMENTS), list(STATEMENTS.values()))[0]
        if kind == "own" and table.statements:
            return chance.choice(table.statements)(n, other)
        if kind == "insert":
            return _insert(table, n, chance, added)
        if kind == "delete":
            return _delete(table, n)
        if kind == "replace":
            return f"{_delete(table, n)};\n{_insert(table, n, chance, added)}"
        if kind == "move":
            return _move(table, n, other)
        if kind == "chain":
            third = (other + 1) % KEYS
            return f"{_move(table, other, third)};\n{_move(table, n, other)}"
        if kind == "swap":
            spare = KEYS + client
            return f"{_move(table, n, spare)};\n{_move(table, other, n)};\n{_move(table, spare, other)}"
        return _update(table, n, chance, added)


def _insert(table: Table, n: int, chance: Random, added: bool) -> str:
    columns = {**table.columns, **(table.added if added else {})}
    values = [*table.key(n), *(_value(type_, chance, long=name in table.toasted) for name, type_ in columns.items())]
    # a key that is checked at commit cannot be asked for before it
    unless = "" if table.deferred or chance.random() < 0.1 else " on conflict do nothing"
    return f"insert into {table.name} ({', '.join([*table.keys, *columns])}) values ({', '.join(values)}){unless}"


def _update(table: Table, n: int, chance: Random, added: bool) -> str:
    columns = {**table.columns, **(table.added if added else {})}
    names = [name for name in columns if chance.random() < (0.1 if name in table.toasted else 0.4)] or [next(iter(columns))]
    values = ", ".join(f"{name} = {_value(columns[name], chance, long=name in table.toasted)}" for name in names)
    return f"update {table.name} set {values} where {_is(table, n)}"


def _delete(table: Table, n: int) -> str:
    return f"delete from {table.name} where {_is(table, n)}"


def _move(table: Table, n: int, to: int) -> str:
    values = ", ".join(f"{name} = {value}" for name, value in zip(table.keys, table.key(to), strict=True))
    is_free = f"not exists (select from {table.name} where {_is(table, to)})"
    return f"update {table.name} set {values} where {_is(table, n)} and {is_free}"


def _is(table: Table, n: int) -> str:
    return " and ".join(f"{name} = {value}" for name, value in zip(table.keys, table.key(n), strict=True))


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _value(type_: str, chance: Random, long: bool = False) -> str:
    """SQL of a random value; sometimes null."""
    if chance.random() < 0.1:
        return "null"
    if type_.endswith("[]"):
        return f"array[{', '.join(_value(type_[:-2], chance) for _ in range(chance.randint(0, 3)))}]::{type_}"
    digits = f"{chance.randrange(16**8):08x}"
    # also before there were time zones of whole minutes
    years = chance.choice(((1950, 2075), (1, 9990)))
    moment = datetime(chance.randint(*years), 1, 1) + timedelta(microseconds=chance.randrange(365 * 86_400_000_000))
    makers: dict[str, Callable[[], str]] = {
        "text": lambda: f"repeat('{digits}', 400)" if long else _text(chance.choice(TEXTS) + digits),
        "bytea": lambda: f"decode(repeat('{digits}', {700 if long else 2}), 'hex')",
        "smallint": lambda: str(chance.randint(-(2**15), 2**15 - 1)),
        "int": lambda: str(chance.randint(-(2**31), 2**31 - 1)),
        "bigint": lambda: str(chance.randint(-(2**63) + 1, 2**63 - 1)),
        "numeric(12,4)": lambda: f"{chance.randint(-(10**7), 10**7)}.{chance.randrange(10**4):04}",
        "numeric(38,10)": lambda: f"{chance.randint(-(10 ** chance.randint(1, 28)) + 1, 10**27)}.{chance.randrange(10**10):010}",
        "real": lambda: f"{chance.uniform(-1, 1) * 10 ** chance.randint(-30, 30):.9e}",
        "double precision": lambda: f"{chance.uniform(-1, 1) * 10 ** chance.randint(-290, 290):.17e}",
        "boolean": lambda: chance.choice(("true", "false")),
        "date": lambda: f"'{moment.date()}'",
        "time": lambda: f"'{moment.time()}'",
        "timestamp": lambda: f"'{moment}'",
        "timestamptz": lambda: f"'{moment}+00'",
        "uuid": lambda: f"'{uuid.UUID(int=chance.getrandbits(128))}'",
        "json": lambda: _text(_json(chance)),
        "jsonb": lambda: _text(_json(chance)),
    }
    return makers[type_]()


def _json(chance: Random) -> str:
    values = (None, True, 1, 0.25, 2**60, 'x\n"', [1, {"z": []}])
    value = {chance.choice(("b", "a", "cc")): chance.choice(values) for _ in range(3)}
    return json.dumps(value, ensure_ascii=chance.random() < 0.5)
