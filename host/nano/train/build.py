"""Assembles the checkpoint folder in the Hugging Face diffusers layout.

    python build.py --ar ar.pt --condition condition.pt --flow flow.pt --out ../model

Language model and depth decoder are stored as BF16, the rest as F32, like the published
checkpoint; the four ids of the contract are extra keys of language_model/config.json.
"""

import argparse
import json
import os
import shutil

import torch
from diffusers import (
    FlowMatchEulerDiscreteScheduler,
    MiniMaxMusic3ConditionEncoder,
    MiniMaxMusic3Transformer1DModel,
    MiniMaxMusic3Vocoder,
)
from transformers import Qwen2Tokenizer

import sound
import train_ar as ar
from compile_flow import TRANSFORMER

# Logits are multiplied by this: the counters must not slip, the melody may wander.
SHARPEN = {"semantic": 2.0, "codes": [2.0, 1.6, 1.6, 1.2, 2.0, 2.0, 2.0]}
LIBRARIES = {
    "condition_encoder": ("diffusers", "MiniMaxMusic3ConditionEncoder"),
    "language_model": ("transformers", "Qwen3ForCausalLM"),
    "rvq_depth_decoder": ("diffusers", "MiniMaxMusic3RVQDepthDecoder"),
    "scheduler": ("diffusers", "FlowMatchEulerDiscreteScheduler"),
    "tokenizer": ("transformers", "Qwen2Tokenizer"),
    "transformer": ("diffusers", "MiniMaxMusic3Transformer1DModel"),
    "vocoder": ("diffusers", "MiniMaxMusic3Vocoder"),
}


def write_json(path, value):
    with open(path, "w") as f:
        json.dump(value, f, indent=2)
        f.write("\n")


@torch.no_grad()
def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--ar", default="ar.pt")
    ap.add_argument("--condition", default="condition.pt")
    ap.add_argument("--flow", default="flow.pt")
    ap.add_argument("--out", default="../model")
    args = ap.parse_args()
    shutil.rmtree(args.out, ignore_errors=True)
    os.makedirs(args.out)
    join = lambda *p: os.path.join(args.out, *p)

    os.makedirs(join("tokenizer"))
    ar.make_tokenizer().save(join("tokenizer", "tokenizer.json"))
    write_json(join("tokenizer", "tokenizer_config.json"), {
        "tokenizer_class": "Qwen2Tokenizer", "add_prefix_space": False, "bos_token": None, "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>", "unk_token": None, "errors": "replace", "clean_up_tokenization_spaces": False,
        "model_max_length": 131072, "additional_special_tokens": ar.SPECIALS,
    })
    loaded = Qwen2Tokenizer.from_pretrained(join("tokenizer"))
    assert loaded.convert_tokens_to_ids("<|audio_end|>") == ar.END

    lm, depth, _ = ar.build()
    saved = torch.load(args.ar)
    lm.load_state_dict(saved["lm"]), depth.load_state_dict(saved["depth"])
    lm.lm_head.weight[ar.OFFSET :] *= SHARPEN["semantic"]
    lm.lm_head.weight[ar.END] *= SHARPEN["semantic"]
    for head, by in zip(depth.audio_heads, SHARPEN["codes"]):
        head.weight *= by
    lm.bfloat16().save_pretrained(join("language_model"))
    path = join("language_model", "config.json")
    config = json.load(open(path))
    config.pop("rope_parameters", None)
    config.update(
        rope_theta=1e6, rope_scaling=None, audio_end_token_id=ar.END, audio_cfg_token_id=ar.FILLER,
        audio_code_offset=ar.OFFSET, audio_codebook_size=ar.SIZE,
    )
    write_json(path, config)
    depth.bfloat16().save_pretrained(join("rvq_depth_decoder"))

    cond = MiniMaxMusic3ConditionEncoder(**ar.CONDITION)
    cond.load_state_dict(torch.load(args.condition)["cond"])
    cond.save_pretrained(join("condition_encoder"))
    dit = MiniMaxMusic3Transformer1DModel(**TRANSFORMER)
    dit.load_state_dict(torch.load(args.flow)["dit"])
    dit.save_pretrained(join("transformer"))
    vocoder = MiniMaxMusic3Vocoder(**sound.VOCODER)
    sound.fill_vocoder(vocoder, sound.Sound().scale)
    vocoder.save_pretrained(join("vocoder"))
    FlowMatchEulerDiscreteScheduler(num_train_timesteps=1, shift=1.0, invert_sigmas=True).save_pretrained(join("scheduler"))

    index = {"_blocks_class_name": "MiniMaxMusic3Blocks", "_class_name": "MiniMaxMusic3ModularPipeline", "_diffusers_version": "0.42.1"}
    for name, (library, cls) in LIBRARIES.items():
        index[name] = [library, cls, {
            "pretrained_model_name_or_path": "MiniMaxAI/MiniMax-Music3", "revision": None, "subfolder": name,
            "type_hint": [library, cls], "variant": None,
        }]
    write_json(join("modular_model_index.json"), index)
    write_json(join("skald.json"), {
        "name": "skald-nano",
        "title": "Built-in demonstration model",
        "notice": "A toy that plays one small style and does not sing. For real songs fetch MiniMax-Music3.",
        "defaults": {"num_inference_steps": 8, "guidance_scale": 1.7},
        "acoustic_precision": "fp32",
    })
    total = 0
    for folder, _, files in sorted(os.walk(args.out)):
        for f in files:
            total += os.path.getsize(os.path.join(folder, f))
    print("bytes", total)


if __name__ == "__main__":
    main()
