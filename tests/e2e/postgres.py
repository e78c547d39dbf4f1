"""A PostgreSQL server of one's own, in a temporary folder, reached by its Unix socket."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from tests import free_ports

HOME = Path("/usr/lib/postgresql/15")
PACKAGES = {"postgresql-15": HOME / "bin" / "postgres", "postgresql-15-wal2json": HOME / "lib" / "wal2json.so"}
JDBC_DRIVER = "org.postgresql:postgresql:42.7.7"


def running(*packages: str) -> Iterator[Postgres]:
    """A server for a fixture, stopped at its end. Skips, and says how to install them, where one of the packages is missing."""
    missing = [package for package in packages if not PACKAGES[package].exists()]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (apt-get update && apt-get install {' '.join(missing)})")
    postgres = Postgres()
    try:
        postgres.start()
        yield postgres
    finally:
        postgres.stop()


class Postgres:
    def __init__(self) -> None:
        # short: a socket's path has 107 characters at most
        self.folder = Path(tempfile.mkdtemp(prefix="delta_cdc_e2e_"))
        self.process: subprocess.Popen[bytes] | None = None
        self.environment = {**os.environ, "PGHOST": str(self.folder), "PGPORT": str(free_ports(1)[0]), "PGUSER": "postgres"}
        # PostgreSQL refuses to run as root
        self._as_server = ["setpriv", "--pdeathsig", "QUIT"]
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self._as_server += [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]

    def start(self) -> None:
        data = self.folder / "data"
        self._check(
            [
                *self._as_server,
                HOME / "bin" / "initdb",
                "-D",
                data,
                "-U",
                "postgres",
                "-E",
                "UTF8",
                "--locale=C.UTF-8",
                "--no-sync",
                "--auth-local=trust",
                "--auth-host=scram-sha-256",
            ]
        )
        settings = {
            "wal_level": "logical",
            "listen_addresses": "127.0.0.1",
            "port": self.environment["PGPORT"],
            "unix_socket_directories": self.folder,
            "fsync": "off",
            "deadlock_timeout": "50ms",
            "track_commit_timestamp": "on",
            # neither the server's nor the readers' zone may matter
            "timezone": "Asia/Kolkata",
        }
        described = self._check([*self._as_server, HOME / "bin" / "postgres", "--describe-config"])
        if "output_plugin_libraries" in described:
            settings["output_plugin_libraries"] = "wal2json"
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [*self._as_server, HOME / "bin" / "postgres", "-D", data, *(f"--{k}={v}" for k, v in settings.items())],
                stdout=log,
                stderr=log,
                cwd=self.folder,
            )
        until = time.monotonic() + 60
        while subprocess.run([HOME / "bin" / "pg_isready", "-q"], env=self.environment).returncode:
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError("PostgreSQL did not start:\n" + (self.folder / "log").read_text(errors="replace"))
            time.sleep(0.1)

    def stop(self) -> None:
        if self.process:
            # at once: nobody wants the data
            self.process.send_signal(signal.SIGQUIT)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def psql(self, database: str, sql: str) -> str:
        """What a statement gives, or several do: a line a row, columns between |."""
        return self._check([HOME / "bin" / "psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", sql])

    def session(self, database: str, errors: IO[bytes]) -> subprocess.Popen[str]:
        """A session that takes statements from stdin and goes on after an error."""
        return subprocess.Popen(
            [HOME / "bin" / "psql", "-Xq", "-o", "/dev/null", "-v", "VERBOSITY=sqlstate", "-d", database],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            encoding="utf-8",
            env=self.environment,
        )

    def _check(self, command: list[str | Path]) -> str:
        done = subprocess.run(command, env=self.environment, cwd=self.folder, capture_output=True, text=True, encoding="utf-8")
        if done.returncode:
            raise RuntimeError(f"{' '.join(map(str, command))[:500]}\n{done.stderr}")
        return done.stdout
