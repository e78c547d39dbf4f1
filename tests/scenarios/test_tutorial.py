"""docs/tutorial.md, as it is printed: its files, its commands, and what these say."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from delta_cdc.cli import main
from tests.scenarios.project import PACKAGE, SPARK_SETTINGS

pytestmark = pytest.mark.dbt

TUTORIAL = PACKAGE / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# what differs from one run to the next
VARYING = (
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "MOMENT"),
    (r"\d\d:\d\d:\d\d", "TIME"),
    (r"\d+ [dhm] \d+ [hms]", "SPAN"),
    (r"\b\d+ s\b|\b\d+\.\d$", "SECONDS"),
    (r"[ \t]+", " "),
)


def commands(block: str) -> list[tuple[str, list[str]]]:
    """(command, the lines that it says) of a block, in which a command stands behind `$ `."""
    out: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            out.append((line.removeprefix("$ "), []))
        else:
            out[-1][1].append(line)
    return out


def alike(lines: list[str]) -> list[str]:
    out = []
    for line in lines:
        for pattern, word in VARYING:
            line = re.sub(pattern, word, line.rstrip())
        out.append(line)
    return [line for line in out if line]


def test_the_tutorial_does_what_it_says(tmp_path: Path, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dbt.cli.main import dbtRunner

    monkeypatch.chdir(tmp_path)
    done = []
    for language, block in BLOCK.findall(TUTORIAL.read_text()):
        if language == "bash":  # what installs the packages
            continue
        if language == "sh":
            subprocess.run(["bash", "-euc", block.replace("../delta_cdc", str(PACKAGE))], check=True, cwd=tmp_path)
            profile = tmp_path / "profiles.yml"
            if str(lake) not in profile.read_text():  # one Spark for all tests of the process
                profiles = yaml.safe_load(profile.read_text())
                profiles["my_lake"]["outputs"]["dev"] |= {"root": str(lake), "server_side_parameters": SPARK_SETTINGS}
                profile.write_text(yaml.safe_dump(profiles))
            continue
        for command, says in commands(block):
            name, *arguments = shlex.split(command)
            if name == "dbt":
                assert dbtRunner().invoke(arguments).success, command
            else:
                said = CliRunner().invoke(main, arguments)
                assert said.exit_code == 0, said.output
                # tables of a run stand in the order of their seconds
                assert sorted(alike(said.output.splitlines())) == sorted(alike(says)), f"$ {command}\n{said.output}"
            done.append(command)
    assert [command.split()[1] for command in done] == [
        "deps",
        "init",
        "validate",
        "generate",
        "run",
        "run",
        "history",
        "explain",
        "status",
    ]
