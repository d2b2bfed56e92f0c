"""Test vectors of the tokenizer, from the Rust library (pip install tokenizers==0.23.3).

    python make.py fuzz tiny.json tiny_vectors.json.gz
    python make.py reduce TOKENIZER.json VECTORS.json qwen3.json.gz qwen3_vectors.json.gz

fuzz encodes random text over awkward alphabets. reduce cuts a large tokenizer.json
down to what decides over the ids of some recorded texts: a merge can only apply
where its result is a part of the text, and leaving out others changes neither ids
nor order. It checks that the reduced tokenizer gives the recorded ids.
"""

import gzip
import json
import random
import sys

from tokenizers import Tokenizer, normalizers, pre_tokenizers

MARKS = """0300 0301 0323 0327 0345 0334 0f71 0f72 3099 309a 0344 0340 05b0 0591 1d165 1d16d 1100 1161 11a7 11a8
11c2 ac00 ac01 d7a3 1112 1175 0958 212b 2126 fb1d 2adc 0f43 1d15e f900 09c7 09be 0bc6 0dd9 0dcf 0dca 1b05 1b35
11099 110ba 0649 0654 06d2 1df6 0897 16d67 105d2 0307 1ff3 0c46 0c56 1026 102e 0065 0041 006f 0053 00e9 1ebf
1e69 304b 30cf""".split()
MARKS = [chr(int(m, 16)) for m in MARKS]
TEXT = MARKS + [
    "'", "'s", "'S", "'\u017f", "'re", "'RE", "'Ve", "'ll", "'lL", "'d", "'m", "'t", " ", "  ", "\n", "\r", "\r\n",
    "\t", "a", "B", "word", " the", "1", "23", "\u00bd", "\u0661", "!", "?!", "...", "\u5b57", "\u200d", "\U0001f469",
    "\u00a0", "\u3000", "\u2028", "\x1c", "\x85", "\u017f", "<", "<|", "|>", "<|im_start|>", "<|im_end|>", "<|im",
    "im_end|>",
]  # fmt: skip


def write(path: str, data) -> None:
    with open(path, "wb") as f, gzip.GzipFile("", "wb", fileobj=f, mtime=0) as z:
        z.write(json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode())


def random_text(rng: random.Random) -> str:
    alphabet = [rng.choice(rng.choice((TEXT, TEXT, MARKS))) for _ in range(rng.choice((2, 3, 5, 8)))]
    anything = rng.choice((0.02, 0.02, 0.5))

    def piece():
        if rng.random() >= anything:
            return rng.choice(alphabet)
        c = rng.choice((rng.randrange(0x3400), rng.randrange(0x110000)))
        return "?" if 0xD800 <= c < 0xE000 else chr(c)

    return "".join(piece() for _ in range(rng.randint(1, 24)))


def fuzz(path: str, out: str, count: int = 600) -> None:
    tokenizer, rng = Tokenizer.from_file(path), random.Random(20)
    texts = [random_text(rng) for _ in range(count)]
    write(out, [{"text": t, "ids": tokenizer.encode(t, add_special_tokens=False).ids} for t in texts])


def reduce(path: str, vectors_path: str, out: str, vectors_out: str) -> None:
    with open(path) as f:
        full = json.load(f)
    with open(vectors_path) as f:
        vectors = json.load(f)["vectors"]
    split = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    parts = set()
    for v in vectors:
        text = normalizers.NFC().normalize_str(v["text"])
        mapped = "".join(piece for piece, _ in split.pre_tokenize_str(text))
        for n in range(2, 65):
            parts.update(mapped[i : i + n] for i in range(len(mapped) - n + 1))
    model = full["model"]
    merges = [m for m in model["merges"] if "".join(m) in parts or len("".join(m)) > 64]
    keep = {s for m in merges for s in (*m, "".join(m))}
    model["vocab"] = {t: i for t, i in model["vocab"].items() if len(t) == 1 or t in keep}
    # The library numbers added tokens that the vocabulary lacks by the vocabulary's size.
    model["vocab"].update({a["content"]: a["id"] for a in full["added_tokens"]})
    model["merges"] = merges
    reduced = Tokenizer.from_str(json.dumps(full))
    for v in vectors:
        assert reduced.encode(v["text"], add_special_tokens=False).ids == v["ids"], v["text"][:80]
    write(out, full)
    write(vectors_out, [{"text": v["text"], "ids": v["ids"]} for v in vectors])
    print(len(model["vocab"]), "tokens,", len(merges), "merges,", len(vectors), "vectors", file=sys.stderr)


if __name__ == "__main__":
    {"fuzz": fuzz, "reduce": reduce}[sys.argv[1]](*sys.argv[2:])
