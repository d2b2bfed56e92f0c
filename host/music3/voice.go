package music3

import (
	"fmt"

	"skald/host/compute"
	"skald/host/rng"
)

// Voice is one song in the loop.
type Voice struct {
	MaxFrames int
	Seed      uint64
	Torch     *rng.Torch // torch's generator; nil for Philox draws by Seed
	Forced    [][]int32  // recorded codes [iterations][B] to sing instead of drawing
	Observer  *Observer  // sees every stage's numbers; slow

	seqs      [2]sequence
	pos       int            // of the next row
	prompt    []placedToken  // rows of the prompts not yet computed
	started   int            // rows of the prompts computed
	hidden    compute.Buffer // [2, H], the newest post-norm hidden states
	iteration int
	frames    int
	// The frames' hidden states, hopFrames to a buffer. Its length never changes, so that
	// earlier frames can be rendered while later ones are sung.
	store  []*chunk
	chunks *chunkPool
	codes  []int32
	end    End
	err    error
}

// End says whether and why a voice stopped.
type End uint8

// The states of a voice.
const (
	Singing  End = iota
	EndToken     // the model drew the end token
	EndLength
	EndCaller // Finish was called
	EndFailed // see Err
)

// Frames is the number of frames sung so far.
func (v *Voice) Frames() int { return v.frames }

// Iterations is the number of iterations so far, the priming one included.
func (v *Voice) Iterations() int { return v.iteration }

// Codes are the codes [B] of the newest iteration, valid until the next one.
func (v *Voice) Codes() []int32 { return v.codes }

// End tells whether the voice still sings.
func (v *Voice) End() End { return v.end }

// Err is why a voice failed: a *NonFiniteError.
func (v *Voice) Err() error { return v.err }

// fail ends the voice alone; the others sing on.
func (v *Voice) fail(format string, args ...any) {
	v.end, v.err = EndFailed, &NonFiniteError{What: fmt.Sprintf(format, args...)}
}

// Finish ends the voice with what was sung so far.
func (v *Voice) Finish() {
	if v.end == Singing {
		v.end = EndCaller
	}
}

// Observer receives the numbers of the frame loop as float32, whatever their type.
// The slices are only valid during the call. Rows are conditional, unconditional.
type Observer struct {
	Prefill  func(hidden []float32)                              // [2, H]
	Semantic func(iteration int, hidden, logits []float32)       // [2, H], [2, codes+1]
	Depth    func(iteration, code int, hidden, logits []float32) // code from 1; [2, H], [2, A]
	// Variates receives the exponential variates of a draw of torch's generator.
	Variates func(iteration, code int, q []float32)
	Codes    func(iteration int, codes []int32)
}

// keepFrame copies a frame's hidden states [B*H] to the voice's store.
func (l *FrameLoop) keepFrame(v *Voice, frame compute.Buffer) error {
	at := v.frames % hopFrames
	if at == 0 {
		c, err := l.chunks.take()
		if err != nil {
			return err
		}
		v.store[v.frames/hopFrames] = c
	}
	l.queue.Copy(v.store[v.frames/hopFrames].frames[at], frame)
	return nil
}

// Frame reads frame i's hidden states [B*H], as float32.
func (l *FrameLoop) Frame(v *Voice, i int, dst []float32) error {
	return l.queue.Download(dst, v.store[i/hopFrames].frames[i%hopFrames])
}

// Forget frees the hidden states of all frames before frame i, once no window needs
// them; whole pieces only.
func (v *Voice) Forget(i int) {
	for k := range v.store[:min(i/hopFrames, len(v.store))] {
		if v.store[k] != nil {
			v.chunks.put(v.store[k])
			v.store[k] = nil
		}
	}
}

// Release frees the memory of a voice that nothing uses any more.
func (v *Voice) Release() {
	v.Forget(len(v.store) * hopFrames)
	if v.hidden != nil {
		v.hidden.Free()
	}
	v.store, v.hidden = nil, nil
}
