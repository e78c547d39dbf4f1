"""What is looked at in a table's log right before a write."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkdelta import delta_log
from dbt.adapters.sparkdelta.impl import SparkdeltaAdapter
from dbt.adapters.sparkdelta.write_plan import WritePlan


@pytest.mark.parametrize("sql", ["insert into s.final_t select 1", "merge into s.final_t as t using u on true"])
@pytest.mark.parametrize(("planned", "now", "refused"), [
    ("final_t@3", "final_t@7", True), ("final_t@3", "final_t@3", False), ("final_t@8", "final_t@7", False),
    ("final_t@0", None, False), ("app", "app@7", False),
])  # fmt: skip
def test_A4_a_write_that_was_planned_before_a_rebuild_is_refused(
    monkeypatch: pytest.MonkeyPatch, sql: str, planned: str, now: str | None, refused: bool
) -> None:
    """To Delta it is another application's: rows would be there twice, or a row as it was before what the rebuild had taken."""
    conf = SimpleNamespace(get=lambda *_: None, set=lambda *_: None, unset=lambda *_: None)
    monkeypatch.setattr(delta_log, "table_state", lambda *_: {"app_id": now})
    monkeypatch.setattr(delta_log, "refuse_overtaken", lambda *_: None)
    ran: list[str] = []

    def execute(sql: str) -> Any:
        ran.append(sql)
        return [SimpleNamespace()]

    adapter: Any = SimpleNamespace(_in_process=True, _session=lambda: SimpleNamespace(conf=conf), execute=execute)
    plan = WritePlan(txn={"app_id": planned, "version": 10, "after": 9})
    if refused:
        with pytest.raises(DbtRuntimeError, match=r"\[DELTA_CONCURRENT_LOAD\] s.final_t: another run has made it anew"):
            SparkdeltaAdapter.execute_write(adapter, sql, plan)
    else:
        SparkdeltaAdapter.execute_write(adapter, sql, plan)
    assert ran == ([] if refused else [sql])
