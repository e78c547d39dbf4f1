"""Kill real runs and operations, repeat them, and compare with twins that nobody killed: `make chaos KILLS=10`.

Stages, each beginning where the one before ended: a run, a replay, a compaction, an erasure. Each is done once in peace: that
is the twin. Then, for every kill, its start is put back, its command is killed (kill -9, or Ctrl-C) and repeated; rows, Delta
versions and live files of every table must be the twin's. Kills strike just after a commit that the twin made, somewhere before
its next one, or at a random moment. A run that meets a fault (a log or a folder that cannot be written, a ledger without its
file, broken `_last_checkpoint`s) must end well, or with an error and, repeated, as the twin.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltalake import DeltaTable, QueryBuilder

from tests.scenarios.project import UserProject

TABLES: dict[str, dict[str, Any]] = {
    "merged": {"keys": ["id"]},
    "partitioned": {"keys": ["id"], "partition_by": ["part"], "apply": "replace_partitions"},
    "moving": {"keys": ["id"], "old_keys": {"id": "old_id"}, "history": "table"},
}
COLUMNS = {"op": "string", "lsn": "bigint", "id": "bigint", "old_id": "bigint", "part": "int", "name": "string"}
# A process of one run, with the package's own choice of compiler; checkpoints are made, and may be broken, early.
SPARK = {
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "",
    "spark.databricks.delta.properties.defaults.checkpointInterval": "2",
}
LAYERS = {"cdc_change_sets": "ledger", "stg": "staging", "int": "keys", "hist": "history", "final": "final", "cdc_runs": "record"}
NOT_COMPARED = {"discovered_at", "_cdc_staged_at"}  # moments


def layer_of(table: str) -> str:
    return LAYERS.get(table) or LAYERS.get(table.split("_")[0], table)


class Source:
    """One table of the source, and its changes. Of a table with moves some have a code that is not configured at first: X."""

    def __init__(self, seed: int, *, moves: bool) -> None:
        self.random = random.Random(seed)
        self.moves = moves
        self.rows: dict[int, dict[str, Any]] = {}
        self.lsn = 0

    def change_set(self, size: int) -> str:
        return "".join(json.dumps(self.change()) + "\n" for _ in range(size))

    def change(self) -> dict[str, Any]:
        self.lsn += 1
        key = self.random.randrange(60)
        row = {"op": "U" if key in self.rows else "I", "lsn": self.lsn, "id": key, "part": self.lsn % 4, "name": f"n{self.lsn}"}
        if key in self.rows and self.random.random() < 0.2:
            del self.rows[key]
            return {**row, "op": "D", "part": None, "name": None}
        if key in self.rows and self.moves and self.random.random() < 0.3:
            del self.rows[key]
            row |= {"old_id": key, "id": 1000 + self.lsn}
        elif self.moves and self.random.random() < 0.1:
            row["op"] = "X"
        self.rows[row["id"]] = row
        return row

    @property
    def final(self) -> Counter[tuple[int, int, int, str]]:
        return Counter((r["id"], r["lsn"], r["part"], r["name"]) for r in self.rows.values())


@dataclass(frozen=True)
class Commit:
    at: int
    table: str
    version: int
    operation: str

    @property
    def id(self) -> tuple[str, int]:
        return self.table, self.version


def newest_versions(tables: Path) -> dict[str, int]:
    found = {}
    for log in tables.glob("*/_delta_log"):
        found[log.parent.name] = max((int(f.stem) for f in log.glob("*.json") if f.stem.isdigit()), default=-1)
    return found


def commits_since(tables: Path, versions: dict[str, int]) -> Iterator[Commit]:
    """The commits that came meanwhile. versions: the newest of each table, brought up to date."""
    for table in os.listdir(tables) if tables.is_dir() else ():
        log, version = tables / table / "_delta_log", versions.get(table, -1) + 1
        while (file := log / f"{version:020d}.json").exists():
            info = json.loads(file.open().readline()).get("commitInfo", {})
            yield Commit(file.stat().st_mtime_ns, table, version, info.get("operation", ""))
            versions[table], version = version, version + 1


@dataclass(frozen=True)
class Kill:
    """after: the table and version of the commit that it waits for, None: the start. delay: seconds from then on."""

    after: tuple[str, int] | None
    delay: float
    signal: int = signal.SIGKILL


@dataclass
class Done:
    """What came of a process. commits: those that it made, in their order. began: as `Commit.at`."""

    began: int
    commits: list[Commit] = field(default_factory=list)
    said: str = ""
    code: int = 0
    killed: bool = False
    seconds: float = 0


def execute(command: Sequence[str], tables: Path, kill: Kill | None = None) -> Done:
    """Run a command to its end, or kill it."""
    versions, done, due = newest_versions(tables), Done(time.time_ns()), None
    process = subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=_hear_ctrl_c
    )
    said: list[str] = []
    assert process.stdout is not None
    # it ends with the last process that has the pipe, and that is Java
    reader = threading.Thread(target=lambda: said.append(process.stdout.read()), daemon=True)
    reader.start()
    try:
        while process.poll() is None:
            done.commits += commits_since(tables, versions)
            now = time.monotonic()
            if due is None and kill and (kill.after is None or kill.after in {commit.id for commit in done.commits}):
                due = now + kill.delay
            if due is not None and now >= due and not done.killed:
                os.killpg(process.pid, kill.signal)
                done.killed = True
            time.sleep(0.005)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    reader.join(60)
    done.commits = sorted([*done.commits, *commits_since(tables, versions)], key=lambda commit: commit.at)
    done.said, done.code, done.seconds = "".join(said), process.returncode, (time.time_ns() - done.began) / 1e9
    return done


def _hear_ctrl_c() -> None:
    # a shell's background job ignores SIGINT, and so would its children
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@dataclass(frozen=True)
class State:
    """A table as Delta has it. on_disk: Parquet and log files in its folder, those that no version needs among them."""

    version: int
    files: int
    rows: Counter[str]
    on_disk: tuple[int, int]


def rows_of(folder: Path) -> list[dict[str, Any]]:
    table = DeltaTable(str(folder))
    rows = QueryBuilder().register("t", table).execute("select * from t").read_all()
    return rows.to_struct_array().to_pylist()


def states(tables: Path) -> dict[str, State]:
    found = {}
    for name in newest_versions(tables):
        folder = tables / name
        table, rows = DeltaTable(str(folder)), rows_of(folder)
        if layer_of(name) == "record":
            rows = []
        on_disk = len(list(folder.rglob("*.parquet"))), len(list((folder / "_delta_log").glob("*.json")))
        found[name] = State(table.version(), len(table.file_uris()), Counter(map(_compared, rows)), on_disk)
    return found


def _compared(row: dict[str, Any]) -> str:
    left_out = NOT_COMPARED | ({"_cdc_raw"} if row.get("_cdc_error") == "erased" else set())  # a hash with a salt
    return repr([(name, value) for name, value in row.items() if name not in left_out])


@dataclass(frozen=True)
class Stage:
    """commands: the first one is killed. table: the source table whose commits make the gaps. purges: no unused file stays."""

    name: str
    table: str
    commands: Sequence[Sequence[str]]
    purges: bool = False


@dataclass(frozen=True)
class Twin:
    """A stage that nobody killed: start and end are copies of the lake, first what came of the first command."""

    stage: Stage
    start: Path
    end: Path
    first: Done
    states: Mapping[str, State]

    def chain(self) -> list[Commit]:
        shared = ("ledger", "record")
        return [c for c in self.first.commits if layer_of(c.table) in shared or self.stage.table in c.table]

    def label(self, commit: Commit) -> str:
        layer = layer_of(commit.table)
        several = sum(layer_of(c.table) == layer for c in self.chain()) > 1
        return f"{layer} ({commit.operation.lower()})" if several else layer

    def gap(self, commits: Sequence[Commit]) -> str:
        """Between which commits a process stopped that made these."""
        chain, made = self.chain(), {commit.id for commit in commits}
        last = next((self.label(c) for c in reversed(commits) if c.id in {each.id for each in chain}), "start")
        return f"{last} → {next((self.label(c) for c in chain if c.id not in made), 'end')}"

    def kill(self, place: int, share: float, how: int = signal.SIGKILL) -> Kill:
        """A kill in a gap: after the commit at that place (-1: the start), a share of the time from it to the next one."""
        chain = self.chain()
        place = min(place, len(chain) - 1)
        moments = [self.first.began, *(commit.at for commit in chain), self.first.began + int(self.first.seconds * 1e9)]
        return Kill(chain[place].id if place >= 0 else None, share * (moments[place + 2] - moments[place + 1]) / 1e9, how)

    def anywhere(self, share: float, how: int) -> Kill:
        return Kill(None, share * self.first.seconds, how)

    def differences(self, found: Mapping[str, State], failed: bool = False) -> Differences:
        """failed: the run failed once, and recorded that."""
        out = Differences()
        for name in sorted({*self.states, *found}):
            if name not in found or name not in self.states:
                out.wrong.append(f"{name}: {'not ' if name not in found else ''}there")
                continue
            layer, twin, it = layer_of(name), self.states[name], found[name]
            lost, more = (twin.rows - it.rows).total(), (it.rows - twin.rows).total()
            out.lost, out.more = out.lost + lost, out.more + more
            if lost or more:
                out.wrong.append(f"{name}: {lost} rows lost, {more} too many")
            # what a run that was killed did is not recorded, nor is it by the next one, which finds it done
            if it.version > twin.version + (failed and layer == "record") or (it.version < twin.version and layer != "record"):
                out.wrong.append(f"{name}: version {it.version}, the twin's is {twin.version}")
            if layer != "record" and it.files != twin.files:
                out.wrong.append(f"{name}: {it.files} live files, the twin has {twin.files}")
            if self.stage.purges and self.stage.table in name and it.on_disk != twin.on_disk:
                out.wrong.append(f"{name}: {it.on_disk} Parquet and log files in its folder, in the twin's {twin.on_disk}")
        return out


@dataclass
class Differences:
    """lost, more: rows. wrong: all that a kill may not change."""

    lost: int = 0
    more: int = 0
    wrong: list[str] = field(default_factory=list)


class Lab:
    """A project, its feed with two change sets a table, and its lake, of which copies are put back."""

    def __init__(self, folder: Path, tables: Mapping[str, dict[str, Any]] = TABLES, seed: int = 1) -> None:
        self.folder, self.named = folder, tables
        self.lake = folder / "lake"
        self.project = UserProject(folder / "project", lake=self.lake, schema="chaos", spark_settings=SPARK)
        self.tables = self.project.tables
        self.landing = self.project.path / "landing"
        self.sources = {name: Source(seed * 10 + n, moves=name == "moving") for n, name in enumerate(tables)}
        where = ["--project-dir", str(self.project.path), "--profiles-dir", str(self.project.path)]
        self.dbt = [str(Path(sys.executable).with_name("dbt")), "--quiet", "run", *where]
        self.cdc = lambda *words: [str(Path(sys.executable).with_name("delta-cdc")), *map(str, words), *where]

    def configure(self, **settings: Any) -> None:
        feed = {
            "format": "rows",
            "location": f"{self.landing}/{{table}}",
            "change_set_order": "name",
            "operation": "op",
            "sequence_by": ["lsn"],
            "except_columns": ["op", "old_id"],
            **settings,
        }
        self.project.configure(
            "source", settings=feed, tables=[{"name": name, "cdc": cdc, "columns": COLUMNS} for name, cdc in self.named.items()]
        )
        self.project.generate()

    def deliver(self, number: int) -> None:
        for name, source in self.sources.items():
            (self.landing / name).mkdir(parents=True, exist_ok=True)
            (self.landing / name / f"{number:04d}.jsonl").write_text(source.change_set(40))

    def begin(self) -> None:
        """The first run, in which rows are quarantined; then their code is configured, and more has come."""
        self.configure()
        self.deliver(1)
        self.succeed(self.dbt)
        self.configure(operation_codes={"X": "U"})
        self.deliver(2)

    def stages(self) -> list[Stage]:
        """After `begin`."""
        moved = max(self.sources["moving"].rows)
        return [
            Stage("run", "moving", [self.dbt]),
            Stage("replay", "moving", [self.cdc("replay", "moving"), self.dbt]),
            Stage("compact", "merged", [self.cdc("compact", "merged", "--before", 60), self.dbt]),
            Stage("erase", "moving", [self.cdc("erase", "moving", moved, "--yes")], purges=True),
        ]

    def succeed(self, command: Sequence[str]) -> Done:
        done = execute(command, self.tables)
        if done.code:
            raise AssertionError(f"{' '.join(command)}\n{done.said}")
        return done

    def put_back(self, copy: Path) -> None:
        shutil.rmtree(self.lake)
        shutil.copytree(copy, self.lake)

    def twin(self, stage: Stage) -> Twin:
        start, end = (self.folder / f"{stage.name} {when}" for when in ("start", "end"))
        shutil.copytree(self.lake, start)
        first, *_ = [self.succeed(command) for command in stage.commands]
        shutil.copytree(self.lake, end)
        return Twin(stage, start, end, first, states(self.tables))

    def killed(self, twin: Twin, kill: Kill) -> tuple[Done, Differences]:
        """Kill its first command, and repeat all."""
        self.put_back(twin.start)
        done = execute(twin.stage.commands[0], self.tables, kill)
        return done, self.repeated(twin)

    def met(self, twin: Twin, fault: Fault) -> tuple[Done, Differences]:
        """Let its first command meet a fault; put that right, and repeat all."""
        self.put_back(twin.start)
        with fault.happens(self.tables):
            done = execute([*_WITHOUT_OVERRIDE, *twin.stage.commands[0]], self.tables)
        found = self.repeated(twin, failed=True)
        if fault.says is None and done.code:
            found.wrong.append(f"it failed: {done.said}")
        elif fault.says is not None and not (done.code and re.search(fault.says, done.said)):
            found.wrong.append(f"it ended with {done.code} and did not say `{fault.says}`: {done.said}")
        return done, found

    def repeated(self, twin: Twin, failed: bool = False) -> Differences:
        try:
            for command in twin.stage.commands:
                self.succeed(command)
        except AssertionError as error:
            return Differences(wrong=[f"repeated: {error}"])
        return twin.differences(states(self.tables), failed)

    def against_source(self) -> list[str]:
        """What differs from the source, once all that came was applied."""
        wrong = []
        for name, source in self.sources.items():
            found = Counter((r["id"], r["lsn"], r["part"], r["name"]) for r in rows_of(self.tables / f"final_{name}"))
            if found != source.final:
                wrong.append(f"final_{name}: {source.final - found} lost, {found - source.final} too many")
            staged = sorted(row["lsn"] for row in rows_of(self.tables / f"stg_source__{name}"))
            if staged != list(range(1, source.lsn + 1)):
                wrong.append(f"stg_source__{name}: {len(staged)} changes, {len(set(staged))} different ones, of {source.lsn}")
        return wrong


@dataclass(frozen=True)
class Fault:
    """says: what the run's error says, an expression; None: the run does not fail. happens: given the folder of the tables."""

    name: str
    says: str | None
    happens: Callable[[Path], AbstractContextManager[None]]


# root writes where nobody may
_WITHOUT_OVERRIDE = ["setpriv", "--bounding-set", "-dac_override"] if os.geteuid() == 0 else []


def _unwritable(folder: str) -> Callable[[Path], AbstractContextManager[None]]:
    @contextmanager
    def happens(tables: Path) -> Iterator[None]:
        (tables / folder).chmod(0o555)
        try:
            yield
        finally:
            (tables / folder).chmod(0o755)

    return happens


@contextmanager
def _ledger_without_its_file(tables: Path) -> Iterator[None]:
    away = {file: file.read_bytes() for file in (tables / "cdc_change_sets").glob("*.parquet")}
    for file in away:
        file.unlink()
    yield
    for file, content in away.items():
        file.write_bytes(content)


@contextmanager
def _broken_last_checkpoints(tables: Path) -> Iterator[None]:
    for log in tables.glob("*/_delta_log"):
        (log / "_last_checkpoint").write_text('{"version":')
    yield


FAULTS = [
    Fault("a commit of staging fails", r"_delta_log/.*Permission denied", _unwritable("stg_source__moving/_delta_log")),
    Fault("staging's folder takes no file", r"stg_source__moving/.*Permission denied", _unwritable("stg_source__moving")),
    Fault("final's folder takes no file", r"final_moving/.*Permission denied", _unwritable("final_moving")),
    Fault("the ledger's file vanished", "cdc_change_sets", _ledger_without_its_file),
    Fault("`_last_checkpoint` is broken everywhere", None, _broken_last_checkpoints),
]

# Ten kills: stage, and the place of the commit that they come after; `any`: one of all but the last.
ROUND: list[tuple[str, int | str]] = [
    ("run", 1),
    ("compact", "any"),
    ("erase", "any"),
    ("replay", "any"),
    ("run", 2),
    ("run", 0),
    ("run", 3),
    ("run", 4),
    ("run", "random"),
    ("run", "Ctrl-C"),
]


def kills(twin: Twin, count: int, chance: random.Random) -> Iterator[Kill]:
    """The kills of a stage, of `count` kills in all."""
    for number in range(count):
        stage, place = ROUND[number % len(ROUND)]
        cycle = number // len(ROUND)
        if stage != twin.stage.name:
            continue
        if isinstance(place, int):
            yield twin.kill(place, cycle and chance.uniform(0, 0.8))  # in the first cycle just after the commit
        elif place == "any":  # spread evenly, however many they are
            inside = max(len(twin.chain()) - 1, 1)
            yield twin.kill(int(inside * (0.618 * cycle % 1)), cycle and chance.uniform(0, 0.8))
        else:
            yield twin.anywhere(chance.uniform(0.2, 0.95), signal.SIGINT if place == "Ctrl-C" else signal.SIGKILL)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-faults", action="store_true", help="kill only")
    arguments = parser.parse_args()
    folder, chance = Path(tempfile.mkdtemp(prefix="chaos-")), random.Random(arguments.seed)
    lab = Lab(folder, seed=arguments.seed)
    lab.begin()
    struck: dict[str, Counter[str]] = defaultdict(Counter)
    hows, total, wrong, tried, survived = Counter[str](), Differences(), list[str](), 0, 0
    twins: dict[str, Twin] = {}

    def came(what: str, found: Differences) -> None:
        nonlocal tried, survived
        tried, survived = tried + 1, survived + (not found.wrong)
        total.lost, total.more = total.lost + found.lost, total.more + found.more
        wrong.extend(f"{what}: {each}" for each in found.wrong)
        print(f"{what}: {'; '.join(found.wrong) or 'as the twin'}", flush=True)

    for stage in lab.stages():
        twin = lab.twin(stage)
        print(f"{stage.name}: {' → '.join(map(twin.label, twin.chain()))}, {twin.first.seconds:.0f} s", flush=True)
        if stage.name == "replay":
            wrong += lab.against_source()
        for kill in kills(twin, arguments.kills, chance):
            done, found = lab.killed(twin, kill)
            how, gap = "Ctrl-C" if kill.signal == signal.SIGINT else "kill -9", twin.gap(done.commits)
            if done.killed:
                struck[stage.name][gap] += 1
                hows[how] += 1
            came(f"{stage.name}: {how} after {done.seconds:.1f} s, {gap}" if done.killed else f"{stage.name}: not struck", found)
        twins[stage.name] = twin
        lab.put_back(twin.end)
    for fault in () if arguments.no_faults else FAULTS:
        done, found = lab.met(twins["run"], fault)
        said = re.search(f".{{0,80}}(?:{fault.says})", done.said) if fault.says else None
        came(f"{fault.name}: {said[0].strip() if said else 'no error'}", found)

    print(f"\n{sum(hows.values())} kills ({', '.join(f'{n} {how}' for how, n in hows.items())}), by the gap that they struck:")
    for name, gaps in struck.items():
        print(f"  {name}: " + ", ".join(f"{gap} {n}" for gap, n in gaps.most_common()))
    if arguments.kills and not hows:
        wrong.append("No kill struck: each process had ended before.")
    print(f"{tried} kills and faults tried, {survived} survived; rows lost: {total.lost}, rows too many: {total.more}.")
    if wrong:
        print("\n".join(wrong), f"All of it is in {folder}.", sep="\n")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
