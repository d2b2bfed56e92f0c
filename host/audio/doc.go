// Package audio turns songs into bytes and judges them by numbers.
//
// Samples come as the vocoder makes them: one slice of float32 per channel, full scale
// from -1 to 1. An [Encoder] takes them block by block and makes WAV, FLAC, MP3, Opus or
// bare samples, at any sample rate; [Encode] does so with a whole song. The formats
// themselves are in the folders flac, mp3, opus and resample, which need nothing of this
// package.
//
// [AppendSamples] interleaves and quantises samples, [WAVHeader] makes a header for a
// reply whose samples follow, and [WriteWAV] writes a whole file. [Measure] finds what no
// song may have: numbers that are not finite, or the same number throughout.
package audio
