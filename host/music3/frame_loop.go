package music3

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"skald/host/checkpoint"
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

	textPart   []compute.TablePart
	frameParts []compute.TablePart // what a frame's embedding adds up
	frameScale float32

	recordings map[recordingKey]compute.Recording
	views      views
	chunks     *chunkPool
	ints       []int32
	seqs       []sequence
	singing    [2][]*Voice
}

// passBuffers is the memory of a pass of the language model: its placement and its
// activations.
type passBuffers struct {
	act              lmBuffers
	pos, seq, blocks compute.Buffer
	ids              compute.Buffer
	maxBlocks        int
	cuts             map[int]lmBuffers // act for fewer rows
}

// cut returns the activations of the first rows.
func (b *passBuffers) cut(c checkpoint.LanguageModel, rows int) lmBuffers {
	x, ok := b.cuts[rows]
	if !ok {
		x = b.act.cut(c, rows)
		b.cuts[rows] = x
	}
	return x
}

type recordingKey struct {
	part  string
	n     int
	torch bool
}

// KVBytes is the memory of a KV cache for n positions of the language model.
func (m *Model) KVBytes(positions int) int64 {
	return m.lm.kvConfig(blocksFor(positions)).Bytes()
}

// NewFrameLoop allocates for `voices` voices at once, whose prompts and frames share a
// cache of the given number of positions. A song takes about two positions for each of
// its prompt's tokens and frames.
func (m *Model) NewFrameLoop(voices, positions int) (*FrameLoop, error) {
	l := &FrameLoop{device: m.dev, lm: m.lm, depth: m.depth, voices: voices, recordings: map[recordingKey]compute.Recording{}, views: views{}}
	var err error
	if l.queue, err = m.dev.NewQueue(); err != nil {
		return nil, err
	}
	a := &allocator{dev: m.dev}
	lm, dt := m.lm.cfg, m.lm.dtype
	rows, books, hidden := 2*voices, m.depth.cfg.Codebooks, lm.HiddenSize
	perSequence := blocksFor(lm.MaxPositions)

	cache, err := m.dev.NewKVCache(m.lm.kvConfig(blocksFor(positions)))
	if err != nil {
		return nil, fmt.Errorf("music3: KV cache of the language model: %w", err)
	}
	l.pool = newBlockPool(cache)
	l.chunks = &chunkPool{dev: m.dev, dtype: dt, width: books * hidden, most: 2 * voices}
	if l.depthKV, err = m.dev.NewKVCache(m.depth.kvConfig(rows)); err != nil {
		return nil, fmt.Errorf("music3: KV cache of the depth decoder: %w", err)
	}
	pass := func(rows, sequences int) passBuffers {
		return passBuffers{
			act: m.lm.newBuffers(a, rows), pos: a.buffer(compute.I32, rows), seq: a.buffer(compute.I32, rows),
			blocks: a.buffer(compute.I32, sequences*perSequence), ids: a.buffer(compute.I32, rows), maxBlocks: perSequence,
			cuts: map[int]lmBuffers{},
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
	l.textPart = []compute.TablePart{{Table: m.lm.text}}
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
	l.chunks.close()
	errs = append(errs, l.depthKV.Close(), l.pool.cache.Close(), l.queue.Close())
	return errors.Join(errs...)
}

// Fits tells whether a song's cache positions can be reserved now, and whether they
// could if no other song were there.
func (l *FrameLoop) Fits(promptTokens, frames int) (now, ever bool) {
	whole := blocksFor(promptTokens + frames + 1)
	prefix := blocksFor(promptTokens - 2)
	need := whole + whole - (promptTokens-2)/kvBlockSize // the unconditional row shares full blocks
	now = need+max(0, prefix-len(l.prefix.seq.blocks)) <= len(l.pool.free)
	return now, need+max(prefix, len(l.prefix.seq.blocks)) <= l.pool.cache.Config().Blocks
}

// KVBlocks counts the blocks of the language model's cache, and those that are taken:
// reserved for voices, or kept for the prompts of later ones.
func (l *FrameLoop) KVBlocks() (taken, all int) {
	all = l.pool.cache.Config().Blocks
	return all - len(l.pool.free), all
}

// Start admits a voice with its two prompts [P]. It reserves the cache positions that
// MaxFrames can need. The prompts are computed by Prefill.
func (l *FrameLoop) Start(v *Voice, conditional, unconditional []int32) error {
	p := len(conditional)
	if len(unconditional) != p || p < 3 {
		return fmt.Errorf("music3: prompts of %d and %d tokens, expected two of the same length, at least 3", p, len(unconditional))
	}
	if l.prefix.filled == 0 {
		l.prefix.first = unconditional[0]
	} else if l.prefix.first != unconditional[0] {
		return fmt.Errorf("music3: a prompt begins with token %d, others with %d", unconditional[0], l.prefix.first)
	}
	a := &allocator{dev: l.device}
	v.hidden = a.buffer(l.lm.dtype, 2*l.lm.cfg.HiddenSize)
	if a.err != nil {
		return a.err
	}
	v.store, v.chunks = make([]*chunk, (v.MaxFrames+hopFrames-1)/hopFrames), l.chunks
	shared := (p - 2) / kvBlockSize
	err := l.pool.reserve(&l.prefix.seq, p-2)
	if err == nil {
		v.seqs[1] = sequence{blocks: slices.Clone(l.prefix.seq.blocks[:shared]), shared: shared}
		err = errors.Join(l.pool.reserve(&v.seqs[0], p+v.MaxFrames+1), l.pool.reserve(&v.seqs[1], p+v.MaxFrames+1))
	}
	if err != nil {
		l.Retire(v)
		v.Release()
		return err
	}
	for i, id := range conditional {
		v.prompt = append(v.prompt, placedToken{id: id, pos: i, seq: 0})
	}
	for i := p - 2; i < p; i++ {
		v.prompt = append(v.prompt, placedToken{id: unconditional[i], pos: i, seq: 1})
	}
	v.pos = p
	return nil
}

// Prefill computes the next part of a voice's prompts and tells whether all is done.
// The unconditional prompt is the first token, then fillers, then the last two tokens;
// what of its filler prefix other songs have computed is taken from them.
func (l *FrameLoop) Prefill(v *Voice, unconditional []int32) (done bool, err error) {
	if x, need := &l.prefix, v.pos-2; x.filled < need {
		var work []placedToken
		for i := x.filled; i < min(need, x.filled+prefillRows); i++ {
			work = append(work, placedToken{id: unconditional[i], pos: i})
		}
		l.prefillPass(work, x.seq, sequence{})
		x.filled += len(work)
		return false, l.queue.Sync()
	}
	if v.started == 0 && (v.pos-2)%kvBlockSize != 0 {
		last := v.seqs[1].shared // the prefix ends within this block, which the voice goes on to write
		l.queue.CopyBlock(l.pool.cache, int(v.seqs[1].blocks[last]), int(l.prefix.seq.blocks[last]))
	}
	lo, hi := v.started, min(v.started+prefillRows, len(v.prompt))
	out := l.prefillPass(v.prompt[lo:hi], v.seqs[0], v.seqs[1])
	for i, row := range [2]int{v.pos - 1, len(v.prompt) - 1} { // the last of either prompt
		if row >= lo && row < hi {
			h := l.lm.cfg.HiddenSize
			// A slice of its own: remembered ones outlive the voice.
			l.queue.Copy(v.hidden.Slice(i*h, (i+1)*h), l.hiddenRow(out, row-lo))
		}
	}
	if v.started = hi; hi < len(v.prompt) {
		return false, l.queue.Sync()
	}
	v.prompt = nil
	if err := l.checkFinite(v, "the prompt's hidden state"); err != nil || v.end != Singing {
		return true, err
	}
	if v.Observer != nil && v.Observer.Prefill != nil {
		h := make([]float32, v.hidden.Len())
		if err := l.queue.Download(h, v.hidden); err != nil {
			return true, err
		}
		v.Observer.Prefill(h)
	}
	return true, nil
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
	b, n := &l.prefill, len(work)
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
	act := b.cut(l.lm.cfg, n)
	q.EmbedSum(act.h, n, b.ids, 1, l.textPart, 1)
	l.lm.forward(q, act, l.pool.cache, b.rows(n))
	return act.n
}

func (b *passBuffers) rows(n int) compute.Rows {
	return compute.Rows{N: n, Pos: b.pos, Seq: b.seq, Blocks: b.blocks, MaxBlocks: b.maxBlocks}
}

func (l *FrameLoop) uploadBlocks(b *passBuffers, seqs ...sequence) {
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
	return l.views.of(b, row*h, (row+1)*h)
}

// Sync waits until every frame sung so far can be rendered.
func (l *FrameLoop) Sync() error { return l.queue.Sync() }

// Retire gives a voice's place in the cache back. Its frames can still be rendered.
func (l *FrameLoop) Retire(v *Voice) {
	for i := range v.seqs {
		l.pool.release(&v.seqs[i])
	}
}

// checkFinite fails the voice when its newest hidden states are not finite.
func (l *FrameLoop) checkFinite(v *Voice, what string) error {
	l.queue.Finite(l.finite, v.hidden)
	var at [1]int32
	if err := l.queue.DownloadInts(at[:], l.finite); err != nil {
		return err
	}
	if at[0] != 0 {
		v.fail("%s is not finite at number %d", what, at[0]-1)
	}
	return nil
}

// NonFiniteError means that the model computed a NaN or an infinity.
type NonFiniteError struct{ What string }

func (e *NonFiniteError) Error() string { return "music3: " + e.What }
