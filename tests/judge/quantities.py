"""What a stored sample says of a quantity (docs/method.md, "CPU cost", and the names that `hopyard schema` lists)."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

def net_cpu(m, tolerance):
    """CPU time of the load in ns (docs/method.md, "CPU cost"); None where it is not known closely enough."""
    cpu = m["cpu"]
    if cpu.get("is_partial"):  # the load also ran where nobody could read it
        return None
    without_others = cpu["busy_ns"] - cpu["foreign_ns"] - cpu["controller_ns"]
    if cpu.get("busy_is_exact"):  # no time is both idle and stolen
        exact = without_others - cpu["baseline_ns"]
        return exact if exact > 0 else None
    least = without_others - (cpu.get("baseline_most_ns") or cpu["baseline_ns"])
    left = without_others + cpu["steal_ns"]
    most = left - cpu["baseline_ns"]
    own = cpu.get("workers_ns") or 0.0
    figure = max((least + most) / 2, min(own, left))
    known = own <= left * (1 + tolerance) and figure > 0 and most - least <= tolerance * figure
    return figure if known else None


def of_cpu(figure):
    """A figure of the CPU time, brought to the receiver's window."""

    def of(m, tolerance):
        net = net_cpu(m, tolerance)
        return None if net is None else figure(m, net / m["cpu"]["elapsed_ns"] * m["window_ns"])

    return of


def per_second(*path):
    def of(m, _):
        count = dig(m, *path)
        return None if count is None else count / m["window_ns"] * 1e9

    return of


def misses_per_packet(m, _):
    misses = dig(m, "client_scheduling", "cache_misses")
    return None if misses is None else misses / m["received"]["messages"]


def dig(found, *path):
    for key in path:
        found = found.get(key) if found else None
    return found


def switches(m, _):
    kinds = [dig(m, "client_scheduling", kind) for kind in ("voluntary_switches", "involuntary_switches")]
    return None if None in kinds else sum(kinds) / m["window_ns"] * 1e9


def per_switch(m, _):
    """CPU time of the client between two switches. What was not idle is no use where the hypervisor took time away."""
    counted, rate = m.get("client_cpus"), switches(m, _)
    return counted["busy_ratio"] * counted["cpus"] * 1e9 / rate if counted and rate else None


def lost(m, _):
    if loop := m.get("open_loop"):
        return max(loop["due"] - loop["arrived"], 0) / loop["due"]
    if m["is_stream"]:
        return max(1 - m["received"]["messages"] / m["sent"]["messages"], 0.0)
    return m["timeouts"] / (m.get("answered", m["received"]["transactions"]) + m["timeouts"])


def queue_changes(m, _):
    seen = m.get("queue_changes")
    return seen and seen["count"] / (seen["span_ns"] / 1e9 * seen["flows"])


def queues_in_use(m, _):
    """How many queues of the tap that gave the most bytes would carry as much by equal shares (docs/tapswitch.md, "Queues")."""
    taps = m.get("queue_frames")
    frames = max(taps, key=lambda tap: tap["bytes"])["frames"] if taps else []
    return sum(frames) ** 2 / sum(one**2 for one in frames) if any(frames) else None


def of_arrivals(figure):
    return lambda m, _: figure(m["arrivals"], m) if m.get("arrivals") else None


def dropped(arrivals, _):
    drops = arrivals["socket_drops"]
    return drops / (drops + sum(flow["packets"] for flow in arrivals["flows"]))


def rfc3550(arrivals, _):
    """The mean over flows."""
    flows = [flow["jitter_rfc3550_ns"] for flow in arrivals["flows"] if flow.get("jitter_rfc3550_ns") is not None]
    return sum(flows) / len(flows) if flows else None


def delay_variation(arrivals, _):
    """At 99.9 %, of at least 10,000 datagrams (10 / (1 - q) observations)."""
    times = arrivals.get("pdv")
    return next((at for q, at in times["quantiles"] if q == 0.999), None) if times and times["count"] >= 10_000 else None


def median_run(arrivals, _):
    """Of at least 20 runs (10 / (1 - q) observations)."""
    runs = arrivals.get("runs")
    return next((at for q, at in runs["quantiles"] if q == 0.5), None) if runs and runs["count"] >= 20 else None


def watched(arrivals):
    """Jitter by interval from the start of the traffic; None where it was not watched from there, or for too short."""
    series = arrivals.get("series")
    jitter = [interval.get("interarrival_sd_ns") for interval in series["intervals"]] if series else []
    return None if len(jitter) < 8 or None in jitter or series["before_ns"] else jitter


def settling(arrivals, _):
    """The end of the first interval from which on jitter stays within 10 % of its final value (docs/curves.md)."""
    jitter = watched(arrivals)
    if jitter is None:
        return None
    quarter = sorted(jitter[-(len(jitter) // 4) :])
    final = (quarter[(len(quarter) - 1) // 2] + quarter[len(quarter) // 2]) / 2
    outside = [i for i, value in enumerate(jitter) if abs(value - final) > 0.1 * final]
    settled = outside[-1] + 1 if outside else 0
    within = settled <= len(jitter) - len(quarter)
    return (settled + 1) * arrivals["series"]["interval_ns"] / 1e9 if within else None


def unsettled(m):
    """What the time to settle is at least where jitter left its band in the last quarter: all before that."""
    arrivals = m.get("arrivals") or {}
    jitter = watched(arrivals)
    return jitter and (len(jitter) - len(jitter) // 4) * arrivals["series"]["interval_ns"] / 1e9


def softirq(m, _):
    cpu = m["cpu"]
    return cpu["split"]["softirq_ns"] / (cpu["elapsed_ns"] * cpu["cpus"]) if abs(cpu["closure"] - 1) <= 0.01 else None


def busy(m, tolerance):
    net = net_cpu(m, tolerance)
    return None if net is None else net / (m["cpu"]["elapsed_ns"] * m["cpu"]["cpus"])


EVERY = {"tcp_stream", "tcp_maerts", "tcp_rr", "tcp_crr", "udp_rr", "udp_stream", "udp_gso", "udp_paced", "udp_flood"}
NUMBERED = {"udp_flood", "udp_paced"}
DATAGRAMS = NUMBERED | {"udp_stream", "udp_gso"}
STREAMS = DATAGRAMS | {"tcp_stream", "tcp_maerts"}
COSTS = {
    "busy_cores": lambda m, ns: ns / m["window_ns"],
    "cpu_ns_per_byte": lambda m, ns: ns / m["received"]["bytes"],
    "cpu_ns_per_packet": lambda m, ns: ns / m["received"]["messages"],
    "cpu_ns_per_transaction": lambda m, ns: ns / m["received"]["transactions"],
}
QUANTITIES = {
    "goodput_bps": (STREAMS, lambda m, _: m["received"]["bytes"] * 8 / m["window_ns"] * 1e9),
    "packets_per_s": (DATAGRAMS, per_second("received", "messages")),
    "transactions_per_s": (EVERY - STREAMS, per_second("received", "transactions")),
    "cpu_ns_per_byte": (STREAMS, of_cpu(COSTS["cpu_ns_per_byte"])),
    "cpu_ns_per_packet": (DATAGRAMS, of_cpu(COSTS["cpu_ns_per_packet"])),
    "cpu_ns_per_transaction": (EVERY - STREAMS, of_cpu(COSTS["cpu_ns_per_transaction"])),
    "efficiency": (STREAMS, of_cpu(lambda m, ns: m["received"]["bytes"] * 8e9 / ns)),
    "normalized_bps_per_cpu_percent": (
        STREAMS,
        of_cpu(lambda m, ns: m["received"]["bytes"] * 8e9 / (100 * ns / m["cpu"]["cpus"])),
    ),
    "busy_cores": (EVERY, of_cpu(COSTS["busy_cores"])),
    "busy_ratio": (EVERY, busy),
    "softirq_ratio": (EVERY, softirq),
    "send_error_ratio": (EVERY, lambda m, _: m["send_errors"] / (m["send_errors"] + m["sent"]["messages"])),
    "lost_ratio": (DATAGRAMS | {"udp_rr"}, lost),
    "skbs_per_s": (STREAMS, per_second("arrived", "skbs")),
    "bytes_per_skb": (STREAMS, lambda m, _: m["arrived"]["bytes"] / m["arrived"]["skbs"] if m.get("arrived") else None),
    "client_cpu_busy_ratio": (EVERY, lambda m, _: dig(m, "client_cpus", "busy_ratio")),
    "server_cpu_busy_ratio": (EVERY, lambda m, _: dig(m, "server_cpus", "busy_ratio")),
    "client_context_switches_per_s": (EVERY, switches),
    "client_cpu_ns_per_switch": (EVERY, lambda m, t: per_switch(m, t) if net_cpu(m, t) is not None else None),
    "client_cache_misses_per_s": (EVERY, per_second("client_scheduling", "cache_misses")),
    "cache_misses_per_packet": (DATAGRAMS, misses_per_packet),
    "queue_changes_per_flow_per_s": (EVERY - {"tcp_crr"}, queue_changes),
    "queues_in_use": (EVERY, queues_in_use),
    "interarrival_sd_ns": (NUMBERED, of_arrivals(lambda a, _: a.get("interarrival_sd_ns"))),
    "jitter_rfc3550_ns": (NUMBERED, of_arrivals(rfc3550)),
    "jitter_pdv_ns": (NUMBERED, of_arrivals(delay_variation)),
    "run_length_p50_packets": (NUMBERED, of_arrivals(median_run)),
    "receiver_dropped_ratio": (NUMBERED, of_arrivals(dropped)),
    "receiver_busy_ratio": (NUMBERED, of_arrivals(lambda a, m: max(a["receiver_cpu_ns"]) / m["window_ns"])),
    "settling_s": (EVERY, of_arrivals(settling)),
}


def of_machine(ends, figure):
    """The same of the machine that one end alone uses."""

    def of(m, tolerance):
        own = [machine.get("cpu") for machine in m.get("machines", []) if machine["ends"] == ends]
        return of_cpu(figure)(m | {"cpu": own[0]}, tolerance) if own and own[0] else None

    return of


for cost, figure in COSTS.items():
    for end in "client", "server":
        QUANTITIES[f"{end}_{cost}"] = QUANTITIES[cost][0], of_machine(end, figure)


def named(quantity, load, has_clients_machine=False):
    """`rate` and `cost` are those of the load; what is local is of the client's machine."""
    if quantity.startswith("local "):
        of_all = named(quantity.removeprefix("local "), load)
        return f"client_{of_all}" if has_clients_machine else of_all
    if quantity == "rate":
        return "goodput_bps" if load in STREAMS else "transactions_per_s"
    if quantity == "cost":
        unit = "packet" if load in DATAGRAMS else "byte" if load in STREAMS else "transaction"
        return f"cpu_ns_per_{unit}"
    return quantity


class Subsystems:
    """Whose a call chain is: the innermost function that is no helper says (subsystems.toml)."""

    def __init__(self):
        (file,) = ROOT.glob("crates/*/src/subsystems.toml")
        table = tomllib.loads(file.read_text())
        self.patterns, self.programs, self.modules, self.known = {}, {}, {}, {}
        for one in table["subsystem"]:
            self.patterns |= dict.fromkeys(one["functions"], ("of", one["name"]))
            self.programs |= dict.fromkeys(one.get("programs", []), ("of", one["name"]))
            self.modules |= dict.fromkeys(one.get("modules", []), ("of", one["name"]))
        for one in table["helper"]:
            self.patterns |= dict.fromkeys(one["functions"], ("helper", one["otherwise"]))
        self.patterns |= dict.fromkeys(table["idle"]["functions"], ("of", None))

    def whose(self, frame):
        if frame not in self.known:
            name, _, module = frame.partition(" [")
            name = name.split(".")[0] or name
            fitting = [p for p in self.patterns if p == name or (p.endswith("*") and name.startswith(p[:-1]))]
            # A whole name is longer than any beginning of it.
            best = max(fitting, key=lambda p: (p == name, len(p)), default=None)
            found = self.patterns[best] if best else self.modules.get(module.rstrip("]"))
            # The name of a BPF program stands behind its tag.
            program = name.removeprefix("bpf_prog_").partition("_")[2] if name.startswith("bpf_prog_") else ""
            of_program = [whose for begin, whose in self.programs.items() if program.startswith(begin)]
            self.known[frame] = of_program[0] if of_program else found
        return self.known[frame]

    def place(self, window, stack):
        """The subsystem of a chain of calls; None of an idle CPU."""
        place = otherwise = "unclassified"
        for at in reversed(stack["frames"][1:]):
            kind, name = self.whose(window["frames"][at]) or (None, None)
            if kind == "helper":
                otherwise = name if otherwise == "unclassified" else otherwise
                place = otherwise
                continue
            return name if kind else otherwise
        return place

    def share(self, window, names, least=0):
        """Samples within these subsystems, or the least of them, over all that are not idle."""
        busy = [(self.place(window, stack), stack["samples"]) for stack in window["stacks"]]
        total = sum(samples for place, samples in busy if place is not None)
        return max(sum(samples for place, samples in busy if place in names), least) / total if total else None

    def in_softirq(self, window):
        """Samples whose chain of calls has a softirq in it, over all that are not idle."""
        inside = total = 0
        for stack in window["stacks"]:
            if self.place(window, stack) is None:
                continue
            names = {window["frames"][at].split(".")[0].split(" ")[0] for at in stack["frames"]}
            total += stack["samples"]
            inside += stack["samples"] * bool(names & {"handle_softirqs", "__do_softirq"})
        return inside / total if total else None
