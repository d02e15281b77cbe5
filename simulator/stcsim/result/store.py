"""The folder that keeps the results of a sweep: one SQLite file, written ahead (WAL).

Place in the data flow: `stcsim.sweep` writes it run by run, exports and reports
read it (`stcsim.result.sweep_results`).  Knows no machines and no simulation.

The table ``plan`` has one row for each (point, layer), with the key of its run;
``results`` has one row for each key: the result as JSON, or the error of a run
that failed.  A key is a hash of everything that decides the result, so that what
is there is never stale, and equal runs of several points are kept once.  Each
result is one transaction: a process killed at any moment loses what it had not
finished, nothing else; several processes may write at once.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from stcsim.errors import Problem, StcsimError, must

FILE_NAME = "results.sqlite"
SCHEMA_VERSION = 1
_PATIENCE_SECONDS = 60.0
"""How long a writer waits for another one; a write takes well below a millisecond."""
_TABLES = (
    "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS plan (point INTEGER, layer INTEGER, key TEXT NOT NULL, about TEXT NOT NULL, "
    "PRIMARY KEY (point, layer)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS results (key TEXT PRIMARY KEY, status TEXT NOT NULL, content TEXT NOT NULL, "
    "seconds REAL NOT NULL)",
)

Status = Literal["done", "failed"]


class StoreError(StcsimError):
    """The folder of a sweep cannot be used or cannot be written."""


@dataclass(frozen=True)
class PlannedRun:
    """One layer of one point.

    Parameters
    ----------
    point, layer : int
    key : str
        Hash of everything that decides the result.
    about : dict
        What readers need to know of it: axis values, machine, kernel, workload, repetition, baseline.
    """

    point: int
    layer: int
    key: str
    about: dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What became of one run.

    Parameters
    ----------
    key : str
    status : "done" or "failed"
    content : str
        The result as JSON, or the error in one line.
    seconds : float
        Wall time, for estimates only; never exported.
    """

    key: str
    status: Status
    content: str
    seconds: float


class Store:
    """An open store.

    Use `create` to make or continue one, `open` to read one.
    """

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self.folder = folder
        self._connection = connection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    @classmethod
    def create(cls, folder: Path, plan: Sequence[PlannedRun], meta: dict[str, str], *, resume: bool) -> Self:
        """Make the store of a sweep in a new or empty folder, or continue the one that is there.

        Parameters
        ----------
        folder : Path
        plan : sequence of PlannedRun
        meta : dict of str to str
            What readers need to know of the study: ``study`` (its name) and ``model_version`` among it.
        resume : bool
            Whether a folder that holds this sweep already is continued; otherwise it is refused.

        Raises
        ------
        StoreError
            If the folder is not empty, holds another study or another model version, or cannot be written.
        """
        check_folder(folder, resume=resume)
        with _told(folder):
            folder.mkdir(parents=True, exist_ok=True)
            connection = _connect(folder, "rwc")
        store = cls(folder, connection)
        try:
            with _told(folder):
                store._begin(plan, meta)
        except BaseException:
            connection.close()
            raise
        return store

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open the store of a sweep for reading.

        Raises
        ------
        StoreError
            If there is none.
        """
        if not (folder / FILE_NAME).is_file():
            message = f"must be the folder of a sweep (no {FILE_NAME} in it)"
            raise StoreError(Problem(message, str(folder)))
        with _told(folder):
            connection = _connect(folder, "rw")
            if not _is_laid_out(connection):
                message = "must be the folder of a sweep that has begun (its store is empty)"
                raise StoreError(Problem(message, str(folder)))
        store = cls(folder, connection)
        return store

    def _begin(self, plan: Sequence[PlannedRun], meta: dict[str, str]) -> None:
        """Lay out an empty file in one transaction, or check that the one there is of this sweep."""
        with self._transaction():
            if _is_laid_out(self._connection):
                self._require_same(plan, meta)
                return
            for table in _TABLES:
                self._connection.execute(table)
            facts = {"schema_version": str(SCHEMA_VERSION), **meta}
            self._connection.executemany("INSERT INTO meta VALUES (?, ?)", facts.items())
            self._connection.executemany(
                "INSERT INTO plan VALUES (?, ?, ?, ?)",
                [(run.point, run.layer, run.key, json.dumps(run.about)) for run in plan],
            )

    def _require_same(self, plan: Sequence[PlannedRun], meta: dict[str, str]) -> None:
        found = self.meta()
        where = str(self.folder)
        if found.get("schema_version") != str(SCHEMA_VERSION):
            message = must(f"must have a store of layout {SCHEMA_VERSION}", found.get("schema_version"))
            raise StoreError(Problem(message, where))
        if found["model_version"] != meta["model_version"]:
            message = must(
                f"must hold results of model version {meta['model_version']}", found["model_version"]
            )
            raise StoreError(Problem(f"{message}: start a new folder, versions are never mixed", where))
        if found["study"] != meta["study"]:
            message = must(f"must belong to study {meta['study']}", found["study"])
            raise StoreError(Problem(message, where))
        if [(run.point, run.layer, run.key) for run in plan] != [run[:3] for run in self._planned()]:
            message = (
                f"must belong to this very study: {meta['study']} here has other points, parameters or operands "
                "than the one that began the folder"
            )
            raise StoreError(Problem(message, where))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def put(self, outcomes: Sequence[Outcome]) -> None:
        """Keep outcomes; one that another process has written meanwhile stays as it is, unless it failed.

        Raises
        ------
        StoreError
            If the disk is full or the file cannot be written; what was there before stays.
        """
        rows = [(outcome.key, outcome.status, outcome.content, outcome.seconds) for outcome in outcomes]
        with _told(self.folder), self._transaction():
            self._connection.executemany(
                "INSERT INTO results VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET status = excluded.status, "
                "content = excluded.content, seconds = excluded.seconds WHERE results.status = 'failed'",
                rows,
            )

    def meta(self) -> dict[str, str]:
        """Return what is known of the study."""
        with _told(self.folder):
            return dict(self._connection.execute("SELECT name, value FROM meta").fetchall())

    def _planned(self) -> list[tuple[int, int, str, str]]:
        with _told(self.folder):
            query = "SELECT point, layer, key, about FROM plan ORDER BY point, layer"
            return self._connection.execute(query).fetchall()

    def plan(self) -> list[PlannedRun]:
        """Return every run, by point and layer."""
        return [
            PlannedRun(point, layer, key, json.loads(about)) for point, layer, key, about in self._planned()
        ]

    def statuses(self) -> dict[str, Status]:
        """Return the keys that have an outcome, with their status."""
        with _told(self.folder):
            return dict(self._connection.execute("SELECT key, status FROM results").fetchall())

    def find(self, key: str) -> Outcome | None:
        """Return the outcome of a run, if there is one."""
        with _told(self.folder):
            query = "SELECT key, status, content, seconds FROM results WHERE key = ?"
            row = self._connection.execute(query, (key,)).fetchone()
        return None if row is None else Outcome(*row)

    def outcomes(self) -> dict[str, Outcome]:
        """Return every outcome by its key."""
        with _told(self.folder):
            rows = self._connection.execute("SELECT key, status, content, seconds FROM results").fetchall()
        return {key: Outcome(key, status, content, seconds) for key, status, content, seconds in rows}


def check_folder(folder: Path, *, resume: bool) -> None:
    """Refuse a folder in which something else lies.

    Raises
    ------
    StoreError
        If it is a file, or holds anything and `resume` is not given, or holds no sweep and `resume` is.
    """
    if folder.exists() and not folder.is_dir():
        raise StoreError(Problem("must be a folder, not a file", str(folder)))
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    is_sweep = (folder / FILE_NAME).is_file()
    if not resume:
        hint = "give --resume to continue its sweep" if is_sweep else "it holds something else"
        raise StoreError(Problem(f"must be an empty or a new folder ({hint})", str(folder)))
    if not is_sweep:
        message = f"must be the folder of a sweep to be resumed (no {FILE_NAME} in it)"
        raise StoreError(Problem(message, str(folder)))


def _connect(folder: Path, mode: str) -> sqlite3.Connection:
    uri = f"{(folder / FILE_NAME).absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=_PATIENCE_SECONDS, isolation_level=None)
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            # Another process may be changing the journal's mode at this moment; SQLite does not wait for that.
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                connection.close()
                raise
            time.sleep(0.05)
        except BaseException:
            connection.close()
            raise
        else:
            return connection


def _is_laid_out(connection: sqlite3.Connection) -> bool:
    query = "SELECT count(*) FROM sqlite_master WHERE name = 'meta'"
    return bool(connection.execute(query).fetchone()[0])


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    """Tell faults of the disk and of the file in one line."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        text = str(error)
        if "full" in text or "disk I/O" in text:
            message = (
                f"must have room for results, but the disk is full or failing ({text}); what was stored is kept: "
                "make room, then go on with --resume"
            )
        elif "not a database" in text or "malformed" in text:
            message = f"must hold a store that stcsim wrote ({FILE_NAME}: {text})"
        else:
            message = f"must hold a store that can be read and written ({FILE_NAME}: {text})"
        raise StoreError(Problem(message, str(folder))) from None
    except OSError as error:
        raise StoreError(
            Problem(f"must be a folder that can be written ({error.strerror})", str(folder))
        ) from None
