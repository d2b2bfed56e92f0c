// Package resample changes the sample rate of audio: any rate to any other, block by
// block.
//
// Output sample i is the band-limited signal at the time of input sample i*from/to,
// which is computed directly, with a polyphase filter: a windowed sinc that passes
// everything up to [Passband] of the lower of the two Nyquist frequencies and stops
// what lies above that frequency. Over common rates and odd ones the tests measure that
// tones of the passband come out right to 135 dB below full scale, every sample, and
// that tones of the stopband come out 137 dB weaker.
//
// There is no delay: the filter is symmetric and the output begins with the input. How
// the input is cut into blocks does not change a bit of the output.
package resample
