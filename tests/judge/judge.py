#!/usr/bin/env python3
"""The second judge of published claims: docs/claims.md read once more, in another language.

    judge.py FILE.toml... --from DIR [--from DIR]...

reads files of claims (claims/*.toml) and stored runs, and prints each claim's verdict and figures, and the figures of each open
question, as JSON. Python 3.11, standard
library alone. crates/hopyard-claims/src/tests/twice.rs holds hopyard's own judge to it.
"""

import argparse
import json
import math
import re
import sys
import tomllib
from pathlib import Path

from intervals import Curve, jackknife, ratio, student, widened
from quantities import QUANTITIES, STREAMS, Subsystems, dig, named

FOR_A_VERDICT = 8  # blocks
CONFIDENCE = 0.95  # of what no plan has
COUNTS = ["flows", "chain", "ports", "rules", "queues", "queue_length", "guest_cpus"]
# Axes that only some paths have (Descriptor::OF_PATH).
OF_PATH = {"containers", "ports", "rules", "chain", "segments", "routed", "guest_cpus", "guest_memory", "attach"}
OF_PATH |= {"queues", "queue_length", "steering", "join", "hook", "services", "conntrack", "vhost"}


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

    def __init__(self, directory):
        self.header = json.loads((directory / "run.json").read_text())
        self.cells = [properties(planned["cell"]) for planned in self.header["cells"]]
        widths = [w for w in (self.header["half_width"], self.header["margin"]) if w > 0]
        self.tolerance = min(widths, default=0.02)
        self.samples = self.of_last_attempts(lines(directory / "samples.jsonl"))
        profiles = lines(directory / "profiles.jsonl")
        self.profiles = {(p["block"], p["attempt"], p["cell"]): p for p in profiles}
        self.known = {}

    @staticmethod
    def of_last_attempts(samples):
        """By cell, then block. Of a block that was repeated the last whole attempt counts, failed cells included."""
        sizes = {}
        for s in samples:
            attempts = sizes.setdefault(s["block"], {})
            attempts[s["attempt"]] = attempts.get(s["attempt"], 0) + 1
        counts = {block: max(a, key=lambda attempt: (a[attempt], attempt)) for block, a in sizes.items()}
        found = {}
        for s in sorted(samples, key=lambda s: s["block"]):
            if s["attempt"] == counts[s["block"]] and "measured" in s["outcome"]:
                found.setdefault(s["cell"], {})[s["block"]] = s
        return found

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
        loads, of = QUANTITIES[named("cost" if quantity.startswith("cost of ") else quantity, load)]
        try:
            found = of(m | {"is_stream": load in STREAMS}, self.tolerance) if load in loads else None
        except ZeroDivisionError:
            return None
        if quantity.startswith("cost of "):
            share = window and self.subsystems.share(window, quantity.removeprefix("cost of ").split("+"))
            return None if found is None or share is None else found * share
        if quantity == "softirq_ratio" and found is None and window:
            shares = self.subsystems.in_softirq(window), QUANTITIES["busy_ratio"][1](m, self.tolerance)
            return None if None in shares else shares[0] * shares[1]
        return found

    def counting(self, cell, quantity):
        """The same, but nothing of what does not count: Open vSwitch in user space, guests without KVM, traffic that went another
        way; and of times to settle all or none."""
        samples, series = self.samples.get(cell, {}), self.series(cell, quantity)
        for sample in samples.values():
            m = sample["outcome"]["measured"]
            userspace = dig(m, "datapath", "kind") == "userspace" and m["datapath"]["switch"] == "Open vSwitch"
            if userspace or dig(m, "guest", "emulated") or not m["way"]["proved"]:
                return {}
        return {} if quantity == "settling_s" and len(series) < len(samples) else series


def lines(file):
    return [json.loads(line) for line in file.read_text().split("\n")[:-1]] if file.exists() else []


# Points: what a part of a rule comes to. A point is a function from a confidence to an interval.


def shared(members):
    """Values of several series in the blocks that all have."""
    blocks = sorted(set.intersection(*(set(one) for one in members)))
    return [[one[block] for block in blocks] for one in members]


def geometric_mean(values):
    return values[0] if len(values) == 1 else math.exp(math.fsum(map(math.log, values)) / len(values))


WIDTHS = {"level": 1, "ratio": 2, "share": 3, "corrected": 4}  # cells of one figure


def beside_of(run, own, to):
    """What a cell is compared with."""
    cells = enumerate(run.cells)
    return next((at for at, other in cells if at != own and is_base(run.cells[own], other, to)), None)


def groups(check, run):
    """Cells of each figure, each with what it is compared with; the members of a mean are together."""
    cells, kind, over = run.cells, check["judge"], check.get("mean_over", [])
    bases = {"ratio": check.get("to", []), "share": [check.get("without"), check.get("base")]}
    bases["corrected"] = [*check.get("to", []), check.get("less")]
    to = bases.get(kind, [])
    found = {}
    for own, cell in enumerate(cells):
        if not is_meant(check["cells"], cell):
            continue
        beside = [beside_of(run, own, base) for base in to]
        beside = [at for at in beside if at is not None]
        if kind == "corrected" and len(beside) == 2:
            fourth = beside_of(run, beside[1], to[0])
            beside += [] if fourth is None else [fourth]
        members = [[own, base] for base in beside] if kind == "ratio" else [[own, *beside]]
        for member in members:
            if len(member) == WIDTHS[kind]:
                place = json.dumps([without(cells[at], over) for at in member], sort_keys=True)
                found.setdefault(place, []).append(member)
    return list(found.values())


def of_groups(check, run):
    """The points, and does anything lack that the rule is about?"""
    points, lacks = [], False
    for members in groups(check, run):
        series = [[run.counting(at, check["quantity"]) for at in member] for member in members]
        if not all(one for member in series for one in member):
            lacks = True
            continue
        flat = shared([one for member in series for one in member])
        width = len(members[0])
        # A mean has no logarithm of what is 0.
        if len(members) > 1 and min((v for one in flat for v in one), default=1) <= 0:
            lacks = True
            continue
        sides = [[geometric_mean(values) for values in zip(*flat[side::width])] for side in range(width)]
        points.append(figure(check["judge"], sides))
    return points, lacks


def lost_paths(check, run):
    """Is there a path that the rule names and the run has not? A rule that names none is about all of the plan's."""
    named = check["cells"].get("path", [])
    named = named if isinstance(named, list) else [named]
    bases = [*check.get("to", []), check.get("without", "="), check.get("base", "=")]  # `less` is a value of an axis
    named = {*named, *(base for base in bases if "=" not in base)}
    return not named <= {cell["path"] for cell in run.cells} if named else bool(run.header.get("left_out"))


def figure(kind, sides):
    if kind == "ratio":
        return lambda confidence: ratio(*sides, confidence)
    if kind == "level":
        return lambda confidence: student(sides[0], confidence)

    def corrected(blocks):
        cell, base, less, base_less = (sum(side[i] for i in blocks) for side in sides)
        return (cell - (less - base_less)) / base if base > 0 else None

    def share(blocks):
        cell, less, base = (sum(side[i] for i in blocks) for side in sides)
        return (cell - less) / (cell - base) if cell > base else None

    of_sums = share if kind == "share" else corrected
    return lambda confidence: jackknife(len(sides[0]), of_sums, confidence)


def of_peak(check, run):
    """The last value of the axis over the best of those below the number of CPUs; and is it refuted by a higher one?"""
    axis, cpus, points, refuted = check["axis"], run.header["environment"]["cpus"], [], False
    along, lacks = {}, False
    for at, cell in enumerate(run.cells):
        if is_meant(check["cells"], cell) and axis in cell:
            if not run.counting(at, check["quantity"]):
                lacks = True
                continue
            place = json.dumps(without(cell, [axis]), sort_keys=True)
            along.setdefault(place, {})[int(cell[axis])] = run.counting(at, check["quantity"])
    for values in along.values():
        below = [n for n in values if n < cpus]
        if not below or check["last"] not in values:
            lacks = True
            continue
        best = values[max(below, key=lambda n: sum(values[n].values()) / len(values[n]))]
        points.append(figure("ratio", shared([values[check["last"]], best])))
        above = [n for n in values if n >= cpus]
        confidence = 1 - (1 - run.header["confidence"]) / max(len(above), 1)
        others = [ratio(*shared([values[n], best]), confidence) for n in above]
        refuted |= any(other is not None and other.low > 1 and other.n >= FOR_A_VERDICT for other in others)
    return points, refuted, lacks


SHAPES = {
    "fullness": lambda curve: curve.full(),
    "leap": lambda curve: curve.leap(),
    "slopes": lambda curve: curve.slopes(20),
    "knee": lambda curve: curve.knee(),
    "line": lambda curve: curve.r_squared(),
}


def curves(check, run):
    """Every curve of three counts or more, as (its first cell, its shape)."""
    quantity, confidence, seed = check["quantity"], run.header["confidence"], run.header["seed"]
    for axis in COUNTS:
        found = {}
        for at, cell in enumerate(run.cells):
            if axis in cell:
                place = json.dumps(without(cell, [axis]), sort_keys=True)
                found.setdefault(place, []).append((float(cell[axis]), at))
        for members in map(sorted, found.values()):
            first = run.cells[members[0][1]]
            members = [(x, run.series(at, quantity)) for x, at in members]
            members = [(x, one) for x, one in members if one]
            if len(members) < 3:
                continue
            rows = list(zip(*shared([one for _, one in members])))
            if rows:
                curve = Curve([x for x, _ in members], rows, confidence, seed)
                yield first, SHAPES[check["shape"]](curve)


def of_curves(check, run):
    found, points, lacks, known_at = list(curves(check, run)), [], False, run.header["confidence"]
    for cell, shape in found:
        if not is_meant(check["cells"], cell):
            continue
        if to := check.get("to"):
            others = [other for base, other in found if is_base(cell, base, to[0])]
            if not others:
                continue
            shape = over(shape, others[0])
        if shape is None:
            # Measured at too few counts, it is no curve of that shape; one that is compared is missed.
            lacks |= "to" in check
        else:
            points.append(lambda confidence, shape=shape: widened(shape, known_at, confidence))
    return points, lacks


def over(own, base):
    """The place of one curve over that of another: both intervals count."""
    if own is None or base is None:
        return None
    return type(own)(own.value / base.value, own.low / base.high, own.high / base.low, min(own.n, base.n))


# Verdicts.


def gather(check, report, evidence):
    """Points, the confidence of the run, whether the rule is refuted without any interval, and whether something of it lacks."""
    runs, deeds, benches, guests = evidence
    kind = check["judge"]
    if kind == "bench":
        timed = benches.get(check["bench"], {}).get("Ok")
        sides = timed and [timed["values"]] + ([timed["base"]] if timed.get("base") else [])
        return [figure("ratio" if len(sides) > 1 else "level", sides)] if timed else [], CONFIDENCE, False, not timed
    if kind == "missing":
        return [], CONFIDENCE, False, True
    if kind == "does":
        return [], CONFIDENCE, False, False
    plan = check.get("plan", report["plan"])
    run, guest = runs.get(plan), guests.get(plan)
    own = of_run(check, run) if run else ([], CONFIDENCE, False, True)
    return with_guest(check, own, run, guest) if guest else own


def with_guest(check, own, run, guest):
    """What a guest has of paths that this machine lacks counts, unless its CPU is a program."""
    here = {cell["path"] for cell in run.cells} if run else set()
    parts = parts_of(check, lambda path: path not in here)
    if not parts:
        return own
    there = [of_run(part, guest) for part in parts]
    model = guest.header["environment"]["cpu_model"]
    if "QEMU TCG" in model or "QEMU Virtual CPU" in model:
        return *own[:3], True
    points, confidence, refuted, _ = own
    if not points:
        confidence = there[0][1]
    # Of what was gathered here, the paths are no longer lacking; each part says what it lacks.
    lacks = bool(run) and of_run(check, run, but_paths=True)[3]
    if any(found for found, *_ in there):
        lacks |= any(one[3] or not one[0] for one in there)
    else:
        lacks = True
    return points + [point for found, *_ in there for point in found], confidence, refuted, lacks


def parts_of(check, wanted):
    """The check of those of its paths, and of ratios the other cells over those of its bases."""
    named = check["cells"].get("path", [])
    named = named if isinstance(named, list) else [named]
    own, others = [p for p in named if wanted(p)], [p for p in named if not wanted(p)]
    parts = [check | {"cells": check["cells"] | {"path": own}}] if own else []
    to = [base for base in check.get("to", []) if "=" not in base and wanted(base)]
    if check["judge"] == "ratio" and to and others:
        parts.append(check | {"to": to, "cells": check["cells"] | {"path": others}})
    return parts


def of_run(check, run, but_paths=False):
    """What a run has: as `gather`, whose paths may be had elsewhere."""
    kind = check["judge"]
    confidence = run.header["confidence"]
    if check.get("cpus", 0) > run.header["environment"]["cpus"]:
        return [], CONFIDENCE, False, True
    if "given" in check and not is_given(check["given"], run):
        return [], CONFIDENCE, False, True
    refuted, lost = False, lost_paths(check, run)
    if kind == "peak":
        points, refuted, lacks = of_peak(check, run)
    else:
        points, lacks = of_curves(check, run) if kind == "curve" else of_groups(check, run)
    return points, confidence, refuted, lacks or (lost and not but_paths)


def is_given(given, run):
    """Is the premise shown to be so, of every cell that it is about?"""
    meant = [at for at, cell in enumerate(run.cells) if is_meant(given["cells"], cell)]
    shown = [run.counting(at, given["quantity"]) for at in meant]
    intervals = [student(list(one.values()), run.header["confidence"]) for one in shown]
    return bool(meant) and all(i and i.n >= FOR_A_VERDICT and position(given, i) == "inside" for i in intervals)


def position(check, interval):
    low, high = check.get("at_least", -math.inf), check.get("at_most", math.inf)
    between, apart = ("outside", "inside") if check.get("beyond") else ("inside", "outside")
    if low <= interval.low and interval.high <= high:
        return between
    return apart if interval.high < low or high < interval.low else "across"


def judge_check(check, gathered, figures, evidence):
    points, confidence, refuted, lacks = gathered
    simultaneous = 1 - (1 - confidence) / max(figures, 1)
    most = check.get("over") == "most"
    shown = []
    for point in points:
        own, wide = point(simultaneous if most else confidence), point(simultaneous)
        if own is None or wide is None:
            lacks = True
            continue
        shown.append((own, wide))
    placed = [place(check, *both) for both in shown]
    verdict = together(placed, most)
    grade = check.get("grade")
    grade = grade and shown and together([place(grade, *both) for both in shown], most)
    if refuted:
        verdict = "fails"
    if check["judge"] == "does":
        seen = evidence[1].get(check["does"], {}).get("Ok")
        verdict = "untestable" if seen is None else "holds" if seen["passed"] else "fails"
    if verdict == "fails" and "weaker" in check:
        verdict = "untestable"
    points = [{"lies": lies} | own._asdict() for lies, (own, _) in zip(placed, shown)]
    return {"verdict": verdict, "points": points, "grade": grade or None, "lacks": lacks or verdict == "untestable"}


def place(bounds, own, wide):
    """Within by its own interval, outside by that of simultaneous confidence."""
    lies = position(bounds, own)
    if own.n < FOR_A_VERDICT:
        return "across"
    if lies != "inside":
        return "outside" if position(bounds, wide) == "outside" else "across"
    return lies


def together(placed, most):
    inside, outside, half = placed.count("inside"), placed.count("outside"), len(placed) / 2
    fails, holds = (outside >= half, inside > half) if most else (outside > 0, inside == len(placed))
    return "untestable" if not placed else "fails" if fails else "holds" if holds else "undecided"


def judge_claim(claim, report, evidence):
    """All parts have to hold, with all that they are about: a claim that lacks something can fail, and cannot hold."""
    checks = claim.get("check", [])
    gathered = [gather(check, report, evidence) for check in checks]
    figures = sum(len(points) for points, *_ in gathered)
    judged = [judge_check(check, g, figures, evidence) for check, g in zip(checks, gathered)]
    verdicts = [one["verdict"] for one in judged]
    whole = "untestable" if any(one["lacks"] for one in judged) else "holds"
    verdict = next((v for v in ("fails", "undecided", whole) if v in verdicts), "untestable")
    return {"id": claim["id"], "verdict": verdict, "checks": judged}


def answer(question, report, evidence):
    """Each figure at the confidence of its run; nothing is judged."""
    figures = []
    for asked in question["figure"]:
        points, confidence, *_ = gather(asked, report, evidence)
        known = [interval for interval in (point(confidence) for point in points) if interval]
        figures.append([interval._asdict() for interval in known])
    return {"id": question["id"], "figures": figures}


def read(directories):
    """Runs by plan, deeds, benches and runs in a guest; of two of a kind the first counts."""
    runs, deeds, benches, guests = {}, {}, {}, {}
    for directory in map(Path, directories):
        if (directory / "claims.json").exists():
            kept = json.loads((directory / "claims.json").read_text())
            deeds, benches = kept.get("done", {}) | deeds, kept.get("benched", {}) | benches
            # A deed has its verdict wherever it was done.
            guest = (kept.get("guest") or {}).get("done", {})
            deeds |= {name: done for name, done in guest.items() if "Ok" in done and "Ok" not in deeds.get(name, {})}
            for found in sorted(directory.glob("guest/*/run.json")) if "guest" in kept else []:
                run = Run(found.parent)
                guests.setdefault(run.header["plan"], run)
        whole = (directory / "run.json").exists()
        for found in [directory] if whole else sorted(file.parent for file in directory.glob("*/run.json")):
            run = Run(found)
            runs.setdefault(run.header["plan"], run)
    return runs, deeds, benches, guests


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("files", nargs="+", metavar="FILE.toml")
    arguments.add_argument("--from", dest="directories", action="append", required=True, metavar="DIR")
    asked = arguments.parse_args()
    evidence = read(asked.directories)
    reports = [tomllib.loads(Path(file).read_text()) for file in asked.files]
    judged = [judge_claim(claim, report, evidence) for report in reports for claim in report["claim"]]
    answers = [answer(question, report, evidence) for report in reports for question in report["question"]]
    json.dump({"claims": judged, "questions": answers}, sys.stdout)


if __name__ == "__main__":
    main()
