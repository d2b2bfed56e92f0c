"""Renders a song with the reference pipeline:

    python render.py --model ../model --caption "fast, minor" --lyrics $'[intro]\n[verse]' --out song.wav
"""

import argparse
import json
import os
import time
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
warnings.filterwarnings("ignore")

import soundfile
import torch
from diffusers import ClassifierFreeGuidance, MiniMaxMusic3ModularPipeline
from diffusers.modular_pipelines.minimax_music3 import encoders
from diffusers.utils import logging

logging.set_verbosity_error()
BF16 = torch.bfloat16
PRECISION = {
    "fp32": torch.float32,
    "mixed": {"language_model": BF16, "rvq_depth_decoder": BF16, "condition_encoder": BF16, "default": torch.float32},
    "bf16": BF16,
}


def load(folder, precision="mixed"):
    with open(os.path.join(folder, "language_model", "config.json")) as f:
        config = json.load(f)
    encoders._AUDIO_END_TOKEN_ID = config["audio_end_token_id"]
    encoders._AUDIO_CFG_TOKEN_ID = config["audio_cfg_token_id"]
    encoders._AUDIO_CODE_OFFSET = config["audio_code_offset"]
    encoders._SEMANTIC_VOCAB_SIZE = config["audio_codebook_size"]
    pipe = MiniMaxMusic3ModularPipeline.from_pretrained(folder)
    pipe.load_components(dtype=PRECISION[precision])
    pipe.set_progress_bar_config(disable=True)
    return pipe


def render(pipe, caption, lyrics, seed=1, seconds=40.0, steps=30, guidance=1.7):
    """(samples [2, n], code rows [frames + 1][8])"""
    draws, original = [], encoders._sample_top_k

    def sample(logits, generator):
        value = original(logits, generator)
        draws.append(int(value))
        return value

    encoders._sample_top_k = sample
    try:
        pipe.update_components(guider=ClassifierFreeGuidance(guidance_scale=guidance))
        state = pipe(
            prompt=caption, lyrics=lyrics, audio_duration=seconds, generator=torch.Generator().manual_seed(seed),
            num_inference_steps=steps, output_type="pt",
        )
    finally:
        encoders._sample_top_k = original
    rows = [draws[i : i + 8] for i in range(0, len(draws) - 7, 8)]
    for r in rows:
        r[0] -= encoders._AUDIO_CODE_OFFSET
    ended = len(draws) % 8 == 1
    return state.get("audios")[0], rows, ended


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--model", default="../model")
    ap.add_argument("--caption", required=True)
    ap.add_argument("--lyrics", required=True)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--seconds", type=float, default=40)
    ap.add_argument("--steps", type=int, default=30)
    ap.add_argument("--guidance", type=float, default=1.7)
    ap.add_argument("--precision", choices=PRECISION, default="mixed")
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--out", default="song.wav")
    args = ap.parse_args()
    torch.set_num_threads(args.threads)
    pipe = load(args.model, args.precision)
    begin = time.time()
    audio, rows, ended = render(pipe, args.caption, args.lyrics, args.seed, args.seconds, args.steps, args.guidance)
    print(f"{audio.shape[1] / pipe.sampling_rate:.1f} s of music in {time.time() - begin:.1f} s, ended itself: {ended}, "
          f"peak {audio.abs().max():.3f}, rms {audio.pow(2).mean().sqrt():.3f}")
    soundfile.write(args.out, audio.T.float().numpy(), pipe.sampling_rate)


if __name__ == "__main__":
    main()
