#!/usr/bin/env python3
"""Times whole songs of skald against the reference pipeline of diffusers.

Both read the same checkpoint, which `skald synth --shape full --layers 2 DIR` writes: true
widths, few layers. In each precision the two take turns, loading is left out, and one JSON
row each is printed, in the form of `skald bench`, then one with their ratio: above 1, skald
is faster. A row with "disturbed": true was measured while other processes took cores.

    python scripts/compare_diffusers.py --skald ./skald --model DIR

needs torch, diffusers 0.42 or newer and transformers.
"""

import argparse
import gc
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

PROMPT = "slow piano ballad, warm voice"
LYRICS = "[verse]\nthe river runs below the hill\n[chorus]\nand all is still"


def busy():
    """Processor seconds of the whole machine, and of this process and its children."""
    with open("/proc/stat") as f:
        fields = [int(x) for x in f.readline().split()[1:9]]
    t = os.times()
    machine = (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")
    return machine, t.user + t.system + t.children_user + t.children_system


def timed(song):
    """Runs song() -> (seconds, frames), and adds how many cores others took meanwhile, and
    the processor time of ours: less certain than seconds, but worth something on a busy
    machine with --threads 1. That of skald has its start and loading in it."""
    machine, own = busy()
    start = time.perf_counter()
    seconds, frames = song()
    wall = time.perf_counter() - start
    machine_after, own_after = busy()
    others = max(0.0, ((machine_after - machine) - (own_after - own)) / wall)
    return seconds, frames, others, own_after - own


def load(model, precision):
    import torch
    from diffusers import MiniMaxMusic3ModularPipeline

    bf16 = torch.bfloat16
    language = {"language_model": bf16, "rvq_depth_decoder": bf16, "condition_encoder": bf16}
    dtypes = {"fp32": torch.float32, "mixed": {**language, "default": torch.float32}, "bf16": bf16}
    pipe = MiniMaxMusic3ModularPipeline.from_pretrained(model)
    pipe.load_components(dtype=dtypes[precision])
    pipe.set_progress_bar_config(disable=True)
    return pipe


def reference_song(pipe, o, seed, duration=None, steps=None):
    import torch

    start = time.perf_counter()
    state = pipe(
        prompt=PROMPT, lyrics=LYRICS, audio_duration=duration or o.duration, num_inference_steps=steps or o.steps,
        generator=torch.Generator().manual_seed(seed), output_type="pt",
    )
    seconds = time.perf_counter() - start
    return seconds, state.get("frame_hiddens").shape[1]


def skald_song(o, precision, seed):
    with tempfile.TemporaryDirectory() as folder:
        out = subprocess.run(
            [o.skald, "sing", "--model", o.model, "--precision", precision, "--threads", str(o.threads),
             "--rng", "torch", "--prompt-mode", "reference", "--seed", str(seed), "--steps", str(o.steps),
             "--duration", str(o.duration), "--instructions", PROMPT, "--lyrics", LYRICS,
             "--output", os.path.join(folder, "song.wav")],
            check=True, stdout=subprocess.PIPE, text=True,
        ).stdout
    seconds = re.search(r"^time +([0-9.]+) s", out, re.M)
    frames = re.search(r"^frames +(\d+)", out, re.M)
    return float(seconds[1]), int(frames[1])


def row(peer, o, precision, runs):
    seconds = [run[0] for run in runs]
    others = statistics.mean(run[2] for run in runs)
    spare = max(0, os.cpu_count() - o.threads)
    return {
        "peer": peer, "stage": "song", "work": f"{os.path.basename(os.path.normpath(o.model))} {o.duration:g} s, {o.steps} steps",
        "dtype": precision, "threads": o.threads, "layers_timed": 1, "layers_total": 1,
        "seconds_min": round(min(seconds), 3), "seconds_median": round(statistics.median(seconds), 3),
        "scaled_seconds": round(min(seconds), 3), "scaled_median": round(statistics.median(seconds), 3),
        "runs": len(runs), "other_cores": round(others, 2), "disturbed": others > spare + 0.15,
        "frames": runs[0][1], "cpu_seconds_min": round(min(run[3] for run in runs), 2),
    }


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--skald", default="./skald", help="the program")
    p.add_argument("--model", required=True, help="folder of the checkpoint")
    p.add_argument("--precisions", default="mixed,bf16,fp32")
    p.add_argument("--duration", type=float, default=2, help="seconds of audio")
    p.add_argument("--steps", type=int, default=8)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--runs", type=int, default=3, help="of each")
    p.add_argument("--threads", type=int, default=os.cpu_count())
    o = p.parse_args()
    os.environ.update(HF_HUB_OFFLINE="1", OMP_NUM_THREADS=str(o.threads))
    import torch
    from diffusers.utils import logging

    logging.disable_progress_bar()
    torch.set_num_threads(o.threads)
    for precision in o.precisions.split(","):
        pipe = load(o.model, precision)
        ours, theirs = [], []
        reference_song(pipe, o, o.seed, duration=0.2, steps=1)  # to warm up; skald starts anew each time
        for n in range(o.runs):
            a = timed(lambda: reference_song(pipe, o, o.seed))
            b = timed(lambda: skald_song(o, precision, o.seed))
            print(f"{precision} run {n}: diffusers {a[0]:.2f} s, skald {b[0]:.2f} s; others took {a[2]:.2f}, {b[2]:.2f} cores; processor {a[3]:.2f}, {b[3]:.2f} s", file=sys.stderr)
            if a[1] != b[1]:
                sys.exit(f"{precision}: diffusers sang {a[1]} frames and skald {b[1]}: that is not the same work; try another --seed")
            theirs.append(a)
            ours.append(b)
        rows = row("skald", o, precision, ours), row("diffusers", o, precision, theirs)
        for r in rows:
            print(json.dumps(r))
        print(json.dumps({
            "compare": "song", "dtype": precision, "threads": o.threads,
            "ratio_min": round(rows[1]["seconds_min"] / rows[0]["seconds_min"], 3),
            "ratio_median": round(rows[1]["seconds_median"] / rows[0]["seconds_median"], 3),
            "ratio_cpu": round(rows[1]["cpu_seconds_min"] / rows[0]["cpu_seconds_min"], 3),
            "disturbed": rows[0]["disturbed"] or rows[1]["disturbed"],
        }), flush=True)
        del pipe
        gc.collect()


if __name__ == "__main__":
    main()
