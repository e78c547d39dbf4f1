"""Every connection has a session of its own."""

from __future__ import annotations

import datetime
import gc
import subprocess
import sys
import threading
import time
import weakref
from typing import TYPE_CHECKING

import pytest
from dbt.tests.util import run_dbt
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkdelta import delta_log
from dbt.adapters.sparkdelta.session import SparkdeltaConnectionWrapper, new_session

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

THING = "{{ config(alias='thing', schema='%s', materialized='incremental') }} select '%s' as owner from range(20)"
BAD_CAST = "select cast('x' as int) as n, current_timezone() as zone"


class TestSessions:
    @pytest.fixture(scope="class")
    def models(self):
        hook = "{{ config(materialized='table', pre_hook='set spark.sql.ansi.enabled = false') }}"
        table = "{{ config(materialized='table') }}"
        return {
            "one.sql": THING % ("one", "one"),
            "two.sql": THING % ("two", "two"),
            "setting.sql": f"{hook} {BAD_CAST}",
            "no_setting.sql": f"-- depends_on: {{{{ ref('setting') }}}}\n{table} {BAD_CAST}",
        }

    def test_two_models_of_one_alias_keep_their_rows(self, project):
        for _ in range(2):
            run_dbt(["run", "--select", "one", "two", "--threads", "4"])
        for owner in ("one", "two"):
            rows = project.run_sql(f"select owner, count(*) from {project.test_schema}_{owner}.thing group by owner", fetch="all")
            assert [tuple(row) for row in rows] == [(owner, 40)]

    def test_a_setting_of_one_model_does_not_reach_another(self, project):
        results = run_dbt(["run", "--select", "setting", "no_setting", "--threads", "1"], expect_pass=False)
        messages = {r.node.name: r.message for r in results}
        assert tuple(project.run_sql("select * from {schema}.setting", fetch="one")) == (None, "UTC")
        assert "CAST_INVALID_INPUT" in messages["no_setting"]  # ANSI is Spark's default


@pytest.mark.usefixtures("spark")
class TestConnection:
    @pytest.fixture
    def handle(self, lake: Path, overrides: dict[str, str]) -> SparkdeltaConnectionWrapper:
        return SparkdeltaConnectionWrapper({"root": lake, "overrides": overrides})

    def test_a_closed_connection_leaves_neither_session_nor_views(self, handle: SparkdeltaConnectionWrapper) -> None:
        session = handle.session
        session.sql("create or replace table of_closed using delta as select 1 as id")
        session.table("of_closed").createOrReplaceTempView("kept")
        assert delta_log.table_state(session, "default", "of_closed", "x")["exists"]
        java, alive = session._jsparkSession, weakref.ref(session)
        handle.close()
        assert not java.sessionState().catalog().getTempView("kept").isDefined()  # though Delta may keep the session
        del session
        new_session(**handle._arguments).createDataFrame([], "a int")  # PySpark itself remembers the newest
        gc.collect()
        assert alive() is None

    def test_a_changed_sql_setting_holds_for_the_new_session(self, lake: Path, overrides: dict[str, str]) -> None:
        session = new_session(root=lake, overrides={**overrides, "spark.sql.shuffle.partitions": "7"})
        assert session.conf.get("spark.sql.shuffle.partitions") == "7"

    def test_a_changed_start_setting_is_refused(self, lake: Path, overrides: dict[str, str]) -> None:
        with pytest.raises(DbtRuntimeError, match=r"already runs Spark with `spark.driver.memory`"):
            new_session(root=lake, overrides={**overrides, "spark.driver.memory": "3g"})

    def test_cancel_stops_the_jobs_of_a_connection(self, handle: SparkdeltaConnectionWrapper) -> None:
        raised: list[BaseException] = []

        def work() -> None:
            try:
                handle.cursor().execute(
                    "create or replace table default.never using delta as "
                    "select count(*) as n from range(100000000) a cross join range(1000000) b "
                    "where a.id % 7 = b.id % 11"
                )
            except DbtRuntimeError as error:
                raised.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        tracker = handle.session.sparkContext.statusTracker()
        until = time.time() + 30
        while not tracker.getJobIdsForGroup(handle._group) and time.time() < until:
            time.sleep(0.05)
        asked = time.time()
        handle.cancel()
        thread.join(30)
        assert time.time() - asked < 10
        assert "cancel" in str(raised[0]).lower()
        with pytest.raises(DbtRuntimeError, match="Cancelled"):
            handle.cursor().execute("select 1")

    @pytest.mark.parametrize(
        ("zone", "hour"), [("UTC", 10), ("Z", 10), ("GMT", 10), ("Europe/Berlin", 11), ("+02:00", 12), ("GMT-01:00", 9)]
    )
    def test_moments_are_those_of_the_session(
        self, handle: SparkdeltaConnectionWrapper, monkeypatch: pytest.MonkeyPatch, zone: str, hour: int
    ) -> None:
        monkeypatch.setenv("TZ", "Asia/Tokyo")  # of this process
        time.tzset()
        try:
            handle.session.conf.set("spark.sql.session.timeZone", zone)
            cursor = handle.cursor()
            cursor.execute(
                "select timestamp'2024-01-01 10:00:00Z' as at, 1 as n, timestamp'9999-12-31 23:59:59.999999' as at, "
                "timestamp'0001-01-01' as `the.first`, array(timestamp'2024-01-01 10:00:00Z') as some"
            )
            at = datetime.datetime(2024, 1, 1, hour)
            assert [tuple(row) for row in cursor.fetchall()] == [(at, 1, datetime.datetime.max, datetime.datetime.min, [at])]
            types = ["timestamp", "int", "timestamp", "timestamp", "array<timestamp>"]
            assert [column[1] for column in cursor.description] == types
        finally:
            monkeypatch.undo()
            time.tzset()

    def test_a_delta_error_keeps_its_text(self, handle: SparkdeltaConnectionWrapper) -> None:
        handle.cursor().execute("create or replace table default.err using delta as select 1 as id")
        with pytest.raises(DbtRuntimeError, match="nosuch") as error:
            handle.cursor().execute(
                "merge into default.err t using (select 1 as id) s on t.nosuch = s.id when matched then delete"
            )
        assert "\tat " not in str(error.value)

    def test_a_merge_of_several_rows_into_one_says_what_that_means(self, handle: SparkdeltaConnectionWrapper) -> None:
        handle.cursor().execute("create or replace table default.twice using delta as select 1 as id, 0 as n")
        twice = "select 1 as id, explode(array(1, 2)) as n"
        with pytest.raises(DbtRuntimeError, match=r"IN_MERGE\] Several of .* one row of default\.twice\. .*`delta-cdc rebuild`"):
            handle.cursor().execute(
                f"merge into default.twice as t using ({twice}) as s on t.id = s.id when matched then update set n = s.n"
            )

    def test_a_locked_metastore_is_told_in_one_sentence(self, spark: SparkSession, lake: Path) -> None:
        code = (
            "from dbt.adapters.sparkdelta.session import root_session\n"
            f"root_session(root={str(lake)!r}, overrides={{'spark.master': 'local[1]'}})\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode != 0
        assert "Another run holds the metastore" in done.stderr.splitlines()[-1]
        assert "\tat " not in done.stderr  # no stack trace of Java's
        assert "WARN" not in done.stderr
        assert spark.sql("select 1").collect()
