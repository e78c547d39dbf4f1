"""What the demo starts dbt with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from delta_cdc import demo


class Started(Exception):
    pass


@pytest.mark.parametrize("name", ["Ada, work", "[old]", "a #1", "{x}"])
def test_a_clone_may_be_in_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def start(_: Path, options: list[str]) -> Any:
        raise Started(options[options.index("--vars") + 1])

    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / name)
    monkeypatch.setenv("DBT_PROFILES_DIR", "")
    monkeypatch.setattr(demo, "WarmDbt", start)
    with pytest.raises(Started) as started:
        demo.main()
    assert yaml.safe_load(str(started.value)) == {"demo_landing": str(tmp_path / name / demo.LANDING)}
