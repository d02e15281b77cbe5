"""The store of a sweep: whole or not at all, whoever writes and whatever the disk does."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from stcsim.result.store import FILE_NAME, Outcome, PlannedRun, Store, StoreError

PLAN = tuple(PlannedRun(point, 0, f"key{point}", {"workload": "w"}) for point in range(200))
META = {"study": "s", "model_version": "1"}


def outcome(number: int, content: str = "{}") -> Outcome:
    return Outcome(f"key{number}", "done", content, 0.5)


def begin(folder: Path, *, resume: bool = False) -> Store:
    return Store.create(folder, PLAN, META, resume=resume)


def test_what_is_put_is_found_again(tmp_path: Path) -> None:
    with begin(tmp_path) as store:
        store.put([outcome(3, '{"a": 1}')])
    with Store.open(tmp_path) as store:
        assert store.outcomes() == {"key3": outcome(3, '{"a": 1}')}
        assert store.find("key3") == outcome(3, '{"a": 1}')
        assert store.find("key4") is None
        assert store.plan() == list(PLAN)
        assert store.meta()["study"] == "s"


def test_a_result_is_never_overwritten_but_a_failure_is(tmp_path: Path) -> None:
    with begin(tmp_path) as store:
        store.put([Outcome("key1", "failed", "no memory", 1.0), outcome(2, "first")])
        store.put([outcome(1, "second"), outcome(2, "second")])
        assert store.outcomes()["key1"].content == "second"
        assert store.outcomes()["key2"].content == "first"


def test_a_full_disk_is_one_error_and_leaves_what_was_there(tmp_path: Path) -> None:
    with begin(tmp_path) as store:
        store.put([outcome(0)])
        store._connection.execute("PRAGMA max_page_count = 1")
        many = [outcome(number, "x" * 10_000) for number in range(1, 200)]
        with pytest.raises(StoreError, match="must have room for results, but the disk is full") as error:
            store.put(many)
        assert len(error.value.problems) == 1
        assert set(store.outcomes()) == {"key0"}
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    with begin(tmp_path, resume=True) as store:
        store.put([outcome(150)])
        assert set(store.outcomes()) == {"key0", "key150"}


def test_two_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    begin(tmp_path).__exit__()
    failures: list[BaseException] = []

    def write(numbers: range) -> None:
        try:
            with begin(tmp_path, resume=True) as store:
                for number in numbers:
                    store.put([outcome(number)])
        except BaseException as error:  # told by the test, not by the thread
            failures.append(error)

    threads = [threading.Thread(target=write, args=(numbers,)) for numbers in (range(0, 120), range(80, 200))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with Store.open(tmp_path) as store:
        assert set(store.outcomes()) == {run.key for run in PLAN}


def test_a_file_killed_before_its_first_transaction_is_begun_anew(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).touch()
    with pytest.raises(StoreError, match="its store is empty"):
        Store.open(tmp_path)
    with begin(tmp_path, resume=True) as store:
        assert store.plan() == list(PLAN)


@pytest.mark.parametrize(
    ("plan", "meta", "message"),
    [
        (
            PLAN,
            {"study": "s", "model_version": "2"},
            r"must hold results of model version 2, not 1: start a new folder",
        ),
        (PLAN, {"study": "t", "model_version": "1"}, r"must belong to study t, not s"),
        (PLAN[1:], META, r"must belong to this very study: s here has other points"),
    ],
)
def test_another_study_or_model_is_refused(
    tmp_path: Path, plan: tuple[PlannedRun, ...], meta: dict[str, str], message: str
) -> None:
    begin(tmp_path).__exit__()
    with pytest.raises(StoreError, match=message):
        Store.create(tmp_path, plan, meta, resume=True)


def test_a_file_that_is_no_store_is_told(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("not a database, " * 1000)
    with pytest.raises(
        StoreError, match=r"must hold a store that stcsim wrote \(results.sqlite: file is not a database\)"
    ):
        begin(tmp_path, resume=True)
