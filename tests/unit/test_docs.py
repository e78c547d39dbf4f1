"""What the documentation shows can be done: its links lead somewhere, its code is code, its commands are known."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from delta_cdc.cli import main

ROOT = Path(__file__).resolve().parents[2]
FIRST = (ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md")
PAGES = sorted([*FIRST, *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests/cases").glob("*.md")])


def blocks(language: str) -> list[object]:
    found = []
    for page in PAGES:
        for place, block in enumerate(re.findall(rf"^ *```{language}\n(.*?)^ *```", page.read_text(), re.DOTALL | re.MULTILINE)):
            found.append(pytest.param(block, id=f"{page.relative_to(ROOT)}-{place}"))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page):
    targets = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", page.read_text()))
    local = [target for target in targets if not re.match(r"https?:|#", target)]
    assert [target for target in local if not (page.parent / target.split("#")[0]).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_that_a_page_names_is_known(page):
    named = re.findall(r"delta-cdc ([a-z][a-z-]*)", page.read_text())
    assert [name for name in named if name not in main.commands] == []


@pytest.mark.parametrize("block", blocks("python"))
def test_python_is_python(block):
    compile(block, "docs", "exec")


@pytest.mark.parametrize("block", blocks("yaml"))
def test_yaml_is_yaml(block):
    yaml.safe_load(block)


@pytest.mark.parametrize("block", blocks("cron"))
def test_a_line_of_cron_has_five_fields_and_a_command_that_exists(block):
    for line in block.splitlines():
        *fields, command = line.split(maxsplit=5)
        assert all(re.fullmatch(r"[\d*/,-]+", field) for field in fields)
        assert re.search(r"\.venv/bin/(delta-cdc|dbt) \w+", command)
