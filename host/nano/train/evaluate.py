"""Renders a set of prompts with the reference pipeline and checks that the songs follow them.

    python evaluate.py --model ../model --out examples [--steps 8] [--count 8]

Tempo, key and level are measured from the sound (measure.py), the sections from the codes.
"""

import argparse
import json
import os

import numpy as np
import soundfile
import torch

import measure
import music
from render import load, render

L1 = "[intro]\n[verse]\nwalking down the empty street\n[chorus]\nwe are the fire, we are the rain\n[outro]"
L2 = "[verse]\nThe city sleeps, the river flows\n[chorus]\nHold on, hold on\n[bridge]\n[chorus]\n[outro]"
L3 = "[intro]\n[verse]\nsoft light\n[pre-chorus]\n[chorus]\nla la la\n[outro]"
PROMPTS = [
    ("medium_D_major", "Medium tempo, happy piano, drums and bass, in D major", L1, dict(tempo="medium", key="D major", drums=True)),
    ("fast_A_minor", "fast, dark synth lead, drums, bass, strings, in A minor", L2, dict(tempo="fast", key="A minor", drums=True)),
    ("slow_F_major", "slow piano ballad with warm pads, no drums, in F major", L1, dict(tempo="slow", key="F major", drums=False)),
    ("fast_G_major", "Upbeat, cheerful, electric piano, drums, bass, key of G major", L1, dict(tempo="fast", key="G major", drums=True)),
    ("slow_E_minor", "a calm, sad flute, pad, no drums, E minor", L3, dict(tempo="slow", key="E minor", drums=False)),
    ("medium_C_minor", "mid-tempo, moody, bells, bass line, groove, in C minor", L1, dict(tempo="medium", key="C minor", drums=True)),
    ("fast_B_flat_major", "driving pop, bright synth, B flat major", L3, dict(tempo="fast", key="B flat major", drums=True)),
    ("slow_C_sharp_minor", "gentle ballad, melancholic, acoustic, without drums, C sharp minor", L1, dict(tempo="slow", key="C sharp minor", drums=False)),
]


def sections(rows):
    out = []
    for i, r in enumerate(rows[1:]):
        here = (r[7] // 4, r[2])
        kind = "tail" if r[2] == music.TAIL else music.TYPES[r[2] // 8] if r[2] < 56 else "?"
        if not out or out[-1][0] != kind or out[-1][1] != r[7] // 4:
            out.append([kind, r[7] // 4, i, i])
        out[-1][3] = i + 1
    return out


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--model", default="../model")
    ap.add_argument("--out", default="examples")
    ap.add_argument("--steps", type=int, default=8)
    ap.add_argument("--count", type=int, default=8)
    ap.add_argument("--first", type=int, default=0)
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--precision", default="mixed")
    args = ap.parse_args()
    torch.set_num_threads(args.threads)
    os.makedirs(args.out, exist_ok=True)
    pipe = load(args.model, args.precision)
    for number, (name, caption, lyrics, asked) in list(enumerate(PROMPTS))[args.first : args.first + args.count]:
        audio, rows, ended = render(pipe, caption, lyrics, seed=number + 1, steps=args.steps)
        x = audio.T.float().numpy()
        soundfile.write(os.path.join(args.out, name + ".flac"), x, 44100)
        got = measure.report(x, 44100)
        form = [line[1:-1] for line in lyrics.split("\n") if line.startswith("[")]
        parts = sections(rows)
        played = [p[0] for p in parts if p[0] != "tail"]
        level = {f"{p[1]}:{p[0]}": round(float(20 * np.log10(np.sqrt((x[int(p[2] * 1761.28) : int(p[3] * 1761.28)] ** 2).mean()) + 1e-9)), 1) for p in parts if p[3] - p[2] > 5}
        slips = sum(b[1] != (a[1] + 1) % 25 for a, b in zip(rows[1:], rows[2:]))
        jumps = sum(b[0] != a[0] + 1 and b[0] not in (0, 80, 136) and a[2] != music.TAIL for a, b in zip(rows[1:], rows[2:]))
        drums = got["share_above_5khz"] > 1e-3
        print(json.dumps({
            "name": name, "tempo_ok": got["tempo"].split()[0] == asked["tempo"], "key_ok": got["keys"][0][0] == asked["key"],
            "key_code": [rows[0][3] - 1, len(rows) - 1], "sections_ok": played == form, "drums_ok": bool(drums) == asked["drums"], "ended": ended,
            "clock_slips": int(slips), "bar_jumps": jumps, "played": played, "level_db": level, **got,
        }), flush=True)


if __name__ == "__main__":
    main()
