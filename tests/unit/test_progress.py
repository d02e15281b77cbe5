"""Progress on stderr: nothing for quick work, then a line now and then, with rate and time left."""

from __future__ import annotations

import time

import pytest

from stcsim.cli.progress import Bar, Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that a test sets: its only element is the time in seconds."""
    now = [0.0]
    monkeypatch.setattr("stcsim.cli.progress.time.monotonic", lambda: now[0])
    return now


def test_nothing_is_shown_before_two_seconds_and_then_a_line_every_five(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with Bar() as bar:
        for second in range(14):
            clock[0] = float(second)
            bar.show(second, 100, second, "none failed")
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("] ")[1].split("/")[0] for line in lines] == ["2", "7", "12"]


def test_rate_and_time_left_count_what_this_process_did(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with Bar() as bar:
        clock[0] = 10.0
        bar.show(60, 100, 20, "1 failed; best so far 3.00x", with_rate=True)
    line = capsys.readouterr().err
    assert line == "[############........] 60/100, 2 runs/s, about 20 s left: 1 failed; best so far 3.00x\n"


def test_a_terminal_has_one_line_that_is_rewritten_and_cleared(
    clock: list[float], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with Bar() as bar:
        for second in (3.0, 4.0):
            clock[0] = second
            bar.update(1, 4, "a run")
    text = capsys.readouterr().err
    assert text.count("\r\x1b[K[") == 2
    assert text.endswith("\r\x1b[K")
    assert "\n" not in text


def test_a_clock_tells_the_seconds_on_a_terminal_and_clears_its_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("stcsim.cli.progress.DELAY_SECONDS", 0.01)
    with Clock("8 x 8 x 8 on v100"):
        time.sleep(0.3)
    assert capsys.readouterr().err == "\r\x1b[K0 s: 8 x 8 x 8 on v100\r\x1b[K"


@pytest.mark.parametrize(("terminal", "delay"), [(True, 60.0), (False, 0.01)])
def test_a_clock_is_silent_for_quick_work_and_without_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, terminal: bool, delay: float
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal, raising=False)
    monkeypatch.setattr("stcsim.cli.progress.DELAY_SECONDS", delay)
    with Clock("8 x 8 x 8 on v100"):
        time.sleep(0.1)
    assert capsys.readouterr().err == ""
