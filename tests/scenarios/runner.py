"""Run cases of any folder through generated models and real dbt runs: `make scenarios CASES="path …" REPORT=report.json`.

Each rows-file (tests/cases/README.md) becomes one table; its change sets arrive one after another, a dbt run for each.
The report is a list of {file, name, status, rule, detail}:

    passed       the rows are those that the file expects, or what it says is refused is refused and left the rows as they were
    difference   the contract says otherwise: tests/cases/differences.json has the rule, the reason and the rows that we give; or
                 where the file expects a refusal, rows are quarantined (Q1)
    failed       neither
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.scenarios.feed_cases import FeedCase, compare, read_feeds, run_feeds
from tests.scenarios.project import UserProject
from tests.scenarios.rows_cases import FEED, RowsCase, read_cases, run_cases
from tests.scenarios.values import difference

DIFFERENCES = Path(__file__).resolve().parents[1] / "cases" / "differences.json"


def find(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """The rows-files and the feeds-folders at these paths, in order."""
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        raise SystemExit(f"CASES names what is not there: {', '.join(missing)}. Give files or folders.")
    files = dict.fromkeys(f for path in paths for f in ([path] if path.is_file() else sorted(path.rglob("*.json"))))
    feeds = sorted({f.parent for f in files if f.name == "expected.json"})
    rows = [f for f in files if f.parent not in feeds and (f in paths or _is_rows_file(f))]
    return rows, feeds


def _is_rows_file(path: Path) -> bool:
    """Whether the file is meant as one; so is what is no JSON, for then it has to be told."""
    try:
        content = json.loads(path.read_text("utf-8-sig"))
    except ValueError:
        return True
    return isinstance(content, dict) and not {"batches", "scd"}.isdisjoint(content)


def judge_each(judgement: Callable[..., dict[str, Any]], cases: Sequence[Any], *about: Sequence[Any]) -> list[dict[str, Any]]:
    """The lines of the cases, each judged with what is told about it; one that cannot be judged has failed."""
    lines = []
    for case, *told in zip(cases, *about, strict=True):
        try:
            lines.append(judgement(case, *told))
        except Exception as error:
            lines.append(_verdict(case, "failed", f"it cannot be judged: {type(error).__name__}: {error}"))
    return lines


def _verdict(case: RowsCase | FeedCase, status: str, detail: str, rule: str | None = None) -> dict[str, Any]:
    return {"file": str(case.path), "name": case.name, "status": status, "rule": rule, "detail": detail}


def judge(case: RowsCase, found: list[dict[str, Any]] | None, differences: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The case's line of the report. found: the rows that its table holds; None: there is no table."""
    verdict = partial(_verdict, case)
    refusal = "\n".join(case.refusals)
    if case.broken:
        return verdict("failed", case.broken)
    if refusal and case.content.get("error"):
        against = case.difference(found) if found is not None and any(case.expected) else None  # of many no row is told
        if against is None:
            return verdict("passed", f"refused: {refusal}")
        return verdict("failed", f"refused, with other rows than those before it (- expected, + found):\n{against}{refusal}")
    ours = differences.get(case.name)
    if ours is not None and not refusal and found is not None:
        columns = ours["rows"][0] if ours["rows"] else None
        shown = found if columns is None else [{k: v for k, v in row.items() if k in columns} for row in found]
        against = difference(ours["rows"], shown)
        if against is None:
            elsewhere = case.difference(found)
            return verdict(
                "difference", f"{ours['why']}\n- expected, + found:\n{elsewhere}" if elsewhere else ours["why"], ours["rule"]
            )
        return verdict("failed", f"not the rows of its difference ({ours['rule']}; - listed, + found):\n{against}")
    if refusal or found is None:
        return verdict("failed", f"refused: {refusal or 'there is no table'}")
    if case.content.get("error") and case.quarantined:
        return verdict("difference", f"refused elsewhere; quarantined here: {case.quarantined}", "Q1")
    against = case.difference(found)
    if against is not None or case.content.get("error"):
        return verdict("failed", f"- expected, + found:\n{against or '  it is refused elsewhere'}")
    return verdict("passed", "")


def judge_feed(case: FeedCase, differences: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The feed's line of the report."""
    verdict = partial(_verdict, case)
    if case.broken:
        return verdict("failed", case.broken)
    quarantined = f"quarantined: {', '.join(case.quarantined)}" if case.quarantined else ""
    refusal = "\n".join(case.refusals)
    refused_elsewhere = any(step.get("error") for step in case.steps)
    if refusal and not refused_elsewhere:
        return verdict("failed", f"refused: {refusal}")
    ours = differences.get(case.name)
    elsewhere = "".join(f"  after step {n}:\n{said}" for n, said in enumerate(case.differences, 1) if said)
    if ours is not None and not refusal:
        against = compare(ours["tables"], case.found)
        if against is None:
            told = f"{ours['why']} {quarantined}".strip()
            return verdict("difference", f"{told}\n- expected, + found:\n{elsewhere}" if elsewhere else told, ours["rule"])
        return verdict("failed", f"not the tables of its difference ({ours['rule']}; - listed, + found):\n{against}")
    against = elsewhere
    if not case.found and not refusal and not any("tables" in step for step in case.steps):
        against += "  there are no tables\n"
    if against or (refused_elsewhere and not refusal):
        return verdict("failed", f"- expected, + found:\n{against or '  it is refused elsewhere'}{quarantined}")
    return verdict("passed", f"refused: {refusal}" if refusal else quarantined)


def rows_of(project: UserProject, case: RowsCase) -> list[dict[str, Any]] | None:
    try:
        if unwanted := case.unwanted(project):
            case.broken = f"the table has {unwanted}, which `columns` leaves out"
        if case.content.get("error"):
            case.quarantined = ", ".join(f"{reason} ({n})" for reason, n in project.quarantined(FEED, case.table))
        return project.rows_if_any(case.query)
    except Exception as error:  # the other cases are told
        case.broken = f"its rows cannot be read: {str(error).splitlines()[0]}"
        return None


def run(paths: Sequence[Path], folder: Path) -> list[dict[str, Any]]:
    rows, feeds = find(paths)
    listed = {entry["name"]: entry for entry in json.loads(DIFFERENCES.read_text())}
    report = []
    cases = read_cases(rows)
    if cases:
        project = UserProject(folder / "project", lake=folder / "lake", schema="scenarios", threads=4)
        with _told_of(cases):
            run_cases(project, cases)
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(partial(rows_of, project), cases))
        report += judge_each(partial(judge, differences=listed), cases, found)
    feed_cases = read_feeds(feeds)
    if feed_cases:
        project = UserProject(folder / "feeds", lake=folder / "lake", schema="feeds", threads=4)
        with _told_of(feed_cases):
            run_feeds(project, feed_cases)
        report += judge_each(partial(judge_feed, differences=listed), feed_cases)
    return report


@contextmanager
def _told_of(cases: Sequence[RowsCase | FeedCase]) -> Iterator[None]:
    """What ends the runs of all cases is told of each."""
    try:
        yield
    except Exception as error:
        traceback.print_exc()
        for case in cases:
            case.broken = case.broken or f"the run ended: {type(error).__name__}: {error}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="make scenarios", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("cases", nargs="+", type=Path, help="rows-files, or folders that hold some")
    parser.add_argument("--report", type=Path, help="where to write the report (JSON)")
    arguments = parser.parse_args()
    if arguments.report:
        arguments.report.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="scenarios-"))
    try:
        report = run(arguments.cases, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if arguments.report:
        arguments.report.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    for line in report:
        if line["status"] != "passed":
            rule = f" ({line['rule']})" if line["rule"] else ""
            print(f"{line['status']}{rule}: {line['file']}\n  {line['name']}\n{line['detail']}\n")
    counts = Counter(line["status"] for line in report)
    print(f"{len(report)} cases: " + ", ".join(f"{counts[s]} {s}" for s in ("passed", "difference", "failed")))
    if counts["difference"] > -(-len(report) // 10):
        print("More than a tenth are differences.")
        return 1
    return 1 if counts["failed"] or not report else 0


if __name__ == "__main__":
    sys.exit(main())
