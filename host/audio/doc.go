// Package audio turns a finished song into bytes and judges it by numbers.
//
// Samples come as the vocoder makes them: one slice of float32 per channel, full
// scale from -1 to 1. [AppendSamples] interleaves and quantises them, [WAVHeader]
// makes a header for a reply whose samples follow, whole or streamed, and [WriteWAV]
// writes a file with metadata. [Measure] finds what no song may have: numbers that
// are not finite, or the same number throughout.
package audio
