package music3

import (
	"context"
	"errors"
	"fmt"
	"math"

	"skald/host/compute"
)

// What the reference fixes for the frame loop, in code rather than configuration.
const (
	frameGuidance = 1.5 // guidance scale of both decoders
	frameTopK     = 50  // candidates of a draw
)

// prefillRows bounds the rows of one prefill pass, and so its working memory.
const prefillRows = 256

// ErrNoFrames means that the model ended the song before its first frame.
var ErrNoFrames = errors.New("the model ended the song before its first frame: try another seed, lyrics or description")

// FrameLoop is the autoregressive half: it sings frames for any number of voices
// together, two rows each (conditional, unconditional). A voice's frames do not
// depend on the others. It is used by one goroutine at a time.
type FrameLoop struct {
	device compute.Device
	lm     *LanguageModel
	depth  *DepthDecoder
	queue  compute.Queue
	voices int // capacity

	pool   *blockPool
	prefix fillerPrefix

	prefill    passBuffers // prefillRows rows
	step       passBuffers // 2*voices rows
	depthB     depthBuffers
	depthKV    compute.KVCache
	depthStart []compute.Rows // placement of positions 0 and 1 together, for 1, 2, ... voices
	depthAt    []compute.Rows // placement of positions 2, 3, ...

	logits     compute.Buffer   // [2*voices, codes+1]
	hidden     compute.Buffer   // [2*voices, H], gathered from the voices
	codes      compute.Buffer   // I32 [2*voices, B]
	column     []compute.Buffer // codes from column j on
	seeds      compute.Buffer   // I32 [voices, 2]
	iterations compute.Buffer   // I32 [voices]
	frame      compute.Buffer   // [voices, B*H], conditional hiddens of the frame
	finite     compute.Buffer   // I32 [1]

	// Variates of voices that use torch's generator, one buffer per draw.
	semanticVariates compute.Buffer   // F32 [voices, codes+1]
	depthVariates    []compute.Buffer // F32 [voices, A]
	variates         []float32

	frameParts []compute.TablePart // what a frame's embedding adds up
	frameScale float32

	recordings map[recordingKey]compute.Recording
	ints       []int32
}

// passBuffers is the memory of a pass of the language model: its placement and its
// activations.
type passBuffers struct {
	act              lmBuffers
	pos, seq, blocks compute.Buffer
	ids              compute.Buffer
	maxBlocks        int
}

type recordingKey struct {
	part  string
	n     int
	torch bool
}

// NewFrameLoop allocates for `voices` voices at once, each of up to the model's
// positions.
func (m *Model) NewFrameLoop(voices int) (*FrameLoop, error) {
	l := &FrameLoop{device: m.dev, lm: m.lm, depth: m.depth, voices: voices, recordings: map[recordingKey]compute.Recording{}}
	var err error
	if l.queue, err = m.dev.NewQueue(); err != nil {
		return nil, err
	}
	a := &allocator{dev: m.dev}
	lm, dt := m.lm.cfg, m.lm.dtype
	rows, books, hidden := 2*voices, m.depth.cfg.Codebooks, lm.HiddenSize
	perSequence := blocksFor(lm.MaxPositions)

	// Each voice's two sequences, and the shared prefix.
	cache, err := m.dev.NewKVCache(m.lm.kvConfig((rows + 1) * perSequence))
	if err != nil {
		return nil, fmt.Errorf("music3: KV cache of the language model: %w", err)
	}
	l.pool = newBlockPool(cache)
	if l.depthKV, err = m.dev.NewKVCache(m.depth.kvConfig(rows)); err != nil {
		return nil, fmt.Errorf("music3: KV cache of the depth decoder: %w", err)
	}
	pass := func(rows, sequences int) passBuffers {
		return passBuffers{
			act: m.lm.newBuffers(a, rows), pos: a.buffer(compute.I32, rows), seq: a.buffer(compute.I32, rows),
			blocks: a.buffer(compute.I32, sequences*perSequence), ids: a.buffer(compute.I32, rows), maxBlocks: perSequence,
		}
	}
	l.prefill, l.step = pass(prefillRows, 2), pass(rows, rows)
	l.depthB = m.depth.newBuffers(a, rows)
	l.logits = a.buffer(dt, rows*(lm.AudioCodebookSize+1))
	l.hidden = a.buffer(dt, rows*hidden)
	l.codes = a.buffer(compute.I32, rows*books)
	l.seeds, l.iterations = a.buffer(compute.I32, 2*voices), a.buffer(compute.I32, voices)
	l.frame = a.buffer(dt, voices*books*hidden)
	l.finite = a.buffer(compute.I32, 1)
	l.semanticVariates = a.buffer(compute.F32, voices*(lm.AudioCodebookSize+1))
	for range books - 1 {
		l.depthVariates = append(l.depthVariates, a.buffer(compute.F32, voices*m.depth.cfg.AudioVocabSize))
	}
	if a.err != nil {
		return nil, a.err
	}
	for j := range books {
		l.column = append(l.column, l.codes.Slice(j, rows*books))
		part := compute.TablePart{Table: m.depth.embeddings, Base: (j - 1) * m.depth.cfg.AudioVocabSize}
		if j == 0 {
			part = compute.TablePart{Table: m.lm.audio}
		}
		l.frameParts = append(l.frameParts, part)
	}
	l.frameScale = float32(math.Pow(float64(books), -0.5))
	l.variates = make([]float32, max(lm.AudioCodebookSize+1, m.depth.cfg.AudioVocabSize)*voices)
	if err := l.placeDepth(a); err != nil {
		return nil, err
	}
	return l, nil
}

// placeDepth uploads where the depth decoder's rows stand: row r of a frame has
// block r to itself, and the passes are at fixed positions.
func (l *FrameLoop) placeDepth(a *allocator) error {
	rows, books := 2*l.voices, l.depth.cfg.Codebooks
	ints := func(n int, f func(i int) int) compute.Buffer {
		b := a.buffer(compute.I32, n)
		v := make([]int32, n)
		for i := range v {
			v[i] = int32(f(i))
		}
		if a.err == nil {
			l.queue.UploadInts(b, v)
		}
		return b
	}
	blocks := ints(rows, func(i int) int { return i })
	for n := 1; n <= l.voices; n++ {
		l.depthStart = append(l.depthStart, compute.Rows{
			N: 4 * n, Pos: ints(4*n, func(i int) int { return i / (2 * n) }),
			Seq: ints(4*n, func(i int) int { return i % (2 * n) }), Blocks: blocks, MaxBlocks: 1,
		})
	}
	for p := 2; p < books; p++ {
		l.depthAt = append(l.depthAt, compute.Rows{
			Pos: ints(rows, func(int) int { return p }), Seq: blocks, Blocks: blocks, MaxBlocks: 1,
		})
	}
	if a.err != nil {
		return a.err
	}
	return l.queue.Sync()
}

// Close frees the queue and the caches.
func (l *FrameLoop) Close() error {
	var errs []error
	for _, r := range l.recordings {
		errs = append(errs, r.Close())
	}
	errs = append(errs, l.depthKV.Close(), l.pool.cache.Close(), l.queue.Close())
	return errors.Join(errs...)
}

// Start computes both prompts [P] of a voice. It reserves the cache positions that
// MaxFrames can need.
func (l *FrameLoop) Start(ctx context.Context, v *Voice, conditional, unconditional []int32) (err error) {
	defer func() {
		if err != nil {
			l.Release(v)
		}
	}()
	p := len(conditional)
	if len(unconditional) != p || p < 3 {
		return fmt.Errorf("music3: prompts of %d and %d tokens, expected two of the same length, at least 3", p, len(unconditional))
	}
	a := &allocator{dev: l.device}
	v.hidden = a.buffer(l.lm.dtype, 2*l.lm.cfg.HiddenSize)
	if a.err != nil {
		return a.err
	}
	if err := l.startFromPrefix(ctx, v, unconditional); err != nil {
		return err
	}
	for i := range v.seqs {
		if err := l.pool.reserve(&v.seqs[i], p+v.MaxFrames+1); err != nil {
			return err
		}
	}
	var work []placedToken
	for i, id := range conditional {
		work = append(work, placedToken{id: id, pos: i, seq: 0})
	}
	for i := p - 2; i < p; i++ {
		work = append(work, placedToken{id: unconditional[i], pos: i, seq: 1})
	}
	last := [2]int{p - 1, p + 1} // rows of work whose hidden states are kept
	for lo := 0; lo < len(work); lo += prefillRows {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		hi := min(lo+prefillRows, len(work))
		out := l.prefillPass(work[lo:hi], v.seqs[0], v.seqs[1])
		for i, row := range last {
			if row >= lo && row < hi {
				l.queue.Copy(l.hiddenRow(v.hidden, i), l.hiddenRow(out, row-lo))
			}
		}
	}
	v.pos = p
	if err := l.checkFinite(v.hidden, "the prompt's hidden state"); err != nil {
		return err
	}
	if v.Observer != nil && v.Observer.Prefill != nil {
		h := make([]float32, v.hidden.Len())
		if err := l.queue.Download(h, v.hidden); err != nil {
			return err
		}
		v.Observer.Prefill(h)
	}
	return nil
}

// startFromPrefix gives the unconditional sequence all but its last two positions
// from the shared prefix, computing what of that is missing.
func (l *FrameLoop) startFromPrefix(ctx context.Context, v *Voice, ids []int32) error {
	need := len(ids) - 2
	x := &l.prefix
	if x.first != ids[0] {
		x.first, x.filled = ids[0], 0
	}
	if err := l.pool.reserve(&x.seq, need); err != nil {
		return err
	}
	for x.filled < need {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		var work []placedToken
		for i := x.filled; i < min(need, x.filled+prefillRows); i++ {
			work = append(work, placedToken{id: ids[i], pos: i})
		}
		l.prefillPass(work, x.seq, sequence{})
		if err := l.queue.Sync(); err != nil {
			return err
		}
		x.filled += len(work)
	}
	full := need / kvBlockSize
	s := sequence{blocks: append([]int32(nil), x.seq.blocks[:full]...), shared: full}
	if need%kvBlockSize != 0 {
		b, err := l.pool.take()
		if err != nil {
			return err
		}
		l.queue.CopyBlock(l.pool.cache, int(b), int(x.seq.blocks[full]))
		s.blocks = append(s.blocks, b)
	}
	v.seqs[1] = s
	return nil
}

// placedToken is a token of a prefill pass; seq is 0 or 1.
type placedToken struct {
	id  int32
	pos int
	seq int32
}

// prefillPass runs the language model over tokens of at most two sequences and
// returns their post-norm hidden states.
func (l *FrameLoop) prefillPass(work []placedToken, seqs ...sequence) compute.Buffer {
	b, n := l.prefill, len(work)
	column := func(f func(t placedToken) int32) []int32 {
		l.ints = l.ints[:0]
		for _, t := range work {
			l.ints = append(l.ints, f(t))
		}
		return l.ints
	}
	q := l.queue
	q.UploadInts(b.ids, column(func(t placedToken) int32 { return t.id }))
	q.UploadInts(b.pos, column(func(t placedToken) int32 { return int32(t.pos) }))
	q.UploadInts(b.seq, column(func(t placedToken) int32 { return t.seq }))
	l.uploadBlocks(b, seqs...)
	act := b.act.cut(l.lm.cfg, n)
	q.EmbedSum(act.h, n, b.ids, 1, []compute.TablePart{{Table: l.lm.text}}, 1)
	l.lm.forward(q, act, l.pool.cache, b.rows(n))
	return act.n
}

func (b passBuffers) rows(n int) compute.Rows {
	return compute.Rows{N: n, Pos: b.pos, Seq: b.seq, Blocks: b.blocks, MaxBlocks: b.maxBlocks}
}

func (l *FrameLoop) uploadBlocks(b passBuffers, seqs ...sequence) {
	l.ints = l.ints[:0]
	for _, s := range seqs {
		l.ints = append(l.ints, s.blocks...)
		for range b.maxBlocks - len(s.blocks) {
			l.ints = append(l.ints, 0)
		}
	}
	l.queue.UploadInts(b.blocks, l.ints)
}

func (l *FrameLoop) hiddenRow(b compute.Buffer, row int) compute.Buffer {
	h := l.lm.cfg.HiddenSize
	return b.Slice(row*h, (row+1)*h)
}

// Sync waits until every frame sung so far can be rendered.
func (l *FrameLoop) Sync() error { return l.queue.Sync() }

// Release gives a voice's cache blocks and memory back.
func (l *FrameLoop) Release(v *Voice) {
	v.free()
	for i := range v.seqs {
		l.pool.release(&v.seqs[i])
	}
}

func (l *FrameLoop) checkFinite(b compute.Buffer, what string) error {
	l.queue.Finite(l.finite, b)
	var at [1]int32
	if err := l.queue.DownloadInts(at[:], l.finite); err != nil {
		return err
	}
	if at[0] != 0 {
		return &NonFiniteError{What: fmt.Sprintf("%s is not finite at number %d", what, at[0]-1)}
	}
	return nil
}

// NonFiniteError means that the model computed a NaN or an infinity.
type NonFiniteError struct{ What string }

func (e *NonFiniteError) Error() string { return "music3: " + e.What }
