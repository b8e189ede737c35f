"""Stored runs: their cells, and what each shows of a quantity (docs/method.md, "Turns", and docs/claims.md)."""

import json
import math
import re

from intervals import location
from quantities import QUANTITIES, STREAMS, Subsystems, dig, named, unsettled

# What is not a quantity of the run, and so not of its turns.
OWN = {"busy_ratio", "softirq_ratio", "send_error_ratio", "cache_misses_per_packet", "settling_s"}
STEAL = 0.01  # of the CPU time: a window with more is disturbed
# Axes that only some paths have (Descriptor::OF_PATH).
OF_PATH = {"containers", "host_link", "ports", "rules", "chain", "segments", "routed", "guest_cpus", "guest_memory", "attach"}
OF_PATH |= {"queues", "queue_threads", "queue_length", "steering", "join", "hook", "services", "conntrack", "vhost"}


# Cells: a dictionary of everything that a cell is, as words.


def properties(cell):
    own = {name: cell[name] for name in ("path", "peer", "load")}
    for key, value in cell["axes"].items():
        own[key.removesuffix("_bytes").removesuffix("_bps")] = str(value)
    return own


def stored(value):
    """A value as runs have it: rates in bit/s."""
    rate = re.fullmatch(r"(\d+)([kmg])bit", str(value))
    return str(int(rate[1]) * 1000 ** (1 + "kmg".index(rate[2]))) if rate else str(value)


def is_meant(cells, own):
    def fits(name, wanted):
        wanted = wanted if isinstance(wanted, list) else [wanted]
        return own.get(name, "default") in map(stored, wanted)

    return all(fits(name, wanted) for name, wanted in cells.items())


def is_base(own, other, to):
    """Is `other` the same on that path, or at that value of an axis? A path may lack an axis that only some paths have."""
    if "=" in to:
        name, value = to.split("=")
        return name in own and own | {name: value} == other
    if to == "native" and "containers" in own and other.get("containers") == "native":
        own = own | {"containers": "native"}  # it has no containers: its processes are what they are compared with
    lacks = {name for name in OF_PATH if name not in other}
    return {k: v for k, v in own.items() if k not in lacks} | {"path": to} == other


def without(own, axes):
    return {name: value for name, value in own.items() if name not in axes}


class Run:
    """A stored run: run.json, samples.jsonl, profiles.jsonl."""

    subsystems = Subsystems()
    asked = {}  # the confidence that rules ask for, by plan

    def __init__(self, directory):
        self.header = json.loads((directory / "run.json").read_text())
        self.header["confidence"] = max(self.header["confidence"], self.asked.get(self.header["plan"], 0))
        self.cells = [properties(planned["cell"]) for planned in self.header["cells"]]
        widths = [w for w in (self.header["half_width"], self.header["margin"]) if w > 0]
        self.tolerance = min(widths, default=0.02)
        samples = lines(directory / "samples.jsonl")
        self.samples = self.of_last_attempts(samples)
        self.failed = self.of_failed_attempts(samples)
        measured = [s["outcome"]["measured"] for s in samples if "measured" in s["outcome"]]
        self.has_clients_machine = any(
            machine["ends"] == "client" for m in measured for machine in m.get("machines", [])
        )
        self.last = max((s["block"] for s in samples), default=-1)
        profiles = lines(directory / "profiles.jsonl")
        self.profiles = {(p["block"], p["attempt"], p["cell"]): p for p in profiles}
        self.known = {}

    def append(self, later):
        """Runs of some of its cells, made later: as further blocks."""
        for more in later:
            self.has_clients_machine |= more.has_clients_machine
            self.failed |= {self.cells.index(more.cells[at]) for at in more.failed}
            first, self.last = 1 + self.last, 1 + self.last + more.last
            for at, by_block in more.samples.items():
                cell = self.cells.index(more.cells[at])
                self.samples.setdefault(cell, {}).update({first + b: s | {"block": first + b, "cell": cell} for b, s in by_block.items()})
            for (block, attempt, at), window in more.profiles.items():
                self.profiles[first + block, attempt, self.cells.index(more.cells[at])] = window

    @classmethod
    def of_failed_attempts(cls, samples):
        """Cells of which a window failed in an attempt that counts."""
        return {s["cell"] for s in cls.that_count(samples) if "measured" not in s["outcome"]}

    @classmethod
    def of_last_attempts(cls, samples):
        """Samples that were measured, by cell, then block."""
        found = {}
        for s in sorted(cls.that_count(samples), key=lambda s: s["block"]):
            if "measured" in s["outcome"]:
                found.setdefault(s["cell"], {})[s["block"]] = s
        return found

    @staticmethod
    def that_count(samples):
        """Of a block that was repeated the last whole attempt counts, failed cells included."""
        sizes = {}
        for s in samples:
            attempts = sizes.setdefault(s["block"], {})
            attempts[s["attempt"]] = attempts.get(s["attempt"], 0) + 1
        counts = {block: max(a, key=lambda attempt: (a[attempt], attempt)) for block, a in sizes.items()}
        return [s for s in samples if s["attempt"] == counts[s["block"]]]

    def series(self, cell, quantity):
        """Values by block, of the samples that have the quantity."""
        if (cell, quantity) not in self.known:
            values = {block: self.value(s, quantity) for block, s in self.samples.get(cell, {}).items()}
            self.known[cell, quantity] = {b: v for b, v in values.items() if v is not None and math.isfinite(v)}
        return self.known[cell, quantity]

    def value(self, sample, quantity):
        load, m = self.cells[sample["cell"]]["load"], sample["outcome"]["measured"]
        window = self.profiles.get((sample["block"], sample["attempt"], sample["cell"]))
        if quantity.startswith("share "):
            return window and self.subsystems.share(window, quantity.removeprefix("share ").split("+"))
        found = self.figure(load, m, "cost" if quantity.startswith("cost of ") else quantity)
        if quantity.startswith("cost of "):
            share = window and self.subsystems.share(window, quantity.removeprefix("cost of ").split("+"))
            return None if found is None or share is None else found * share
        if quantity == "softirq_ratio" and found is None and window:
            shares = self.subsystems.in_softirq(window), QUANTITIES["busy_ratio"][1](m, self.tolerance)
            return None if None in shares else shares[0] * shares[1]
        return found

    def a_sample_at_least(self, cell, block, quantity):
        """The share of a profile, with one sample of it where there is none."""
        sample = self.samples[cell][block]
        window = self.profiles[block, sample["attempt"], cell]
        return self.subsystems.share(window, quantity.removeprefix("share ").split("+"), least=1)

    def figure(self, load, m, quantity):
        """A quantity of a window."""
        loads, of = QUANTITIES[named(quantity, load, self.has_clients_machine)]
        try:
            return of(m | {"is_stream": load in STREAMS}, self.tolerance) if load in loads else None
        except ZeroDivisionError:
            return None

    def evidence(self, cell):
        """Samples by block, but none of a cell that does not count: Open vSwitch in user space, guests without KVM, traffic that went
        another way."""
        samples = self.samples.get(cell, {})
        for sample in samples.values():
            m = sample["outcome"]["measured"]
            userspace = dig(m, "datapath", "kind") == "userspace" and m["datapath"]["switch"] == "Open vSwitch"
            if userspace or dig(m, "guest", "emulated") or not m["way"]["proved"]:
                return {}
        return samples

    def counting(self, cell, quantity):
        """Values by block as far as they count; of times to settle all or none."""
        samples = self.evidence(cell)
        series = self.series(cell, quantity) if samples else {}
        return {} if quantity == "settling_s" and len(series) < len(samples) else series

    def disturbed(self, cell):
        """Blocks in which the hypervisor took time from the cell."""
        cpus = {block: sample["outcome"]["measured"]["cpu"] for block, sample in self.samples.get(cell, {}).items()}
        return {b for b, cpu in cpus.items() if cpu["steal_ns"] > STEAL * cpu["elapsed_ns"] * cpu["cpus"]}

    def settled_at_least(self, cell):
        """Times to settle, with what it is at least where jitter did not; None where it settled in all windows, or is not known in one."""
        windows = [sample["outcome"]["measured"] for sample in self.evidence(cell).values()]
        times = [QUANTITIES["settling_s"][1](m, self.tolerance) for m in windows]
        known = [unsettled(m) if time is None else time for m, time in zip(windows, times)]
        return known if None in times and None not in known else None

    def paired(self, own, base, quantity):
        """Values by block of a cell and of what it is compared with: the ratio of two that took turns side by side is that of their rounds."""
        one, other = self.counting(own, quantity), self.counting(base, quantity)
        if quantity in OWN or quantity.startswith(("share ", "cost of ")):
            return one, other
        both = [block for block in one if block in other]
        logs = {block: self.log_ratio(own, base, block, quantity) for block in both}
        own_values = {b: one[b] if logs[b] is None else other[b] * math.exp(logs[b]) for b in both}
        return own_values, {block: other[block] for block in both}

    def log_ratio(self, own, base, block, quantity):
        """Where the logarithms of the ratios of all two undisturbed turns of a round lie, or of all where those are too few;
        None where most rounds have none.
        Samples of one generation have one start; the rounds of two were at other times."""
        load, samples = self.cells[own]["load"], [self.samples[cell][block] for cell in (own, base)]
        if samples[0]["started_ns"] != samples[1]["started_ns"]:
            return None
        one, other = (by_round(sample["outcome"]["measured"]) for sample in samples)
        rounds = [(one[number], other[number]) for number in sorted(one) if number in other]
        quiet = [sides for sides in rounds if all(any(map(is_quiet, turns)) for turns in sides)]
        rounds = quiet if len(quiet) >= 2 and 8 * len(quiet) >= len(rounds) else rounds
        counts = is_quiet if len(quiet) == len(rounds) else lambda turn: True
        known = []
        for sides in rounds:
            logs = [[self.log(load, turn, quantity) for turn in turns if counts(turn)] for turns in sides]
            own_logs, base_logs = ([log for log in side if log is not None] for side in logs)
            if own_logs and base_logs:
                known.append([a - b for a in own_logs for b in base_logs])
        if not known or 2 * len(known) < len(rounds):
            return None
        found = location([log for logs in known for log in logs])
        return found if found is not None and math.isfinite(found) else None

    def log(self, load, turn, quantity):
        """The logarithm of a quantity of a turn, where it is known."""
        value = self.figure(load, turn | {"timeouts": 0, "send_errors": 0}, quantity)
        if value is None or not math.isfinite(value):
            return None
        return math.log(value) if value > 0 else -math.inf if value == 0 else math.nan


def by_round(m):
    rounds = {}
    for turn in m.get("turns", []):
        rounds.setdefault(turn["round"], []).append(turn)
    return rounds


def is_quiet(turn):
    return turn.get("disturbance") is None


def lines(file):
    return [json.loads(line) for line in file.read_text().split("\n")[:-1]] if file.exists() else []
