// Package checkpoint reads the weights and settings of a MiniMax-Music3 model
// from disk, or from files built into the program.
//
// A checkpoint is a folder in the layout of Hugging Face diffusers: one folder
// for each component, with a config.json and one or more safetensors files.
//
//	modular_model_index.json
//	language_model/      Qwen3 language model
//	rvq_depth_decoder/   residual codes of one audio frame
//	condition_encoder/   frame hiddens to the latents' timeline
//	transformer/         flow transformer
//	vocoder/             latents to samples
//	scheduler/           flow matching times
//	tokenizer/           tokenizer.json
//	skald.json           optional: name, notice, defaults
//
// [Open] maps the weights instead of reading them, reads every setting from the
// configs and checks that they fit each other. [Checkpoint.Check] compares the
// tensors found with the canonical list of [Inventory]. Nothing about sizes is
// assumed: a tiny checkpoint of the same architecture goes the same way as the
// published one.
//
// Files are not trusted. A length that a file claims is compared with the bytes
// that are there before it is used, and an error names the file and the byte or
// the key.
//
// # Mapped files
//
// A [Tensor]'s Data points into a mapping of its file and is valid until Close.
// The size is checked when the file is opened. If another process truncates the
// file later, reading Data ends the program with SIGBUS: replace weight files by
// renaming a new file over the old one, never by writing into it. Where there is
// no mmap the file is read instead.
package checkpoint
