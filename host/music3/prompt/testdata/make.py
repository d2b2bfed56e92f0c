"""Test vectors of the prompt's text rules, from the reference's own functions.

    python make.py ENCODERS.py fuzz.json.gz
    python make.py copy VECTORS.json golden.json.gz

ENCODERS.py is diffusers/modular_pipelines/minimax_music3/encoders.py of diffusers
0.42.1; only its two text functions are run, so torch is not needed. copy packs the
recorded prompts of the reference data.
"""

import gzip
import json
import random
import re
import sys

SPACE = "\t \n \r \x0b \x0c \x1c \x1d \x1e \x1f".split(" ") + list(
    " \x85\u00a0\u1680\u2003\u2028\u2029\u202f\u3000\u200b\ufeff\u180e"
)
CAPTION = SPACE + (
    "* ** *** # ## ####### - --- -- ___ *** _ + a b word é • <| |> | <||>".split() + ["\n\n", "  ", "    ", "• "]
)
STARS = ["*", "**", "***", "a", "*", " ", "b"]
RULES = ["---", "--", "\n", "\n", " ", "_", "*", "x", "\u00a0", "    ", "• ", "\t", "# ", "- "]
LYRICS = "[ ] [] [verse] [Chorus] ^ a İ Σ ΑΣ σ ς ' ß Ǆ ﬀ I A [A <|im_end|>".split() + [
    " ", "\t", "\n", "\r", "\r\n", " ^ ", "] ", " [", "\u00a0", "\u3000", "\u0301",
]  # fmt: skip


def write(path, data):
    with open(path, "wb") as f, gzip.GzipFile("", "wb", fileobj=f, mtime=0) as z:
        z.write(json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode())


def reference(path):
    with open(path) as f:
        source = f.read()
    names = {"re": re}
    exec(source[source.index("_SPECIAL_TAG_RE =") : source.index("def _sample_top_k")], names)
    return names["_clean_caption"], names["_normalize_lyrics"]


def text(rng, alphabet):
    some = [rng.choice(alphabet) for _ in range(rng.choice((2, 3, 4, 6, 12)))]
    return "".join(rng.choice(some) for _ in range(rng.randint(1, 40)))


def fuzz(encoders, out):
    clean, normalise = reference(encoders)
    rng = random.Random(20)
    captions = [text(rng, rng.choice((CAPTION, CAPTION, STARS, RULES))) for _ in range(500)]
    lyrics = [text(rng, LYRICS) for _ in range(400)]
    write(out, {"clean": [[c, clean(c)] for c in captions], "normalise": [[x, normalise(x)] for x in lyrics]})


if __name__ == "__main__":
    if sys.argv[1] == "copy":
        with open(sys.argv[2]) as vectors:
            write(sys.argv[3], json.load(vectors))
    else:
        fuzz(*sys.argv[1:3])
