#!/usr/bin/env python3
"""Compares the simulation with the machine's own ld.so on generated worlds.

  run.py --worlds 2000 --seed 1 [--aarch64 | --libc DIR] [--rules] [--traced 300] [--jobs 2] --cohabit build/cohabit

Every world is a directory of generated libraries, a program and a sequence of calls. The real ld.so
runs it; `cohabit replay` simulates the calls; loads, bindings and results must be the same, in the
same order. A world that differs is made smaller, kept, and printed with its seed. --rules switches
each rule of the simulation off and demands that a world then differs.
"""
import argparse
import collections
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time

import minimise
import rule_worlds
from compare import compare, compare_tables
from generate import generate
from tracefile import LOADER, Facts, Writer
from truth import run as run_world
from world import HERE, Place, materialise

CHUNK = 25
COMPILER = {"x86_64": "gcc", "aarch64": "aarch64-linux-gnu-gcc"}


class Bench:
    """The tools for one architecture: driver, places, cohabit."""

    def __init__(self, arch, cohabit, directory, libc=None):
        self.arch, self.cohabit = arch, cohabit
        self.base = os.path.join(directory, arch)
        os.makedirs(self.base + "/w", exist_ok=True)
        root, command = "", ()
        if arch == "aarch64":
            root = self.base
            command = ("qemu-aarch64", "-L", root)
            self.copy_libraries("/usr/aarch64-linux-gnu/lib", "lib")
        elif libc:
            root = self.base
            command = ("qemu-x86_64", "-L", root)
            self.copy_libraries(libc, "lib/x86_64-linux-gnu")
            os.makedirs(self.base + "/lib64")
            os.link(self.base + "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", self.base + LOADER[arch])
        driver = root + "/libfid.so" if root else self.base + "/libfid.so"
        build_driver(arch, driver)
        self.root = root
        self.place = Place(self.base + "/w", root, "/libfid.so" if root else driver, command)
        self.facts = Facts(arch, command, root)

    def copy_libraries(self, source, target):
        """From anywhere below the source: an unpacked package has them where its distribution wants them."""
        os.makedirs(os.path.join(self.base, target), exist_ok=True)
        for name in (os.path.basename(LOADER[self.arch]), "libc.so.6", "libm.so.6"):
            found = [os.path.join(at, name) for at, _, files in os.walk(source) if name in files]
            if not found:
                sys.exit(f"there is no {name} below {source}")
            shutil.copy(found[0], os.path.join(self.base, target))

    def replay(self, listed, without=(), lazy=False):
        """Replays (trace, tables) pairs; returns the paths that failed, with the messages."""
        batch = os.path.join(self.base, f"batch.{os.getpid()}")
        with open(batch, "w") as f:
            for trace, tables in listed:
                f.write("\t".join([trace, *tables]) + "\n")
        command = [self.cohabit, "replay", "--batch", batch] + (["--lazy-on-call"] if lazy else [])
        command += [x for rule in without for x in ("--without", rule)]
        command += ["--root", self.root] if self.root else []
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                                  errors="replace", timeout=120)
        except subprocess.TimeoutExpired:
            return 124, "the replay did not end"
        finally:
            os.unlink(batch)
        return done.returncode, done.stderr


def build_driver(arch, out):
    source = os.path.join(HERE, "driver.c")
    if os.path.exists(out) and os.path.getmtime(out) > os.path.getmtime(source):
        return
    subprocess.run([COMPILER[arch], "-O1", "-fPIC", "-shared", "-Wall", "-Wl,-z,now", "-Wl,-soname,libfid.so",
                    "-o", out, source], check=True)


class Run:
    """One world, run for real: what a comparison needs."""

    def __init__(self, bench, world, name):
        self.spoiled = world.get("spoiled")
        self.world = materialise(world, name, bench.place)
        self.truth = run_world(self.world, bench.place)
        self.trace = os.path.join(self.world["outside"], "trace")
        self.tables = [os.path.join(self.world["outside"], t) for t in ("loads.tsv", "bindings.tsv", "results.tsv")]
        writer = Writer(self.world, self.truth, bench.facts)
        with open(self.trace, "w", encoding="utf-8", errors="surrogateescape") as f:
            f.write(writer.text())
        self.traced = writer.traced
        self.lazy = not world["env"].get("LD_BIND_NOW")

    def usable(self):
        """False where ld.so itself broke: an assertion, a crash (which the driver makes an exit by 99), the time limit."""
        return not self.truth.broken and not (self.spoiled and self.truth.rc == 99)

    def compare(self):
        if not os.path.exists(self.tables[2]):
            return None
        return compare(self.truth, self.traced, self.tables, self.lazy)

    def forget_tables(self):
        for t in self.tables:
            if os.path.exists(t):
                os.unlink(t)


def replay_runs(bench, runs, without=()):
    """Replays all; returns {index: message} of those on which cohabit itself failed."""
    for run in runs:
        run.forget_tables()
    code, errors = bench.replay([(r.trace, r.tables) for r in runs], without, True)
    if code == 0:
        return {}
    if len(runs) == 1:
        return {0: f"exit code {code}: {errors[-300:]}"}
    bad = {}
    for i, run in enumerate(runs):
        if replay_runs(bench, [run], without):
            bad[i] = f"exit code {code}: {errors[-300:]}"
    return bad


def check(bench, world, name="one", without=()):
    """The difference of one world, or None. Used by the minimiser and the rule tests."""
    run = Run(bench, world, name)
    if not run.usable():
        return None
    failed = replay_runs(bench, [run], without)
    return ("crash", failed[0]) if failed else run.compare()


def died_unsaid(bench, run):
    """ld.so died of damage of which the replay says nothing."""
    said = bench.replay([(run.trace, run.tables)], (), True)[1]
    whole = Run(bench, generate(run.seed, bench.arch), f"{os.getpid()}.whole")
    return whole.usable() and " is damaged: " not in said and "ld.so itself ends the process" not in said


def work(job):
    """A chunk of seeds. Returns counts and the differing seeds."""
    bench, seeds, spoiled = job
    counts, different, runs = collections.Counter(), [], []
    for seed in seeds:
        run = Run(bench, generate(seed, bench.arch, spoiled), f"{os.getpid()}.{len(runs)}")
        run.seed = seed
        if run.usable():
            runs.append(run)
            continue
        counts["ld.so itself failed"] += 1
        if spoiled and died_unsaid(bench, run):
            different.append((seed, ("unsaid", f"ld.so died: {run.truth.rc} {run.truth.messages[-1:]}")))
    failed = replay_runs(bench, runs)
    for i, run in enumerate(runs):
        difference = ("crash", failed[i]) if i in failed else run.compare()
        counts["worlds"] += 1
        counts["worlds that start"] += run.truth.started
        counts["loads"] += len(run.truth.loads)
        counts["bindings"] += len(run.truth.bindings)
        counts["calls"] += len(run.traced)
        counts["failed calls"] += sum(e.outcome == "failed" for e in run.traced)
        counts["unloads"] += len(run.truth.unloads)
        if difference:
            counts["different"] += 1
            different.append((run.seed, difference))
    return counts, different


def run_random(bench, options):
    seeds = range(options.seed, options.seed + options.worlds)
    jobs = [(bench, seeds[i:i + CHUNK], options.spoiled) for i in range(0, len(seeds), CHUNK)]
    counts, different = collections.Counter(), []
    with multiprocessing.Pool(options.jobs) as pool:
        for part, found in pool.imap_unordered(work, jobs):
            counts.update(part)
            different += found
            if len(different) > options.give_up:
                pool.terminate()
                break
    return counts, sorted(different)


def test_traced(bench, first, count):
    """Worlds bound at load, recorded by the real tracer, against ld.so without the tracer."""
    compared, failures = 0, []
    for seed in range(first, first + count):
        world = generate(seed, bench.arch)
        if not world["env"].get("LD_BIND_NOW") or "LD_PRELOAD" in world["env"]:
            continue  # lazy calls are not recorded; and cohabit gets the world's variables too
        run = Run(bench, world, "traced")
        if not run.usable() or not run.truth.finished:
            continue
        trace, at = run.trace + ".real", run.world["outside"]
        command = [bench.cohabit, "trace", "--out", trace, "--", os.path.join(at, world["program"]), at + "/script"]
        done = subprocess.run(command, env=dict(run.world["env"], PATH=os.environ["PATH"]), stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, cwd=os.path.join(at, world.get("cwd", ".")), timeout=60)
        code, errors = bench.replay([(trace, run.tables)])
        difference = f"exit codes {done.returncode}, {code}: {errors[-200:]}" if done.returncode or code else \
            compare_tables(run.truth, run.tables)
        compared += 1
        if difference:
            failures.append(f"traced, seed {seed}: {difference}")
    return failures, compared


def show(bench, seed, difference, options):
    print(f"seed {seed} ({bench.arch}): {difference}")
    if options.no_minimise:
        return
    world = generate(seed, bench.arch, options.spoiled)
    small = minimise.minimise(world, lambda w: check(bench, w, "small"), difference, options.minimise_seconds)
    os.makedirs(options.keep, exist_ok=True)
    path = os.path.join(options.keep, f"{bench.arch}-{seed}.json")
    with open(path, "w") as f:
        json.dump(small, f, indent=1)
    print(f"  made smaller: {path}: {check(bench, small, 'small')}")
    print("  " + minimise.describe(small).replace("\n", "\n  "))


def test_rules(bench, options):
    """Each hand-made world agrees with ld.so, and differs without its rule."""
    failures, shown = [], 0
    for rule, worlds in rule_worlds.all_worlds(bench.arch).items():
        noticed = False
        for number, world in enumerate(worlds):
            difference = check(bench, world, f"rule-{rule}-{number}")
            if difference:
                failures.append(f"rule {rule}, world {number}: {difference}")
            noticed = noticed or bool(check(bench, world, f"rule-{rule}-{number}", [rule]))
        if not noticed and not rule_worlds.excused(bench.arch, rule):
            failures.append(f"rule {rule}: switched off, nothing differs")
        shown += noticed
    return failures, shown


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cohabit", default=os.environ.get("COHABIT", "cohabit"))
    p.add_argument("--worlds", type=int, default=0)
    p.add_argument("--spoiled", action="store_true", help="with bytes of one or two libraries' tables written over")
    p.add_argument("--tolerate", type=float, default=0, metavar="SHARE", help="as many of the worlds may differ")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--rules", action="store_true")
    p.add_argument("--aarch64", action="store_true", help="cross libraries under qemu-aarch64")
    p.add_argument("--libc", metavar="DIR", help="another glibc, of an unpacked package, under qemu-x86_64")
    p.add_argument("--traced", type=int, default=0, help="worlds recorded by `cohabit trace`")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--keep", default="fidelity-failures", help="where differing worlds are written")
    p.add_argument("--show", type=int, default=3, help="how many differing worlds to make small")
    p.add_argument("--give-up", type=int, default=200)
    p.add_argument("--no-minimise", action="store_true")
    p.add_argument("--minimise-seconds", type=float, default=40)
    p.add_argument("--world", help="run one kept world")
    options = p.parse_args()
    base = tempfile.mkdtemp(prefix="fidelity", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    try:
        sys.exit(run_all(options, base))
    finally:
        shutil.rmtree(base, ignore_errors=True)


def run_all(options, base):
    began, bad = time.time(), 0
    bench = Bench("aarch64" if options.aarch64 else "x86_64", options.cohabit, base, options.libc)
    if options.world:
        with open(options.world) as f:
            difference = check(bench, json.load(f))
        print(difference or "same")
        return 1 if difference else 0
    if options.rules or options.aarch64:
        failures, shown = test_rules(bench, options)
        for line in failures:
            print(line)
        print(f"fidelity: {shown} rules shown on {bench.arch}, {len(failures)} failures")
        bad += len(failures)
    if options.traced:
        failures, compared = test_traced(bench, options.seed, options.traced)
        for line in failures:
            print(line)
        print(f"fidelity: {compared} worlds recorded by `cohabit trace`, {len(failures)} different")
        bad += len(failures)
    if options.worlds:
        counts, different = run_random(bench, options)
        bad += len(different) > options.tolerate * options.worlds and len(different)
        by_kind = collections.Counter(d[0] for _, d in different)
        for seed, difference in different[:options.show]:
            show(bench, seed, difference, options)
        if different:
            print("differing seeds:", *(s for s, _ in different[:60]), dict(by_kind))
        numbers = ", ".join(f"{v} {k}" for k, v in counts.items() if k != "different")
        print(f"fidelity: {bench.arch}, glibc {bench.facts.glibc}, seeds {options.seed} to "
              f"{options.seed + options.worlds - 1}: {numbers}, {len(different)} different, "
              f"{time.time() - began:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    main()
