"""The bars of `WarmDbt`: moving where someone watches, one line for each run where no one does."""

from io import StringIO
from types import SimpleNamespace

import dbt.cli.main
import pytest
from rich.console import Console

from delta_cdc.warm_dbt import WarmDbt, progress_on


def event(name: str, /, **data):
    return SimpleNamespace(info=SimpleNamespace(name=name), data=SimpleNamespace(**data))


def result_of(model: str, index: int):
    node = SimpleNamespace(node_name=model)
    return event("LogModelResult", node_info=node, status=f"MERGE +{index}", index=index, total=2, execution_time=index / 4)


class Runner:
    """Two models end, the second of them first."""

    def __init__(self, manifest=None, callbacks=()):
        self.callbacks = callbacks

    def invoke(self, arguments):
        for each in self.callbacks:
            each(event("LogStartLine", total=2))
            each(result_of("b", 2))
            each(result_of("a", 1))
        return SimpleNamespace(success=True, result=None)


@pytest.fixture(autouse=True)
def no_profile_of_ones_own(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("DBT_PROFILES_DIR", raising=False)


@pytest.fixture
def dbt_of_two(monkeypatch, tmp_path):
    monkeypatch.setattr(dbt.cli.main, "dbtRunner", Runner)
    return WarmDbt(tmp_path)


def test_where_no_one_watches_each_run_leaves_one_line(dbt_of_two):
    told = StringIO()
    with progress_on(Console(file=told)) as progress:
        dbt_of_two.run(progress, "first", "run")
        dbt_of_two.run(progress, "second", "run")
    assert told.getvalue().splitlines() == ["first: 2/2 models, 0 s", "second: 2/2 models, 0 s"]


def test_models_that_are_to_be_made_anew_are_whatever_their_configuration_says(monkeypatch, tmp_path):
    def model(name, resource_type="model"):
        return SimpleNamespace(name=name, resource_type=resource_type, config=SimpleNamespace(full_refresh=False))

    nodes = {"a": model("a"), "b": model("b"), "c": model("a", "test")}
    seen = []

    class Parser:
        def __init__(self, manifest=None, callbacks=()):
            self.manifest = manifest

        def invoke(self, arguments):
            if self.manifest:
                seen.append({name: node.config.full_refresh for name, node in self.manifest.nodes.items()})
            return SimpleNamespace(success=True, result=SimpleNamespace(nodes=nodes))

    monkeypatch.setattr(dbt.cli.main, "dbtRunner", Parser)
    with progress_on(Console(file=StringIO())) as progress:
        WarmDbt(tmp_path, anew=["a"]).run(progress, "rebuild", "run", "--full-refresh")
    assert seen == [{"a": True, "b": False, "c": False}]


def test_each_run_compiles_the_nodes_as_they_were_parsed(monkeypatch, tmp_path):
    """dbt itself adds the CTEs of ephemeral models to a model once, and takes what a foreign key names for a model."""
    from dbt.compilation import Compiler, InjectedCTE

    def node(name, **more):
        told = {"extra_ctes_injected": False, "extra_ctes": [], "compiled": False, "_pre_injected_sql": None}
        return SimpleNamespace(name=name, identifier=name, cte_name=name, **told, **more)

    key = SimpleNamespace(to="ref('other')")
    nodes = {"e": node("e", is_ephemeral_model=True), "m": node("m", is_ephemeral_model=False, all_constraints=[key])}
    seen = []

    def render(_compiler, of, *_):
        of.compiled, of.compiled_code = True, "select 1 as one" if of is nodes["e"] else "select * from __dbt__cte__e"
        if of is nodes["m"] and not of.extra_ctes:
            of.extra_ctes.append(InjectedCTE(id="e", sql=None))
        return of

    monkeypatch.setattr(Compiler, "_compile_code", render)
    monkeypatch.setattr(Compiler, "_write_node", lambda *_: None)
    monkeypatch.setattr(Compiler, "add_ephemeral_prefix", lambda _, name: f"__dbt__cte__{name}")

    class Compiling:
        def __init__(self, manifest=None, callbacks=()):
            self.manifest = manifest

        def invoke(self, arguments):
            if self.manifest:
                compiler = Compiler(SimpleNamespace(args=SimpleNamespace()))
                seen.append((compiler.compile_node(nodes["m"], self.manifest, {}, write=False).compiled_code, key.to))
                key.to = "`x`.`other`"
            return SimpleNamespace(success=True, result=SimpleNamespace(nodes=nodes))

    monkeypatch.setattr(dbt.cli.main, "dbtRunner", Compiling)
    with progress_on(Console(file=StringIO())) as progress:
        ticks = WarmDbt(tmp_path)
        ticks.run(progress, "first", "run")
        ticks.run(progress, "second", "run")
    assert seen[0] == seen[1] == ("with __dbt__cte__e as (\nselect 1 as one\n) select * from __dbt__cte__e", "ref('other')")


def test_a_transient_bar_leaves_nothing(dbt_of_two):
    told = StringIO()
    with progress_on(Console(file=told), transient=True) as progress:
        dbt_of_two.run(progress, "look", "run")
    assert told.getvalue() == ""


def test_the_bar_counts_models_that_ended(dbt_of_two):
    with progress_on(Console(file=StringIO(), force_terminal=True)) as progress:
        dbt_of_two.run(progress, "first", "run")
        assert [(each.completed, each.total) for each in progress.tasks] == [(2, 2)]


def test_the_bar_tells_rows_and_seconds_of_the_model_that_ended_last(dbt_of_two, monkeypatch):
    with progress_on(Console(file=StringIO(), force_terminal=True)) as progress:
        said, update = [], progress.update
        monkeypatch.setattr(progress, "update", lambda task, **what: said.append(what.get("now")) or update(task, **what))
        dbt_of_two.run(progress, "first", "run")
    assert [now for now in said if now] == ["b: MERGE +2, 0.5 s", "a: MERGE +1, 0.2 s"]


def test_the_bar_counts_tests_that_ended(monkeypatch, tmp_path):
    class Tests(Runner):
        def invoke(self, arguments):
            for each in self.callbacks:
                each(event("LogStartLine", total=2))
                each(event("LogTestResult", name="one_row_per_key", status="pass", index=1, num_models=2))
            return SimpleNamespace(success=True, result=None)

    monkeypatch.setattr(dbt.cli.main, "dbtRunner", Tests)
    with progress_on(Console(file=StringIO(), force_terminal=True)) as progress:
        WarmDbt(tmp_path).run(progress, "dbt test", "test")
        assert [(each.completed, each.total, each.fields["now"]) for each in progress.tasks] == [(1, 2, "")]


def test_a_package_that_holds_the_project_is_looked_at_once(tmp_path):
    project = tmp_path / "integration_tests"
    inside = [project / name for name in ("models/logs", "target", "dbt_packages", "landing")]
    for folder in (tmp_path / "macros", *inside):
        folder.mkdir(parents=True)
        (folder / "a.sql").write_text("select 1")
    for each in (tmp_path, project):
        (each / "dbt_project.yml").write_text("name: x")
    (project / "dbt_packages" / "package").symlink_to(tmp_path)
    found = {path.removeprefix(f"{project}/") for path in WarmDbt(project).files()}
    assert found == {
        "dbt_project.yml",
        "models/logs/a.sql",
        "dbt_packages/a.sql",
        "dbt_packages/package/dbt_project.yml",
        "dbt_packages/package/macros/a.sql",
    }


def test_what_stands_beside_the_project_is_read_at_the_next_tick_too(tmp_path):
    for folder in ("project/models", "shared/models/shop", "shared/landing"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.yml").write_text("sources: []")
    (tmp_path / "project" / "dbt_project.yml").write_text("model-paths: [models, ../shared/models]")
    dbt = WarmDbt(tmp_path / "project")
    before = dbt.files()
    assert len(before) == 3
    (tmp_path / "shared/models/shop/a.yml").write_text("sources: [changed]")
    assert dbt.files() != before


@pytest.mark.parametrize(("told", "read"), [
    ("name: x", {"models"}),
    ("model-paths: [a/b, ./c]", {"models", "a", "c"}),
    ("model-paths: [.]", {"models", "a", "c", "landing"}),
    ("packages-install-path: '{{ env_var(\"X\") }}'", {"models", "a", "c", "landing"}),
    ("- nothing: [", {"models", "a", "c", "landing"}),
])  # fmt: skip
def test_change_sets_in_the_project_are_no_files_of_it(tmp_path, told, read):
    """Each would have the project parsed anew."""
    for folder in ("models", "a", "c", "landing", ".hidden"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "0001.csv").write_text("a")
    (tmp_path / "dbt_project.yml").write_text(told)
    found = {path.removeprefix(f"{tmp_path}/") for path in WarmDbt(tmp_path).files()}
    assert found == {"dbt_project.yml", *(f"{folder}/0001.csv" for folder in read)}


def test_a_changed_profile_is_parsed_anew_wherever_it_lies(monkeypatch, tmp_path):
    """dbt itself takes a parsed project with the schema of the profile by which it was parsed."""
    commands = []

    class Parser(Runner):
        def invoke(self, arguments):
            commands.append(next(each for each in arguments if each in ("parse", "run")))
            return SimpleNamespace(success=True, result=SimpleNamespace(nodes={}))

    monkeypatch.setattr(dbt.cli.main, "dbtRunner", Parser)
    for folder in ("project", "conf"):
        (tmp_path / folder).mkdir()
    (tmp_path / "conf/profiles.yml").write_text("schema: a")
    ticks = WarmDbt(tmp_path / "project", ["--profiles-dir", str(tmp_path / "conf")])
    with progress_on(Console(file=StringIO())) as progress:
        ticks.run(progress, "first", "run")
        ticks.run(progress, "second", "run")
        (tmp_path / "conf/profiles.yml").write_text("schema: other")
        ticks.run(progress, "third", "run")
    assert commands == ["parse", "run", "run", "parse", "run"]
