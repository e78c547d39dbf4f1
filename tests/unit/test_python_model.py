"""What a Python model is given beside its session, without Spark."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dbt.adapters.sparkdelta import delta_log, tuning
from dbt.adapters.sparkdelta.python_model import SessionPythonModel
from dbt.adapters.sparkdelta.settings import SMALL_TABLES

MODEL = """
class dbtObj:
    def __init__(self, load):
        self.ref = load

def model(dbt, session):
    dbt.tune_for(dbt.ref("s.t"))
"""


def test_a_python_model_that_reads_much_leaves_what_the_profile_says(monkeypatch: pytest.MonkeyPatch) -> None:
    settings, key = dict(SMALL_TABLES), "spark.sql.adaptive.enabled"
    monkeypatch.setattr(delta_log, "size_in_bytes", lambda *_: tuning.MUCH["table"])
    session = SimpleNamespace(
        table=lambda name: object(),
        conf=SimpleNamespace(get=lambda name, _: settings.get(name), set=settings.__setitem__),
        sparkContext=SimpleNamespace(defaultParallelism=4),
    )
    parsed = {"original_file_path": "models/m.py"}
    SessionPythonModel(parsed, session, "m__dbt_tmp", lambda plan: None, {key: "false"}).submit(MODEL)
    assert settings == {**SMALL_TABLES, **tuning.LARGE_TABLES, **dict.fromkeys(tuning.A_TASK_A_CORE, "4"), key: "false"}
