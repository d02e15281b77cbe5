"""Totals of networks: what their layers take together on each machine and kernel; reads results only.

Times add up, since layers run one after the other; so speed-ups of a network are weighted by
time, and one slow layer counts as it would in practice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stcsim.report.skipped import skipped_text
from stcsim.result.result import Result

COLUMNS = (
    "network", "machine", "kernel", "layers", "GMACs", "useful", "time us", "speed-up", "layers' speed-ups",
    "edges x zeros",    "lane", "effective",
)  # fmt: skip


@dataclass(frozen=True)
class NetworkTotal:
    """A network on one machine with one kernel.

    Parameters
    ----------
    network, machine, kernel : str
        The kernel is the one that ran; where some layers ran by another (dense), both are named.
    n_layers : int
    macs_total, macs_useful, mac_slots : int
    time_us, baseline_us : float
        Of all layers; of the same layers on the baseline, NaN without one.
    speed_ups : tuple of float
        Of each layer that takes any time.
    capacity : float
        Multipliers times cycles.
    outer_products : dict of str to int
        As in a result, of all layers; empty if one of them skips none.
    """

    network: str
    machine: str
    kernel: str
    n_layers: int
    macs_total: int
    macs_useful: int
    mac_slots: int
    time_us: float
    baseline_us: float
    speed_ups: tuple[float, ...]
    capacity: int
    outer_products: dict[str, int]

    @property
    def speed_up(self) -> float:
        """Baseline time of the network over its time; NaN without a baseline."""
        return self.baseline_us / self.time_us if self.time_us else float("nan")


def totals(results: Sequence[Result], baselines: Sequence[Result | None]) -> list[NetworkTotal]:
    """Add up the layers of every network.

    Parameters
    ----------
    results : sequence of Result
    baselines : sequence of Result or None
        For each result, the one its speed-up is measured against.

    Returns
    -------
    totals : list of NetworkTotal
        Networks, and within them machines and kernels, in the order of the results.
    """
    # The runs of a layer come one after the other: the how-manieth run of its layer tells the kernels apart,
    # also where a layer was adapted and ran by another kernel than its machine's.
    groups: dict[tuple[str, int], list[tuple[Result, Result | None]]] = {}
    places: dict[tuple[str, str], int] = {}
    for result, baseline in zip(results, baselines, strict=True):
        if result.network:
            layer = (result.network, result.workload)
            place = places[layer] = places.get(layer, -1) + 1
            groups.setdefault((result.network, place), []).append((result, baseline))
    found = [_total(pairs) for pairs in groups.values()]
    order = list(dict.fromkeys(total.network for total in found))
    return sorted(found, key=lambda total: order.index(total.network))


def _total(pairs: Sequence[tuple[Result, Result | None]]) -> NetworkTotal:
    results = [result for result, _ in pairs]
    bases = [base for _, base in pairs if base is not None]
    return NetworkTotal(
        network=results[0].network,
        machine=results[0].machine,
        kernel=" and ".join(dict.fromkeys(result.kernel for result in results)),
        n_layers=len(results),
        macs_total=sum(result.macs_total for result in results),
        macs_useful=sum(result.macs_useful for result in results),
        mac_slots=sum(result.mac_slots for result in results),
        time_us=sum(result.time_us for result in results),
        baseline_us=sum(base.time_us for base in bases) if len(bases) == len(pairs) else float("nan"),
        speed_ups=tuple(
            base.time_us / result.time_us for result, base in pairs if base is not None and result.cycles
        ),
        capacity=sum(result.multipliers * result.cycles for result in results),
        outer_products=_added([result.outer_products for result in results]),
    )


def _added(counts: Sequence[dict[str, int]]) -> dict[str, int]:
    return {name: sum(each[name] for each in counts) for name in counts[0]} if all(counts) else {}


def rows(found: Sequence[NetworkTotal]) -> list[tuple[str, ...]]:
    """Return the cells of the table of totals, in the order of `COLUMNS`."""
    return [
        (
            total.network,
            total.machine,
            total.kernel,
            str(total.n_layers),
            f"{total.macs_total / 1e9:.3f}",
            f"{total.macs_useful / total.macs_total:.1%}" if total.macs_total else "-",
            f"{total.time_us:,.1f}",
            "-" if total.speed_up != total.speed_up else f"{total.speed_up:.2f}x",
            f"{min(total.speed_ups):.2f}x to {max(total.speed_ups):.2f}x" if total.speed_ups else "-",
            skipped_text(total.outer_products),
            f"{total.macs_useful / total.mac_slots:.1%}" if total.mac_slots else "-",
            f"{total.macs_useful / total.capacity:.1%}" if total.capacity else "-",
        )
        for total in found
    ]
