// Package rng makes the random numbers of a song.
//
// There are two generators. Philox is counter-based: every draw is a pure function
// of the seed and of what the draw is for, so any device can compute any draw alone
// and in any order ([Exponential], [Normals]). It is the default. [Torch] repeats,
// bit for bit, the stream of torch's CPU generator, so that a seed gives the song
// that the reference pipeline makes of it.
//
// Both hand out float32 values that do not depend on the machine: the elementary
// functions are written here, in a stated order of operations, and use no fused
// multiply-add but the emulated one, which rounds alike everywhere.
package rng
