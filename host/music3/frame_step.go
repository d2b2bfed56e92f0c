package music3

import (
	"errors"
	"fmt"
	"slices"

	"skald/host/compute"
	"skald/host/rng"
)

// Step sings one iteration for every voice: a frame, or at first the priming
// iteration, which is fed back but not heard. Voices that end are marked; the caller
// drops them. A voice whose numbers are not finite fails alone; an error of Step itself
// is a failure of the device. All voices must be singing, and at most as many as the loop has room
// for; those with torch's generator and those without may not be mixed.
func (l *FrameLoop) Step(voices []*Voice) error {
	if len(voices) == 0 || len(voices) > l.voices {
		return fmt.Errorf("music3: a step of %d voices, expected 1 to %d", len(voices), l.voices)
	}
	if err := l.drawSemantic(voices); err != nil {
		return err
	}
	if voices = l.stillSinging(0, voices); len(voices) == 0 {
		return nil
	}
	if err := l.drawResidual(voices); err != nil {
		return err
	}
	voices = l.stillSinging(0, voices)
	for _, v := range voices {
		v.iteration++
		if v.Observer != nil && v.Observer.Codes != nil {
			v.Observer.Codes(v.iteration-1, v.codes)
		}
		if v.iteration == 1 {
			continue // iteration 0 primes
		}
		if v.frames++; v.frames == v.MaxFrames {
			v.end = EndLength
		}
	}
	if voices = l.stillSinging(1, voices); len(voices) == 0 {
		return nil
	}
	return l.feedBack(voices)
}

// stillSinging keeps the voices that have not ended, in list k of the loop's own.
func (l *FrameLoop) stillSinging(k int, voices []*Voice) []*Voice {
	out := l.singing[k][:0]
	for _, v := range voices {
		if v.end == Singing {
			out = append(out, v)
		}
	}
	l.singing[k] = out
	return out
}

// gather brings the voices' hidden states and what the draws read together.
func (l *FrameLoop) gather(voices []*Voice) {
	h := l.lm.cfg.HiddenSize
	l.ints = l.ints[:0]
	for s, v := range voices {
		l.queue.Copy(l.views.of(l.hidden, 2*s*h, 2*(s+1)*h), v.hidden)
		l.ints = append(l.ints, int32(uint32(v.Seed)), int32(uint32(v.Seed>>32)))
	}
	l.queue.UploadInts(l.seeds, l.ints)
	l.ints = l.ints[:0]
	for _, v := range voices {
		l.ints = append(l.ints, int32(v.iteration))
	}
	l.queue.UploadInts(l.iterations, l.ints)
}

// uploadCodes writes the voices' codes so far to both of their rows.
func (l *FrameLoop) uploadCodes(voices []*Voice) {
	l.ints = l.ints[:0]
	for _, v := range voices {
		l.ints = append(append(l.ints, v.codes...), v.codes...)
	}
	l.queue.UploadInts(l.codes, l.ints)
}

// downloadCodes reads what was drawn.
func (l *FrameLoop) downloadCodes(voices []*Voice) error {
	books := l.depth.cfg.Codebooks
	l.ints = slices.Grow(l.ints[:0], 2*len(voices)*books)[:2*len(voices)*books]
	if err := l.queue.DownloadInts(l.ints, l.codes); err != nil {
		return err
	}
	for s, v := range voices {
		v.codes = append(v.codes[:0], l.ints[2*s*books:(2*s+1)*books]...)
	}
	return nil
}

// watched tells whether someone observes or forces a voice, so that the host has to step
// in between operations.
func watched(voices []*Voice) bool {
	return slices.ContainsFunc(voices, func(v *Voice) bool { return v.Observer != nil || v.Forced != nil })
}

// replay queues the recording of a part of the step for as many voices, if there is one.
func (l *FrameLoop) replay(part string, voices []*Voice) bool {
	if watched(voices) {
		return false
	}
	r, ok := l.recordings[recordingKey{part, len(voices), voices[0].Torch != nil}]
	if ok {
		r.Run()
	}
	return ok
}

// run queues part f, as a recording unless it is watched.
func (l *FrameLoop) run(part string, voices []*Voice, f func(q compute.Queue)) error {
	if watched(voices) {
		f(l.queue)
		return nil
	}
	r, err := l.queue.Record(f)
	if err != nil {
		return err
	}
	l.recordings[recordingKey{part, len(voices), voices[0].Torch != nil}] = r
	r.Run()
	return nil
}

// drawSemantic computes the logits of the next semantic code or end token and draws.
func (l *FrameLoop) drawSemantic(voices []*Voice) error {
	c, n := l.lm.cfg, len(voices)
	l.gather(voices)
	l.uploadSemanticVariates(voices)
	if !l.replay("semantic", voices) {
		if err := l.run("semantic", voices, l.semanticPart(n, voices[0].Torch != nil)); err != nil {
			return err
		}
	}
	for s, v := range voices {
		if v.Observer == nil || v.Observer.Semantic == nil {
			continue
		}
		hidden, logits := make([]float32, v.hidden.Len()), make([]float32, 2*(c.AudioCodebookSize+1))
		if err := l.queue.Download(hidden, v.hidden); err != nil {
			return err
		}
		if err := l.queue.Download(logits, l.logits.Slice(s*len(logits), (s+1)*len(logits))); err != nil {
			return err
		}
		v.Observer.Semantic(v.iteration, hidden, logits)
	}
	if err := l.downloadCodes(voices); err != nil {
		return err
	}
	for _, v := range voices {
		if v.Forced != nil {
			if v.iteration >= len(v.Forced) {
				v.end = EndToken
				continue
			}
			v.codes[0] = v.Forced[v.iteration][0]
		}
		switch {
		case v.codes[0] < 0:
			v.fail("a semantic logit of frame %d is not finite", v.iteration)
		case int(v.codes[0]) == c.AudioCodebookSize:
			v.end = EndToken
		}
	}
	return nil
}

// semanticPart is the head and the semantic draw of n voices.
func (l *FrameLoop) semanticPart(n int, torch bool) func(compute.Queue) {
	codes := l.lm.cfg.AudioCodebookSize
	end := l.views.of(l.logits, codes, l.logits.Len())
	s := l.sample(n)
	s.Logits, s.N, s.Restrict = l.logits, codes+1, true
	if torch {
		s.Exponentials = l.semanticVariates
	}
	return func(q compute.Queue) {
		l.lm.head(q, l.logits, end, l.hidden, 2*n, l.depthB.products)
		q.Sample(s)
	}
}

// drawResidual runs the depth decoder: it draws the residual codes and appends the
// frame's hidden states to each voice's store.
func (l *FrameLoop) drawResidual(voices []*Voice) error {
	books, h := l.depth.cfg.Codebooks, l.lm.cfg.HiddenSize
	l.gather(voices) // some may have ended since the semantic draw
	l.uploadCodes(voices)
	l.uploadDepthVariates(voices)
	if !l.replay("residual", voices) {
		var failure error
		var watch func(j int, hidden, logits compute.Buffer)
		if watched(voices) {
			watch = func(j int, hidden, logits compute.Buffer) {
				failure = errors.Join(failure, l.observeDepth(voices, j, hidden, logits))
			}
		}
		if err := l.run("residual", voices, l.residualPart(len(voices), voices[0].Torch != nil, watch)); err != nil {
			return err
		}
		if failure != nil {
			return failure
		}
	}
	if err := l.downloadCodes(voices); err != nil {
		return err
	}
	for s, v := range voices {
		for j, c := range v.codes {
			if c < 0 {
				v.fail("a logit of residual code %d of frame %d is not finite", j, v.iteration)
				break
			}
		}
		if v.iteration > 0 && v.end == Singing {
			if err := l.keepFrame(v, l.views.of(l.frame, s*books*h, (s+1)*books*h)); err != nil {
				return err
			}
		}
	}
	return nil
}

// residualPart is the depth decoder and the residual draws of n voices, and leaves the
// frames' conditional hidden states in l.frame. watch, if any, is called after every draw.
func (l *FrameLoop) residualPart(n int, torch bool, watch func(j int, hidden, logits compute.Buffer)) func(compute.Queue) {
	books, size, b := l.depth.cfg.Codebooks, l.depth.cfg.AudioVocabSize, &l.depthB
	logits := b.views.of(b.logits, 0, 2*n*size)
	return func(q compute.Queue) {
		for j := 1; j < books; j++ {
			hidden := l.depthPass(q, b, n, j)
			q.Linear(hidden, 2*n, b.products.of(compute.Linear{Y: logits, W: l.depth.heads[j-1]})...)
			s := l.sample(n)
			s.Logits, s.N, s.Draw, s.OutColumn = logits, size, j, j
			if torch {
				s.Exponentials = l.depthVariates[j-1]
			}
			q.Sample(s)
			for s := range n {
				q.Copy(l.hiddenRow(l.frame, s*books+j), l.hiddenRow(hidden, 2*s))
			}
			if watch != nil {
				watch(j, hidden, logits)
			}
		}
		for s := range n {
			q.Copy(l.hiddenRow(l.frame, s*books), l.hiddenRow(l.hidden, 2*s))
		}
	}
}

// depthPass runs the depth decoder up to the position that predicts code j of n
// voices and returns its normed hidden states [2n, H]. Code 1 needs positions 0 and 1
// at once: the language model's hidden state and the semantic code.
func (l *FrameLoop) depthPass(q compute.Queue, b *depthBuffers, n, j int) compute.Buffer {
	d, rows, h, books := l.depth, 2*n, l.lm.cfg.HiddenSize, l.depth.cfg.Codebooks
	cut := func(x compute.Buffer, lo, hi int) compute.Buffer { return b.views.of(x, lo*h, hi*h) }
	if j > 1 {
		at := l.depthAt[j-2]
		at.N = rows
		q.EmbedSum(b.raw, rows, l.column[j-1], books, l.frameParts[j-1:j], 1)
		q.Linear(b.raw, rows, b.products.of(compute.Linear{Y: b.n, W: d.projection})...)
		q.Add(cut(b.h, 0, rows), cut(b.n, 0, rows), d.positions[j])
		d.forward(q, *b, l.depthKV, at)
		return cut(b.n, 0, rows)
	}
	q.Copy(cut(b.raw, 0, rows), cut(l.hidden, 0, rows))
	q.EmbedSum(cut(b.raw, rows, 2*rows), rows, l.column[0], books, l.frameParts[:1], 1)
	q.Linear(b.raw, 2*rows, b.products.of(compute.Linear{Y: b.n, W: d.projection})...)
	q.Add(cut(b.h, 0, rows), cut(b.n, 0, rows), d.positions[0])
	q.Add(cut(b.h, rows, 2*rows), cut(b.n, rows, 2*rows), d.positions[1])
	d.forward(q, *b, l.depthKV, l.depthStart[n-1])
	return cut(b.n, rows, 2*rows)
}

// observeDepth shows the numbers of a depth step and puts forced codes in place.
func (l *FrameLoop) observeDepth(voices []*Voice, j int, hidden, logits compute.Buffer) error {
	forced := false
	for s, v := range voices {
		if v.Observer != nil && v.Observer.Depth != nil {
			w := 2 * l.lm.cfg.HiddenSize
			a := 2 * l.depth.cfg.AudioVocabSize
			hs, ls := make([]float32, w), make([]float32, a)
			if err := l.queue.Download(hs, hidden.Slice(s*w, (s+1)*w)); err != nil {
				return err
			}
			if err := l.queue.Download(ls, logits.Slice(s*a, (s+1)*a)); err != nil {
				return err
			}
			v.Observer.Depth(v.iteration, j, hs, ls)
		}
		forced = forced || v.Forced != nil
	}
	if !forced {
		return nil
	}
	if err := l.downloadCodes(voices); err != nil {
		return err
	}
	for _, v := range voices {
		if v.Forced != nil {
			v.codes[j] = v.Forced[v.iteration][j]
		}
	}
	l.uploadCodes(voices)
	return nil
}

// feedBack embeds the frames' codes and advances the language model by one position.
func (l *FrameLoop) feedBack(voices []*Voice) error {
	n, h := len(voices), l.lm.cfg.HiddenSize
	l.uploadCodes(voices)
	l.ints = l.ints[:0]
	for _, v := range voices {
		l.ints = append(l.ints, int32(v.pos), int32(v.pos))
	}
	l.queue.UploadInts(l.step.pos, l.ints)
	l.ints = l.ints[:0]
	l.seqs = l.seqs[:0]
	for i, v := range voices {
		l.ints = append(l.ints, int32(2*i), int32(2*i+1))
		l.seqs = append(l.seqs, v.seqs[0], v.seqs[1])
	}
	l.queue.UploadInts(l.step.seq, l.ints)
	l.uploadBlocks(&l.step, l.seqs...)
	act := l.step.cut(l.lm.cfg, 2*n)
	if !l.replay("feedback", voices) {
		if err := l.run("feedback", voices, l.feedbackPart(n)); err != nil {
			return err
		}
	}
	for s, v := range voices {
		l.queue.Copy(v.hidden, l.views.of(act.n, 2*s*h, 2*(s+1)*h))
		v.pos++
	}
	return nil
}

// feedbackPart embeds the codes of n voices and runs the language model.
func (l *FrameLoop) feedbackPart(n int) func(compute.Queue) {
	act := l.step.cut(l.lm.cfg, 2*n)
	return func(q compute.Queue) {
		q.EmbedSum(act.h, 2*n, l.codes, l.depth.cfg.Codebooks, l.frameParts, l.frameScale)
		l.lm.forward(q, act, l.pool.cache, l.step.rows(2*n))
	}
}

// sample fills in what all draws of n songs share.
func (l *FrameLoop) sample(n int) compute.Sample {
	return compute.Sample{
		Songs: n, Guidance: frameGuidance, TopK: frameTopK,
		Seeds: l.seeds, Iterations: l.iterations,
		Out: l.codes, OutStride: l.depth.cfg.Codebooks,
	}
}

// uploadSemanticVariates draws from torch's generators as the reference does: for
// every id of the vocabulary, of which only the candidates' are kept.
func (l *FrameLoop) uploadSemanticVariates(voices []*Voice) {
	if voices[0].Torch == nil {
		return
	}
	c := l.lm.cfg
	spans := []rng.Span{{Lo: c.AudioCodeOffset, Hi: c.AudioCodeOffset + c.AudioCodebookSize}, {Lo: c.AudioEndID, Hi: c.AudioEndID + 1}}
	n := c.AudioCodebookSize + 1
	for s, v := range voices {
		q := l.variates[s*n : (s+1)*n]
		v.Torch.Exponentials(c.VocabSize, spans, q)
		if v.Observer != nil && v.Observer.Variates != nil {
			v.Observer.Variates(v.iteration, 0, q)
		}
	}
	l.queue.Upload(l.semanticVariates, l.variates[:len(voices)*n])
}

func (l *FrameLoop) uploadDepthVariates(voices []*Voice) {
	if voices[0].Torch == nil {
		return
	}
	a := l.depth.cfg.AudioVocabSize
	for j := range l.depthVariates {
		for s, v := range voices {
			q := l.variates[s*a : (s+1)*a]
			v.Torch.Exponentials(a, []rng.Span{{Lo: 0, Hi: a}}, q)
			if v.Observer != nil && v.Observer.Variates != nil {
				v.Observer.Variates(v.iteration, j+1, q)
			}
		}
		l.queue.Upload(l.depthVariates[j], l.variates[:len(voices)*a])
	}
}
