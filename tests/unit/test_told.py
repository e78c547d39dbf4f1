"""What a test tells is shown at the end, also by a process of pytest-xdist, as `make test` has them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEST = """
def test_that_tells(record_property):
    record_property("told", "7 histories hold a swap")
"""


def test_what_a_test_tells_is_shown(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TEST)
    options = ["-q", "-n", "1", "-p", "tests.conftest", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(tmp_path)]
    command = [sys.executable, "-m", "pytest", *options, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "7 histories hold a swap" in done.stdout
