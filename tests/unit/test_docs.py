"""What the documentation shows can be done: its links lead somewhere, its code is code, its commands are known.

And every macro says above itself what it is, those of users with their arguments.
"""

from __future__ import annotations

import ast
import configparser
import doctest
import importlib
import json
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import jinja2
import pytest
import yaml

from delta_cdc.cli import main
from delta_cdc.config_reader import load_project
from delta_cdc.discover import discover_files
from delta_cdc.settings import Settings
from delta_cdc.table_list import read_table_list

ROOT = Path(__file__).resolve().parents[2]
FIRST = (ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md")
EXAMPLES = [path for path in (ROOT / "python_helpers").rglob("*.py") if ">>>" in path.read_text()]
MODULES = sorted(".".join(path.relative_to(ROOT / "python_helpers").with_suffix("").parts) for path in EXAMPLES)
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


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_a_docstring_are_what_they_say(module):
    done = doctest.testmod(importlib.import_module(module))
    assert done.attempted
    assert not done.failed


def headings(page: Path) -> set[str]:
    """Those of a page as links name them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", line.lower()) for line in re.findall(r"^#+ (.*)$", text, re.MULTILINE)]
    return {line.replace(" ", "-") for line in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_heading_names_one(page):
    targets = re.findall(r"\]\(([^)\s:]*)#([^)\s]+)\)", page.read_text())
    assert [(name, each) for name, each in targets if each not in headings(page.parent / name if name else page)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_that_a_page_names_is_known(page):
    named = re.findall(r"delta-cdc ([a-z][a-z-]*)", page.read_text())
    assert [name for name in named if name not in main.commands] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_option_that_a_page_gives_a_command_is_one_of_its(page):
    unknown = []
    for name, rest in re.findall(r"delta-cdc ([a-z][a-z-]*)([^`\n|;#]*)", page.read_text()):
        known = {option for parameter in main.commands[name].params for option in (*parameter.opts, *parameter.secondary_opts)}
        unknown += [f"{name} {option}" for option in re.findall(r"(?<!\S)(--[a-z-]+)", rest) if option not in known]
    assert unknown == []


def test_the_errors_that_operations_explains_are_those_that_are_said():
    of_others = {"ConcurrentAppendException", "OutOfMemoryError"}
    text = (ROOT / "docs" / "operations.md").read_text().split("## When a run fails")[1].split("## The commands")[0]
    rows = re.findall(r"^\| (.*?) \|", text, re.MULTILINE)[1:]
    said = {part for row in rows for part in re.findall(r"`([^`]+)`", row)} - of_others
    sources = [path for folder in ("macros", "python_helpers") for path in (ROOT / folder).rglob("*.*")]
    code = "\n".join(path.read_text() for path in sources if path.suffix in (".py", ".sql"))
    assert len(said) > 10
    assert [each for each in said if each not in code] == []


@pytest.mark.parametrize("block", blocks("python"))
def test_python_is_python(block):
    compile(block, "docs", "exec")


@pytest.mark.parametrize("block", blocks("yaml"))
def test_yaml_is_yaml(block):
    yaml.safe_load(block)


@pytest.mark.parametrize("block", [each for each in blocks("yaml") if "sources:" in each.values[0]])
def test_a_source_in_yaml_is_a_configuration(block, tmp_path):
    told = yaml.safe_load(block)
    for source in told["sources"]:
        for table in source.setdefault("tables", [{"name": "any_table"}]):  # what the text has left out
            table.setdefault("columns", [{"name": "id", "data_type": "int"}])
            table.setdefault("config", {}).setdefault("meta", {}).setdefault("cdc", {}).setdefault("keys", ["id"])
    (tmp_path / "models").mkdir()
    (tmp_path / "dbt_project.yml").write_text("name: any_project")
    (tmp_path / "models" / "_sources.yml").write_text(yaml.safe_dump(told))
    assert load_project(tmp_path).tables


@pytest.mark.parametrize("block", blocks("csv"))
def test_a_sheet_is_one_of_settings(block, tmp_path):
    (tmp_path / "sheet.csv").write_text(block)
    given = read_table_list(tmp_path / "sheet.csv", [line.partition(",")[0] for line in block.splitlines()])
    assert given["invoice"]["sequence_by"] == ["changed_at", "position"]
    assert given["invoice"]["partition_by"] == ["year(invoice_date) as invoice_year"]
    assert given["visit"] == {"sequence_by": ["at"], "insert_only": True}
    for settings in given.values():
        Settings.model_validate({"format": "rows", "location": "landing/{table}", **settings})


def test_the_columns_of_cdc_runs_are_those_that_its_page_tells():
    made = (ROOT / "macros/control/record_run.sql").read_text().split("create table if not exists")[1].split("using delta")[0]
    section = (ROOT / "docs" / "operations.md").read_text().split("## cdc_runs\n")[1].split("```")[0]
    told = [name for cell in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE) for name in re.findall(r"`(\w+)`", cell)]
    assert told == re.findall(r"`?(\w+)`? (?:string|bigint|double|timestamp)\b", made)


def test_every_setting_stands_under_a_heading_of_its_page():
    page = (ROOT / "docs" / "configuration.md").read_text().split("## Settings")[1].split("## Defaults by format")[0]
    first, *groups = re.split(r"^### .*\n", page, flags=re.MULTILINE)
    assert first.strip() == ""
    assert all(len(re.findall(r"^\| `", group, re.MULTILINE)) > 1 for group in groups)  # none is empty, or of one setting alone
    assert re.findall(r"^\| `(\w+)`", page, re.MULTILINE) == list(Settings.model_fields)


def test_settings_are_taken_from_the_environment_as_their_page_shows(tmp_path, monkeypatch):
    (block,) = [each.values[0] for each in blocks("yaml") if "env_var('LANDING'" in each.values[0]]
    cdc = {"format": "rows", "sequence_by": ["line"], **yaml.safe_load(block)}
    columns = [{"name": name, "data_type": "int"} for name in ("id", "line", "x")]
    table = {"name": "t", "config": {"meta": {"cdc": {"keys": ["id"]}}}, "columns": columns}
    (tmp_path / "models").mkdir()
    (tmp_path / "dbt_project.yml").write_text("name: any_project")
    (tmp_path / "models" / "_sources.yml").write_text(
        yaml.safe_dump({"sources": [{"name": "shop", "config": {"meta": {"cdc": cdc}}, "tables": [table]}]})
    )
    for name, value in {"MAX_ERRORS": "3", "FULL_IMAGES": "True", "PUBLISHED": "['id', 'line']"}.items():
        monkeypatch.setenv(name, value)
    (found,) = [table.settings for table in load_project(tmp_path).tables]
    assert (found.location, found.max_errors, found.full_images, found.columns) == ("landing/shop", 3, True, ["id", "line"])
    for variables, share in (({}, 0.2), ({"share": 0.5}, 0.5)):
        assert load_project(tmp_path, variables).tables[0].settings.max_delete_share == share


def test_the_message_of_the_page_of_debezium_is_of_the_table_beside_it(tmp_path):
    page = (ROOT / "docs" / "formats" / "debezium.md").read_text()
    message, told = (re.search(rf"```{language}\n(.*?)```", page, re.DOTALL)[1] for language in ("json", "yaml"))
    (tmp_path / "1.jsonl").write_text(message)
    ((name, found),) = discover_files("debezium", [tmp_path / "1.jsonl"], "shop").tables.items()
    (table,) = yaml.safe_load(told)["sources"][0]["tables"]
    assert name == table["config"]["meta"]["cdc"]["source_table"]
    assert list(found.columns) == [column["name"] for column in table["columns"]]


def test_the_settings_that_flat_rows_of_a_product_want_are_those_of_a_case():
    cases = [json.loads(path.read_text()) for path in (ROOT / "tests" / "cases" / "feeds").glob("rows_*/expected.json")]
    given = [{"keys": case.get("key"), **case, **case.get("settings", {}), **case.get("table_settings", {})} for case in cases]
    text = (ROOT / "docs" / "formats" / "rows.md").read_text().split("**What products write**")[1].split("```")[1]
    parts = re.split(r"^#.*\n", text.removeprefix("yaml\n"), flags=re.MULTILINE)
    products = [yaml.safe_load(part)["cdc"] for part in parts if part]
    assert len(products) > 10
    for told in products:
        columns = told.pop("expressions", {}).items()
        alike = [case for case in given if all(case.get(name) == value for name, value in told.items())]
        assert any(columns <= case.get("expressions", {}).items() for case in alike), told


@pytest.mark.parametrize("block", blocks("cron"))
def test_a_line_of_cron_has_five_fields_and_a_command_that_exists(block):
    for line in block.splitlines():
        *fields, command = line.split(maxsplit=5)
        assert all(re.fullmatch(r"[\d*/,-]+", field) for field in fields)
        assert re.search(r"\.venv/bin/(delta-cdc|dbt) \w+", command)


@pytest.mark.parametrize("block", [each for each in blocks("ini") if "[Service]" in each.values[0]])
def test_a_service_that_is_stopped_ends_its_run_first(block):
    """By itself systemd sends SIGTERM to each of its processes: Java ends, with what it is at."""
    unit = configparser.ConfigParser()
    unit.read_string(block)
    assert unit["Service"]["KillMode"] == "mixed"


def test_make_lint_does_what_is_looked_at_before_a_commit():
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].replace("$(VENV)", ".venv")
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    called = [hook["entry"] for hook in local["hooks"] if hook["id"] != "validate"]
    assert [entry for entry in called if entry not in recipe] == []
    # all but dbt's templater, which starts Spark
    quick = [line.partition(" || ")[0].strip("\t@") for line in recipe.splitlines() if "$(JAVA)" not in line]
    assert sorted(quick) == sorted(called)


class Macro(NamedTuple):
    name: str
    arguments: list[str]
    comment: str  # the one directly above


HEAD = re.compile(r"(?:\{#((?:(?!#\}).)*)#\}\n)?^\{%-? *(macro|test) +(\w+)(.*?)-?%\}", re.DOTALL | re.MULTILINE)


@cache
def macros() -> dict[str, Macro]:
    """The package's and the adapter's, and the generic tests, whose `model` dbt gives."""
    found = {}
    for folder in ("macros", "tests/generic", "python_helpers/dbt/include"):
        for path in (ROOT / folder).rglob("*.sql"):
            for comment, kind, name, signature in HEAD.findall(path.read_text()):
                (macro,) = jinja2.Environment().parse(f"{{% macro {name}{signature}%}}{{% endmacro %}}").body
                found[name] = Macro(name, [each.name for each in macro.args if (kind, each.name) != ("test", "model")], comment)
    return found


def of_users() -> list[Macro]:
    """Those that pages, or the models and tests of a project, name as `delta_cdc.…`, and those that commands run."""
    written = [*PAGES, ROOT / "dbt_project.yml"]
    for folder in ("models", "integration_tests"):
        written += [path for path in (ROOT / folder).rglob("*") if path.suffix in (".sql", ".yml")]
    named = {name for path in written for name in re.findall(r"delta_cdc\.(\w+)", path.read_text())}
    for path in (ROOT / "python_helpers/delta_cdc").glob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in ("ask", "run_operation"):
                named |= {each.value for each in call.args if isinstance(each, ast.Constant)}
    return [macro for name, macro in sorted(macros().items()) if name in named]


def tells(comment: str, argument: str) -> bool:
    """As `argument`, as "argument: …", also for several at once, or at the beginning of a line of a table."""
    return re.search(rf"`{argument}`|\b{argument}(, \w+)*: |^ *{argument}  +\S", comment, re.MULTILINE) is not None


def test_every_macro_has_a_comment_directly_above_it():
    assert [macro.name for macro in macros().values() if not macro.name.startswith("_") and not macro.comment] == []


def test_the_macros_of_users_are_found():
    assert {"final", "as_of", "one_row_per_key", "record_run", "maintain", "land"} <= {each.name for each in of_users()}


@pytest.mark.parametrize("macro", of_users(), ids=lambda macro: macro.name)
def test_the_comment_of_a_macro_of_users_tells_its_arguments(macro):
    assert [argument for argument in macro.arguments if not tells(macro.comment, argument)] == []
