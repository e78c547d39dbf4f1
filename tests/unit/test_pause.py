"""`pause` and `resume` change one setting in a yml file that a person wrote, and no other character of it."""

from __future__ import annotations

import resource
from pathlib import Path
from textwrap import dedent, indent
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.projects import FEED, TABLE, project, source

from delta_cdc import pause as pauses
from delta_cdc.cli import main
from delta_cdc.config_reader import load_project
from delta_cdc.errors import OperationError
from delta_cdc.source_files import content_of

BEGIN = "version: 2\nsources:\n  - name: shop\n    tables:\n      - name: other\n"


def file_of(tables: str, before: str = "") -> str:
    """A source's yml with these tables, as they stand in a test; before: what stands above."""
    return before + BEGIN + indent(dedent(tables).lstrip("\n").rstrip(" "), " " * 6)


def table_in(root: Path, text: str) -> tuple[Any, Any]:
    """The project, and table shop.invoice of its file `s.yml`, as `load_project` tells of them."""
    (root / "s.yml").write_bytes(text.encode())
    (feed,) = content_of(text)["sources"]
    (line,) = (each.lines["name"] for each in feed["tables"] if each["name"] == "invoice")
    settings = SimpleNamespace(paused=None)
    table = SimpleNamespace(feed="shop", name="invoice", full_name="shop.invoice", file="s.yml", line=line, settings=settings)
    return SimpleNamespace(root=root), table


def paused(root: Path, text: str, why: str = "we move") -> str:
    """What the file is once the table is paused."""
    place = pauses.pause(*table_in(root, text), why)
    written = (root / "s.yml").read_bytes().decode()
    assert "paused" in written.splitlines()[int(place.removeprefix("s.yml:")) - 1]
    return written


# a table as it is, and as it is when it is paused; what stands above it
SHAPES: dict[str, tuple[str, ...]] = {
    "block": (
        """
        - name: invoice
          config:
            meta:
              cdc:  # its settings
                # the key
                keys: [id]

          columns: []  # none
        """,
        """
        - name: invoice
          config:
            meta:
              cdc:  # its settings
                paused: we move
                # the key
                keys: [id]

          columns: []  # none
        """,
    ),
    "flow": (
        """
        - name: invoice
          config: {meta: {cdc: {keys: [id], sequence_by: [seq]}}}  # flat
        """,
        """
        - name: invoice
          config: {meta: {cdc: {paused: we move, keys: [id], sequence_by: [seq]}}}  # flat
        """,
    ),
    "flow over lines": (
        """
        - name: invoice
          config:
            meta:
              cdc: {
                keys: [id],  # the key
                sequence_by: [seq],
              }
        """,
        """
        - name: invoice
          config:
            meta:
              cdc: {
                paused: we move, keys: [id],  # the key
                sequence_by: [seq],
              }
        """,
    ),
    "bare meta": (
        """
        - name: invoice
          meta:
            owner: ann
            cdc:
              keys: [id]
        """,
        """
        - name: invoice
          meta:
            owner: ann
            cdc:
              paused: we move
              keys: [id]
        """,
    ),
    "only a name": (
        """
        - name: invoice
        - name: last
        """,
        """
        - name: invoice
          config: {meta: {cdc: {paused: we move}}}
        - name: last
        """,
    ),
    "only a name, at the end of the file": (
        "- name: invoice",
        "- name: invoice\n  config: {meta: {cdc: {paused: we move}}}",
    ),
    "only a name, with a comment": (
        """
        - name: 'invoice'  # mine

        # the end
        """,
        """
        - name: 'invoice'  # mine
          config: {meta: {cdc: {paused: we move}}}

        # the end
        """,
    ),
    "only a name, in braces": (
        "- {name: invoice}\n",
        "- {name: invoice, config: {meta: {cdc: {paused: we move}}}}\n",
    ),
    "the name comes last": (
        """
        - description: >
            of many
            words
          "name": "invoice"
          columns:
            - name: id
        """,
        """
        - description: >
            of many
            words
          "name": "invoice"
          config: {meta: {cdc: {paused: we move}}}
          columns:
            - name: id
        """,
    ),
    "no cdc in the meta": (
        """
        - name: invoice
          config:
            meta:
              owner: ann
            enabled: true
        """,
        """
        - name: invoice
          config:
            meta:
              cdc: {paused: we move}
              owner: ann
            enabled: true
        """,
    ),
    "no meta in the config": (
        """
        - name: invoice
          config: {enabled: true}
        """,
        """
        - name: invoice
          config: {meta: {cdc: {paused: we move}}, enabled: true}
        """,
    ),
    "no cdc in a bare meta": (
        """
        - name: invoice
          meta: {owner: ann}
        """,
        """
        - name: invoice
          meta: {cdc: {paused: we move}, owner: ann}
        """,
    ),
    "a merge key in the settings": (
        """
        - name: invoice
          meta:
            cdc:
              <<: *shared
              keys: [id]
        """,
        """
        - name: invoice
          meta:
            cdc:
              paused: we move
              <<: *shared
              keys: [id]
        """,
        "shared: &shared {sequence_by: [seq]}\n",
    ),
    "a merge key between braces": (
        """
        - name: invoice
          meta: {cdc: {<<: *shared, keys: [id]}}
        """,
        """
        - name: invoice
          meta: {cdc: {paused: we move, <<: *shared, keys: [id]}}
        """,
        "shared: &shared {sequence_by: [seq]}\n",
    ),
    "an anchor that nobody else uses": (
        """
        - name: invoice
          meta:
            cdc: &mine
              keys: [id]
        """,
        """
        - name: invoice
          meta:
            cdc: &mine
              paused: we move
              keys: [id]
        """,
    ),
    "quoted keys": (
        """
        - 'name': invoice
          "config": {"meta": {"cdc": {"keys": ["id"]}}}
        """,
        """
        - 'name': invoice
          "config": {"meta": {"cdc": {paused: we move, "keys": ["id"]}}}
        """,
    ),
}


def shape_of(name: str, newline: str = "\n") -> list[str]:
    before, after, *above = SHAPES[name]
    return [file_of(text, "".join(above)).replace("\n", newline) for text in (before, after)]


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("shape", SHAPES)
def test_pause_writes_one_setting_and_leaves_all_else(tmp_path: Path, shape: str, newline: str) -> None:
    before, after = shape_of(shape, newline)
    assert paused(tmp_path, before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("config:", "config: {meta: {cdc: {paused: we move}}}"),
        ("config:  # none yet", "config: {meta: {cdc: {paused: we move}}}  # none yet"),
        ("config: {meta: {cdc: null}}", "config: {meta: {cdc: {paused: we move}}}"),
        ("config: {meta: {cdc: }}", "config: {meta: {cdc: {paused: we move} }}"),
        ("config: {meta: {cdc: {}}}", "config: {meta: {cdc: {paused: we move}}}"),
        ("config: {meta: {cdc: {paused: }}}", "config: {meta: {cdc: {paused: we move }}}"),
        ("config: {meta: {cdc: {paused: before, keys: [id]}}}", "config: {meta: {cdc: {paused: we move, keys: [id]}}}"),
        ("meta:\n  cdc:\n    paused: 'it''s # old'  # ask", "meta:\n  cdc:\n    paused: we move  # ask"),
        ("meta:\n  cdc:\n    paused: of\n      two lines\n    a: 1", "meta:\n  cdc:\n    paused: we move\n    a: 1"),
        ("meta:\n  cdc:\n    paused: >-\n      of\n      lines\n\n    a: 1", "meta:\n  cdc:\n    paused: we move\n\n    a: 1"),
    ],
)  # fmt: skip
def test_pause_where_there_is_nothing_yet_or_another_reason(tmp_path: Path, before: str, after: str) -> None:
    before, after = (file_of(f"- name: invoice\n{indent(text, '  ')}\n") for text in (before, after))
    assert paused(tmp_path, before) == after


@pytest.mark.parametrize("shape", ["block", "flow", "only a name"])
@pytest.mark.parametrize(
    "why", ["a: b", "it's # 1", "{a, b}", "yes", "[x]", "- y", '"', "über 😀", "&a", "x y " * 90, "1", "@you", "a\tb\n c"]
)
def test_any_reason_is_written_as_the_text_that_it_is(tmp_path: Path, why: str, shape: str) -> None:
    tables = content_of(paused(tmp_path, shape_of(shape)[0], why))["sources"][0]["tables"]
    assert tables[1]["config"]["meta"]["cdc"]["paused"] == " ".join(why.split())


# a table; the line that is told; what stands above the tables
UNSAFE = {
    "settings that others have too": (
        """
        - name: invoice
          meta:
            cdc: &all
              keys: [id]
        - {name: last, meta: {cdc: *all}}
        """,
        "cdc: &all", "",
    ),
    "settings of another": (
        """
        - name: first
          meta: {cdc: &all {keys: [id]}}
        - name: invoice
          meta:
            cdc: *all
        """,
        "cdc: *all", "",
    ),
    "a config by a merge key": (
        """
        - name: invoice
          <<: *shared
        """,
        "shared: &shared {config: {meta: {cdc: {keys: [id]}}}}", "shared: &shared {config: {meta: {cdc: {keys: [id]}}}}\n",
    ),
    "a table by alias": ("- *whole\n", "whole: &whole {name: invoice}", "whole: &whole {name: invoice}\n"),
    "a reason by alias": (
        """
        - name: invoice
          meta: {cdc: {paused: *why}}
        """,
        "meta: {cdc: {paused: *why}}", "why: &why it moves\n",
    ),
    "a comment before the reason": (
        """
        - name: invoice
          meta:
            cdc:
              paused: >  # ask
                it moves
        """,
        "paused: >  # ask", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", UNSAFE)
def test_what_cannot_be_changed_for_one_table_alone_is_left_and_told(tmp_path: Path, shape: str) -> None:
    tables, told, above = UNSAFE[shape]
    text = file_of(tables, above)
    given = table_in(tmp_path, text)
    with pytest.raises(OperationError) as caught:
        pauses.pause(*given, "we move")
    place, _, said = str(caught.value).partition(": ")
    assert text.splitlines()[int(place.removeprefix("s.yml:")) - 1].strip() == told
    assert said.startswith("as it is written there, this command cannot change it for shop.invoice alone. ")
    assert "The file is as it was; write `paused: we move` among its settings (`" in said
    assert (tmp_path / "s.yml").read_bytes().decode() == text


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("shape", SHAPES)
def test_resume_gives_the_file_back_as_it_was(tmp_path: Path, shape: str, newline: str) -> None:
    before, after = shape_of(shape, newline)
    assert resumed(tmp_path, after) == before


def resumed(root: Path, text: str) -> str:
    assert pauses.resume(*table_in(root, text)) is None
    return (root / "s.yml").read_bytes().decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("config: {meta: {cdc: {keys: [id], paused: x}}}", "config: {meta: {cdc: {keys: [id]}}}"),
        ("config: {meta: {cdc: {a: 1, paused: x, b: 2}}}", "config: {meta: {cdc: {a: 1, b: 2}}}"),
        ("config: {meta: {cdc: {a: 1, paused: x, }}}", "config: {meta: {cdc: {a: 1, }}}"),
        ("config: {enabled: true, meta: {cdc: {paused: x,}}}", "config: {enabled: true}"),
        ("config: {meta: {cdc: {<<: *shared, paused: 'x, y'}}}", "config: {meta: {cdc: {<<: *shared}}}"),
        ("meta:\n  cdc: {\n    a: 1,  # a\n    paused: x  # why\n  }", "meta:\n  cdc: {\n    a: 1,  # a\n      # why\n  }"),
        ("meta:\n  cdc: {\n    paused: x,  # why\n    a: 1\n  }", "meta:\n  cdc: {\n    # why\n    a: 1\n  }"),
        ("meta:\n  cdc:\n    a: 1\n    paused: x\n", "meta:\n  cdc:\n    a: 1\n"),
        ("meta:\n  cdc:\n    paused: x  # ask ann\n    a: 1", "meta:\n  cdc:\n    # ask ann\n    a: 1"),
        ("meta:\n  cdc:\n    paused: |\n      x\n      y\n\n    a: 1", "meta:\n  cdc:\n\n    a: 1"),
        ("meta:\n  cdc:\n    paused: x\n      y\n    # b\n    a: 1", "meta:\n  cdc:\n    # b\n    a: 1"),
        ("meta:\n  owner: ann\n  cdc:\n    paused: x\ncolumns: []", "meta:\n  owner: ann\ncolumns: []"),
        ("config:\n  meta:\n    cdc:\n      paused: x\ncolumns: []", "columns: []"),
        ("meta:\n  cdc:\n    # what\n    paused: x\ncolumns: []", "meta:\n  cdc:\n    # what\ncolumns: []"),
        ("meta:\n  cdc: {  # what\n    paused: x}\ncolumns: []", "meta:\n  cdc: {  # what\n    }\ncolumns: []"),
        ("meta: {cdc: {paused: x}}  # why\ncolumns: []", "# why\ncolumns: []"),
        ("config: {meta: {cdc: {a: &a b, paused: x, c: *a}}}", "config: {meta: {cdc: {a: &a b, c: *a}}}"),
    ],
)  # fmt: skip
def test_resume_takes_out_one_setting_and_no_comment(tmp_path: Path, before: str, after: str) -> None:
    above = "shared: &shared {sequence_by: [seq]}\n" if "*shared" in before else ""
    before, after = (file_of(f"- name: invoice\n{indent(text, '  ')}\n- name: last\n", above) for text in (before, after))
    assert resumed(tmp_path, before) == after


def test_resume_of_the_last_line_of_a_file_without_an_end(tmp_path: Path) -> None:
    text = file_of("- name: invoice\n  meta:\n    cdc:\n      keys: [id]\n      paused: x")
    assert resumed(tmp_path, text) == file_of("- name: invoice\n  meta:\n    cdc:\n      keys: [id]")


@pytest.mark.parametrize(
    ("tables", "told", "above"),
    [
        ("- name: invoice\n  meta: {cdc: {<<: *shared}}\n", "shared: &shared {paused: x}", "shared: &shared {paused: x}\n"),
        ("- name: invoice\n  meta: {cdc: &all {a: 1, paused: x}}\n- {name: b, meta: {cdc: *all}}\n",
         "meta: {cdc: &all {a: 1, paused: x}}", ""),
        ("- name: invoice\n  meta: {cdc: {paused: &why x, a: *why}}\n", "meta: {cdc: {paused: &why x, a: *why}}", ""),
        ("- name: invoice\n  meta:\n    cdc:\n      paused: >  # ask\n        x\n", "paused: >  # ask", ""),
    ],
)  # fmt: skip
def test_a_pause_that_cannot_be_taken_out_alone_is_left_and_told(tmp_path: Path, tables: str, told: str, above: str) -> None:
    text = file_of(tables, above)
    given = table_in(tmp_path, text)
    with pytest.raises(OperationError, match=r"The file is as it was; take `paused` out by hand\.$") as caught:
        pauses.resume(*given)
    assert text.splitlines()[int(str(caught.value).split(":")[1]) - 1].strip() == told
    assert (tmp_path / "s.yml").read_bytes().decode() == text


def command(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--project-dir", str(root)])


def test_pause_tells_where_it_wrote_and_a_second_one_changes_the_reason(tmp_path: Path) -> None:
    path = project(tmp_path, source(tables={"invoice": {**TABLE}, "customer": {**TABLE}})) / "models/shop/_sources.yml"
    before = path.read_text().splitlines()
    for why in ("it moves", "it has moved: see mail"):
        done = command(tmp_path, "pause", "invoice", "--why", why)
        assert done.exit_code == 0, done.output
        now = path.read_text().splitlines()
        (line,) = (number for number, text in enumerate(now, 1) if "paused: " in text)
        said = f"shop.invoice is paused from the next run on (models/shop/_sources.yml:{line})."
        assert done.stdout == f"{said} `delta-cdc resume` takes that back.\n"
        assert now[: line - 1] + now[line:] == before
        (paused, other) = sorted(load_project(tmp_path).tables, key=lambda table: table.name, reverse=True)
        assert (paused.settings.paused, other.settings.paused) == (why, None)


@pytest.mark.parametrize(
    ("why", "said"),
    [
        (" ", "`--why` is empty. Give a reason: runs and `delta-cdc status` show it."),
        ("no", "`--why` is no. Give a reason: runs and `delta-cdc status` show it."),
        ("of {{ x }}", "`--why` is of {{ x }}, which dbt would take for a template. Leave the braces out."),
    ],
)
def test_a_reason_that_is_none_is_refused(tmp_path: Path, why: str, said: str) -> None:
    path = project(tmp_path, source()) / "models/shop/_sources.yml"
    before = path.read_bytes()
    done = command(tmp_path, "pause", "invoice", "--why", why)
    assert (done.exit_code, done.stderr, path.read_bytes()) == (1, f"{said}\n", before)
    assert command(tmp_path, "pause", "invoice").exit_code == 2  # no reason at all
    assert "There is no table `invoic`." in command(tmp_path, "pause", "invoic", "--why", "x").stderr


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    done = command(project(tmp_path, source()), "pause", "invoice", "--why", "x")
    assert (done.exit_code, done.stderr) == (1, f"{tmp_path}/models/shop/_sources.yml cannot be written: Permission denied.\n")


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = project(tmp_path, source()) / "models/shop/_sources.yml"
    before, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, limits[1]))
    try:
        done = command(tmp_path, "pause", "invoice", "--why", "x")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (done.exit_code, f"{path} cannot be written: " in done.stderr, path.read_bytes()) == (1, True, before)
    assert sorted(each.name for each in path.parent.iterdir()) == [path.name]


def test_resume_ends_a_pause_and_says_so_where_there_is_none(tmp_path: Path) -> None:
    path = project(tmp_path, source()) / "models/shop/_sources.yml"
    before = path.read_bytes()
    assert command(tmp_path, "pause", "invoice", "--why", "x").exit_code == 0
    done = command(tmp_path, "resume", "invoice")
    said = "shop.invoice is no longer paused. The next run loads what has waited.\n"
    assert (done.exit_code, done.stdout, path.read_bytes()) == (0, said, before)
    again = command(tmp_path, "resume", "shop.invoice")
    assert (again.exit_code, again.stderr, path.read_bytes()) == (1, "shop.invoice is not paused.\n", before)


def test_a_pause_of_the_whole_feed_is_told_as_that(tmp_path: Path) -> None:
    tables = {"invoice": {**TABLE}, "own": {**TABLE, "paused": "it moves"}, "free": {**TABLE, "paused": None}}
    path = project(tmp_path, source(feed={**FEED, "paused": "all move"}, tables=tables)) / "models/shop/_sources.yml"
    before = path.read_text()
    line = before[: before.index("paused: all move")].count("\n") + 1
    done = command(tmp_path, "resume", "invoice")
    said = f"shop.invoice is paused with all of its feed. Take `paused` out there by hand: models/shop/_sources.yml:{line}.\n"
    assert (done.exit_code, done.stderr, path.read_text()) == (1, said, before)
    assert command(tmp_path, "resume", "free").stderr == "shop.free is not paused.\n"
    done = command(tmp_path, "resume", "own")
    said = f"shop.own has no pause of its own any more, and is paused with all of its feed (models/shop/_sources.yml:{line}).\n"
    assert (done.exit_code, done.stdout) == (0, said)
    assert path.read_text() == before.replace("          paused: it moves\n", "")
    assert command(tmp_path, "pause", "free", "--why", "y").exit_code == 0
    assert path.read_text() == before.replace("          paused: it moves\n", "").replace("paused: null\n", "paused: y\n")
