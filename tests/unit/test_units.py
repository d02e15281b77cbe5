"""Quantities are read with their unit, exactly, and written so that they read back the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter

from stcsim import units
from stcsim.units import Bytes, BytesPerCycle, BytesPerSecond, Cycles, Hertz, QuantityError, Seconds

HERTZ = "must be a frequency with its unit (Hz, kHz, MHz, GHz), such as 1.41 GHz"
BYTES = "must be an amount of bytes with its unit (B, KB, kB, MB, GB, TB, KiB, MiB, GiB, TiB), such as 40 MiB"
PER_CYCLE = "must be a bandwidth per clock cycle with its unit (B/clk, B/cycle), such as 128 B/clk"
TIME = "must be a time with its unit (s, ms, us, ns), such as 3.5 us"
CYCLES = "must be a number of clock cycles (clk, cycle, cycles, or none), such as 25 clk"


@pytest.mark.parametrize(
    ("parse", "text", "expected"),
    [
        (units.parse_hertz, "1.41 GHz", 1_410_000_000),
        (units.parse_hertz, "1.41GHz", 1_410_000_000),
        (units.parse_hertz, " 1410  MHz ", 1_410_000_000),
        (units.parse_hertz, "1.2e3 kHz", 1_200_000),
        (units.parse_bytes, "40 MiB", 40 * 2**20),
        (units.parse_bytes, "164 KB", 164_000),
        (units.parse_bytes, "164 kB", 164_000),
        (units.parse_bytes, "164 KiB", 164 * 1024),
        (units.parse_bytes, "1.5 KiB", 1536),
        (units.parse_bytes, "0 B", 0),
        (units.parse_bytes_per_cycle, "128 B/clk", 128),
        (units.parse_bytes_per_cycle, "64.5 B/cycle", 64.5),
        (units.parse_bytes_per_second, "1555 GB/s", 1.555e12),
        (units.parse_bytes_per_second, "1 GiB/s", 2**30),
        (units.parse_seconds, "3.5 us", 3.5e-6),
        (units.parse_seconds, "0 s", 0),
        (units.parse_cycles, "25 clk", 25),
        (units.parse_cycles, "1 cycle", 1),
        (units.parse_cycles, 25, 25),
        (units.parse_cycles, 1e9, 10**9),
    ],
)
def test_a_quantity_is_read_with_its_unit(
    parse: Callable[[object], float], text: object, expected: float
) -> None:
    value = parse(text)
    assert value == expected
    assert type(value) is (int if parse in (units.parse_bytes, units.parse_cycles) else float)


@pytest.mark.parametrize(
    ("parse", "value", "message"),
    [
        (units.parse_hertz, 1410, f"{HERTZ}, not 1410"),
        (units.parse_hertz, "1410", f"{HERTZ}, not '1410'"),
        (units.parse_hertz, "1.41 ghz", f"{HERTZ}, not 1.41 ghz (did you mean 1.41 GHz?)"),
        (units.parse_hertz, "40 MiB", f"{HERTZ}, not 40 MiB"),
        (units.parse_hertz, "1.2.3 GHz", f"{HERTZ}, not 1.2.3 GHz"),
        (units.parse_hertz, "GHz", f"{HERTZ}, not GHz"),
        (units.parse_hertz, "nan GHz", f"{HERTZ}, not nan GHz"),
        (units.parse_hertz, "١ GHz", f"{HERTZ}, not ١ GHz"),
        (units.parse_hertz, "", f"{HERTZ}, not ''"),
        (units.parse_hertz, None, f"{HERTZ}, not null"),
        (units.parse_hertz, True, f"{HERTZ}, not true"),
        (units.parse_hertz, "0 GHz", "must be greater than 0 Hz, not 0 GHz"),
        (units.parse_hertz, "-1 GHz", "must be greater than 0 Hz, not -1 GHz"),
        (units.parse_hertz, "1e-999 GHz", "must be greater than 0 Hz, not 1e-999 GHz"),
        (units.parse_hertz, "1e999 GHz", "must be less than 2**63 Hz, not 1e999 GHz"),
        (units.parse_bytes, 40, f"{BYTES}, not 40"),
        (units.parse_bytes, "40 M", f"{BYTES}, not 40 M"),
        (units.parse_bytes, "40 mib", f"{BYTES}, not 40 mib (did you mean 40 MiB?)"),
        (units.parse_bytes, "0.3 B", "must come to a whole number of B, not 0.3 B"),
        (units.parse_bytes, "-1 B", "must be at least 0 B, not -1 B"),
        (units.parse_bytes, "8388608 TiB", "must be less than 2**63 B, not 8388608 TiB"),
        (units.parse_bytes_per_cycle, "128 GB/s", f"{PER_CYCLE}, not 128 GB/s"),
        (units.parse_bytes_per_cycle, 128, f"{PER_CYCLE}, not 128"),
        (
            units.parse_bytes_per_cycle,
            "128 B / clk",
            f"{PER_CYCLE}, not 128 B / clk (did you mean 128 B/clk?)",
        ),
        (units.parse_bytes_per_second, "0 GB/s", "must be greater than 0 B/s, not 0 GB/s"),
        (units.parse_seconds, "25 clk", f"{TIME}, not 25 clk"),
        (units.parse_cycles, "3 us", f"{CYCLES}, not 3 us"),
        (units.parse_cycles, "25", f"{CYCLES}, not '25'"),
        (units.parse_cycles, True, f"{CYCLES}, not true"),
        (units.parse_cycles, float("nan"), f"{CYCLES}, not nan"),
        (units.parse_cycles, float("inf"), f"{CYCLES}, not inf"),
        (units.parse_cycles, 2.5, "must come to a whole number of clk, not 2.5"),
        (units.parse_cycles, -1, "must be at least 0 clk, not -1"),
    ],
)
def test_what_is_not_the_quantity_is_refused(
    parse: Callable[[object], float], value: object, message: str
) -> None:
    with pytest.raises(QuantityError) as caught:
        parse(value)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (units.format_hertz(1.41e9), "1.41 GHz"),
        (units.format_hertz(250.0), "250 Hz"),
        (units.format_bytes(40 * 2**20), "40 MiB"),
        (units.format_bytes(164_000), "164 KB"),
        (units.format_bytes(1_000_001), "1000001 B"),
        (units.format_bytes(0), "0 B"),
        (units.format_bytes_per_cycle(64.3), "64.3 B/clk"),
        (units.format_bytes_per_second(1.555e12), "1555 GB/s"),
        (units.format_seconds(3.5e-6), "3.5 us"),
        (units.format_cycles(25), "25 clk"),
    ],
)
def test_a_quantity_is_written_in_the_shortest_exact_way(text: str, written: str) -> None:
    assert text == written


POSITIVE = st.floats(min_value=0, max_value=2.0**63, exclude_min=True, exclude_max=True)
COUNT = st.integers(min_value=0, max_value=2**63 - 1)


@pytest.mark.parametrize(
    "name", ["hertz", "bytes_per_cycle", "bytes_per_second", "seconds", "bytes", "cycles"]
)
@given(data=st.data())
def test_what_is_written_reads_back_to_the_same_number(name: str, data: st.DataObject) -> None:
    value = data.draw(COUNT if name in ("bytes", "cycles") else POSITIVE)
    text = getattr(units, f"format_{name}")(value)
    assert getattr(units, f"parse_{name}")(text) == value


class _Everything(BaseModel):
    hertz: Hertz
    capacity: Bytes
    per_cycle: BytesPerCycle
    per_second: BytesPerSecond
    time: Seconds
    latency: Cycles


EVERYTHING = {
    "hertz": "1.41 GHz",
    "capacity": "40 MiB",
    "per_cycle": "128 B/clk",
    "per_second": "1555 GB/s",
    "time": "3.5 us",
    "latency": "25 clk",
}


def test_a_model_is_dumped_with_units_as_json_and_without_in_python() -> None:
    model = _Everything.model_validate(EVERYTHING)
    assert model.model_dump(mode="json") == EVERYTHING
    assert model.model_dump() == {
        "hertz": 1.41e9,
        "capacity": 40 * 2**20,
        "per_cycle": 128.0,
        "per_second": 1.555e12,
        "time": 3.5e-6,
        "latency": 25,
    }
    assert _Everything.model_validate(model.model_dump(mode="json")) == model


@pytest.mark.parametrize(
    ("quantity", "accepted", "refused"),
    [
        (Hertz, ["1.41 GHz", "1.41GHz"], ["1.41", "1.41 ghz", "1.41 GB/s"]),
        (Bytes, ["40 MiB", "40 KB"], ["40", "40 M"]),
        (BytesPerCycle, ["128 B/clk"], ["128 B", "128 GB/s"]),
    ],
)
def test_the_json_schema_accepts_what_the_parser_accepts(
    quantity: Any, accepted: list[str], refused: list[str]
) -> None:
    schema = TypeAdapter(quantity).json_schema()
    assert schema["type"] == "string"
    assert all(re.search(schema["pattern"], text) for text in [*accepted, *schema["examples"]])
    assert not any(re.search(schema["pattern"], text) for text in refused)


def test_the_json_schema_of_cycles_takes_bare_numbers_too() -> None:
    schema = TypeAdapter(Cycles).json_schema()
    assert [choice["type"] for choice in schema["anyOf"]] == ["integer", "string"]
