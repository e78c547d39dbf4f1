"""What a machine that is not ready is told, before anything is installed."""

from __future__ import annotations

import ast
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from delta_cdc import prerequisites

ROOT = Path(__file__).parents[2]
SCRIPT = Path(prerequisites.__file__)


def java(folder: Path, version_line: str, *, incubator: bool = True) -> Path:
    """A folder that looks like a JDK; its java prints a version."""
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    refuse = "" if incubator else 'if [ "$1" != "-version" ]; then exit 1; fi\n'
    command.write_text(f"#!/bin/sh\n{refuse}echo '{version_line}' >&2\n")
    command.chmod(0o755)
    return folder


@pytest.fixture(autouse=True)
def no_other_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prerequisites, "java_remedy", lambda: "Install it.")


@pytest.fixture
def answering() -> Iterator[str]:
    """Address of a server that answers everything with 404."""
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/no/such/page"
    server.shutdown()
    server.server_close()


# Python


@pytest.mark.parametrize(("version", "is_what"), [((2, 7), "old"), ((3, 9), "old"), ((3, 14), "new")])
def test_python_of_another_age(version: tuple[int, int], is_what: str) -> None:
    problem = prerequisites.check_python(version)
    found = ".".join(map(str, version))
    assert problem is not None
    assert problem.startswith(f"Python {found} is too {is_what}: versions 3.10 to 3.13 are supported. Install")
    assert "make setup PYTHON=" in problem


@pytest.mark.parametrize("version", [(3, 10, 0), (3, 13, 9)])
def test_python_that_fits(version: tuple[int, int, int]) -> None:
    assert prerequisites.check_python(version) is None


def test_python_without_ensurepip(monkeypatch: pytest.MonkeyPatch) -> None:
    assert prerequisites.check_venv() is None
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    problem = prerequisites.check_venv()
    assert problem is not None
    assert problem.endswith(f"Install it: sudo apt install python{sys.version_info[0]}.{sys.version_info[1]}-venv")


# Java


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('NOTE: Picked up x\nopenjdk version "11.0.2"', 11),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
    ],
)
def test_java_version(output: str, version: int | None) -> None:
    assert prerequisites.java_version(output) == version


@pytest.mark.parametrize("version", ["17.0.15", "21.0.1"])
def test_java_that_fits(tmp_path: Path, version: str) -> None:
    home = java(tmp_path, f'openjdk version "{version}"')
    assert prerequisites.check_java({"JAVA_HOME": str(home)}) is None
    assert prerequisites.check_java({"PATH": f"{home}/bin:/bin:/usr/bin"}) is None


def test_java_that_does_not_fit(tmp_path: Path) -> None:
    old = java(tmp_path / "old", 'java version "1.8.0_392"')
    assert prerequisites.check_java({"JAVA_HOME": str(old)}) == (
        f"Java 17 or 21 is needed, and the java of JAVA_HOME ({old}) is version 8. Install it."
    )
    assert prerequisites.check_java({"PATH": f"{old}/bin:/bin:/usr/bin"}) == (
        "Java 17 or 21 is needed, and the java of the path is version 8. Install it."
    )
    mute = java(tmp_path / "mute", "Unable to locate a Java Runtime.")
    problem = prerequisites.check_java({"JAVA_HOME": str(mute)})
    assert problem is not None
    assert "does not say its version (Unable to locate a Java Runtime.)." in problem
    cut = java(tmp_path / "cut", 'openjdk version "17.0.1"', incubator=False)
    problem = prerequisites.check_java({"JAVA_HOME": str(cut)})
    assert problem is not None
    assert "lacks the module jdk.incubator.vector, without which Spark does not start" in problem


def test_no_java(tmp_path: Path) -> None:
    assert prerequisites.check_java({"PATH": str(tmp_path)}) == (
        "Java 17 or 21 is needed, and there is no Java on the path. Install it."
    )
    assert prerequisites.check_java({"JAVA_HOME": str(tmp_path)}) == (
        f"JAVA_HOME is {tmp_path}, and there is no bin/java in it. Java 17 or 21 is needed. Install it."
    )


def test_a_java_that_lies_about_unused_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert prerequisites.java_remedy((str(tmp_path / "none"),)).startswith("Install it (Debian or Ubuntu: ")
    java(tmp_path / "java-11-openjdk-11.0.17.0.8", 'openjdk version "11.0.17"')
    home = java(tmp_path / "temurin-21.jdk" / "Contents" / "Home", 'openjdk version "21.0.1"')
    assert prerequisites.java_remedy((str(tmp_path),)) == f"There is one in {home}: export JAVA_HOME={home}"


# Registries


def test_a_registry_that_answers_is_reachable_whatever_it_says(answering: str) -> None:
    assert prerequisites.unreachable(answering, None) is None


def test_a_registry_that_nobody_answers_for() -> None:
    assert "refused" in (prerequisites.unreachable("http://127.0.0.1:9/simple", None) or "").lower()
    assert "refused" in (prerequisites.unreachable("http://a.test/", "http://127.0.0.1:9") or "").lower()


def test_the_package_index(monkeypatch: pytest.MonkeyPatch, answering: str) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://me:secret@127.0.0.1:9/simple")
    problem = prerequisites.check_packages()
    assert problem is not None
    assert problem.startswith("The package index http://127.0.0.1:9/simple cannot be reached (")
    assert "PIP_INDEX_URL" in problem
    assert "secret" not in problem
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert prerequisites.check_packages() is None
    monkeypatch.delenv("PIP_NO_INDEX")
    for index in (answering, "file:///srv/simple", "/srv/simple"):
        monkeypatch.setenv("PIP_INDEX_URL", index)
        assert prerequisites.check_packages() is None


def test_settings_of_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PIP_INDEX_URL", "PIP_NO_INDEX", "PIP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    config = tmp_path / ".config" / "pip" / "pip.conf"
    config.parent.mkdir(parents=True)
    config.write_text("[global]\nindex_url = http://one/%20\nproxy = p\n")
    own = tmp_path / "own.conf"
    own.write_text("[install]\nindex-url = http://two\n")
    assert prerequisites.pip_settings()["index-url"] == "http://one/%20"
    monkeypatch.setenv("PIP_CONFIG_FILE", str(own))
    found = prerequisites.pip_settings()
    assert (found["index-url"], found["proxy"]) == ("http://two", "p")
    own.write_text("this is no configuration")
    assert prerequisites.pip_settings()["index-url"] == "http://one/%20"
    monkeypatch.setenv("PIP_INDEX_URL", "http://three")
    assert prerequisites.pip_settings()["index-url"] == "http://three"


def test_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answering: str) -> None:
    monkeypatch.delenv("DEFAULT_ARTIFACT_REPOSITORY", raising=False)
    monkeypatch.setenv("SPARKDELTA_JARS", str(tmp_path))
    monkeypatch.setattr(prerequisites, "MAVEN_CENTRAL", "http://127.0.0.1:9/maven2")
    problem = prerequisites.check_jars()
    assert problem is not None
    assert problem.startswith("The Maven repository http://127.0.0.1:9/maven2 cannot be reached (")
    assert str(tmp_path) in problem
    (tmp_path / "lock").touch()  # left by one that fetched nothing
    assert prerequisites.check_jars() == problem
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", answering)
    assert prerequisites.check_jars() is None
    monkeypatch.delenv("DEFAULT_ARTIFACT_REPOSITORY")
    (tmp_path / "delta").mkdir()
    assert prerequisites.check_jars() is None


# The script


def test_all_problems_are_printed_at_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(
        prerequisites,
        "CHECKS",
        [("python", lambda: None), ("java", lambda: "No Java."), ("jars", lambda: "No jars.")],
    )
    assert prerequisites.main([]) == 2
    assert capsys.readouterr().err == "No Java.\nNo jars.\n"
    assert prerequisites.main(["--only", "java"]) == 1
    assert prerequisites.main(["--only", "python"]) == 0


def test_a_wrong_python_is_asked_nothing_else(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(prerequisites, "CHECKS", [("python", lambda: "Old."), ("java", lambda: "No Java.")])
    assert prerequisites.main([]) == 1
    assert capsys.readouterr().err == "Old.\n"


def test_it_needs_the_standard_library_alone() -> None:
    done = subprocess.run([sys.executable, "-I", "-S", str(SCRIPT), "--only", "python"], check=False)
    assert done.returncode == 0


def test_old_pythons_can_read_it() -> None:
    text = SCRIPT.read_text(encoding="ascii")
    newer = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.AsyncFunctionDef, ast.Nonlocal)
    for node in ast.walk(ast.parse(text, feature_version=(3, 4))):
        assert not isinstance(node, newer)
        if isinstance(node, ast.FunctionDef):
            assert node.returns is None
            assert not node.args.kwonlyargs


def test_old_pythons_of_this_machine_understand_it() -> None:
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    pythons = sorted([*pyenv.glob("2.7*/bin/python"), *pyenv.glob("3.[6-9].*/bin/python")])
    if not pythons:
        pytest.skip("pyenv has none here")
    for python in pythons:
        done = subprocess.run([python, SCRIPT], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert re.match(r"Python [23]\.\d is too old: versions 3\.10 to", done.stderr)


def setup(tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """bin/setup on a machine with nothing but what `environment` says, Delta's jars and no packages."""
    venv = tmp_path / "venv"
    there = {"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path), "PYTHON": sys.executable}
    there |= {"PIP_NO_INDEX": "1", "SPARKDELTA_JARS": "/usr"}
    return subprocess.run(
        [str(ROOT / "bin" / "setup"), str(venv), str(venv / ".installed-1")],
        env=there | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_setup_without_python(tmp_path: Path) -> None:
    done = setup(tmp_path, PYTHON="python-that-is-not-there")
    assert done.returncode == 1
    assert done.stderr.startswith("Python 3.10 or newer is needed, and python-that-is-not-there does not run here.")
    assert done.stderr.count("\n") == 1


def test_setup_without_java_installs_nothing(tmp_path: Path) -> None:
    done = setup(tmp_path, JAVA_HOME=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.splitlines()[0].startswith(f"JAVA_HOME is {tmp_path}, and there is no bin/java in it.")
    assert done.stderr.splitlines()[1:] == ["Nothing was installed."]
    assert not (tmp_path / "venv").exists()


def test_setup_leaves_other_folders_alone(tmp_path: Path) -> None:
    home = java(tmp_path / "jdk", 'openjdk version "17.0.1"')
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "thesis.txt").touch()
    done = setup(tmp_path, JAVA_HOME=str(home))
    assert done.returncode == 1
    assert "holds something else than a virtual environment" in done.stderr
    assert (tmp_path / "venv" / "thesis.txt").exists()


def test_what_pip_says_becomes_a_sentence(tmp_path: Path) -> None:
    home = java(tmp_path / "jdk", 'openjdk version "17.0.1"')
    done = setup(tmp_path, JAVA_HOME=str(home))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("The packages could not be installed: Could not find a version that satisfies the")
    assert line.endswith(f"(all that pip said: {tmp_path}/venv/setup.log)")
    assert not (tmp_path / "venv" / ".installed-1").exists()


def test_setup_is_done_again_where_the_environment_s_python_is_gone(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.symlink_to(shutil.which("true") or "true")
    command = ["make", "setup", f"VENV={tmp_path}"]
    asked = subprocess.run([*command, "-n"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    stamp = Path(re.findall(r'"(.*?)"', asked)[-1])
    stamp.touch()
    assert "bin/setup" not in subprocess.run([*command, "-n"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    python.unlink()
    python.symlink_to(tmp_path / "python-that-is-gone")
    assert "bin/setup" in subprocess.run([*command, "-n"], cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("folder", ["/somewhere/my venv", ""])
def test_a_folder_that_make_takes_for_several_or_none_is_refused(folder: str) -> None:
    done = subprocess.run(["make", "-n", "setup", f"VENV={folder}"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert f'VENV is "{folder}". Name a folder without blanks in its path: make setup VENV=folder' in done.stderr


def test_help_lists_what_make_can_do() -> None:
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert {"make setup", "make demo", "make test", "make docs", "make lint", "make clean"} <= {
        " ".join(line.split()[:2]) for line in done.stdout.splitlines()
    }
