package music3

import (
	"fmt"

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
	if voices = singing(voices); len(voices) == 0 {
		return nil
	}
	if err := l.drawResidual(voices); err != nil {
		return err
	}
	voices = singing(voices)
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
	if voices = singing(voices); len(voices) == 0 {
		return nil
	}
	return l.feedBack(voices)
}

func singing(voices []*Voice) []*Voice {
	var out []*Voice
	for _, v := range voices {
		if v.end == Singing {
			out = append(out, v)
		}
	}
	return out
}

// gather brings the voices' hidden states and what the draws read together.
func (l *FrameLoop) gather(voices []*Voice) {
	h := l.lm.cfg.HiddenSize
	l.ints = l.ints[:0]
	for s, v := range voices {
		l.queue.Copy(l.hidden.Slice(2*s*h, 2*(s+1)*h), v.hidden)
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
	l.ints = append(l.ints[:0], make([]int32, 2*len(voices)*books)...)
	if err := l.queue.DownloadInts(l.ints, l.codes); err != nil {
		return err
	}
	for s, v := range voices {
		v.codes = append(v.codes[:0], l.ints[2*s*books:(2*s+1)*books]...)
	}
	return nil
}

// run queues part f for n voices, as a recording unless someone observes or forces
// it, which needs the host in between.
func (l *FrameLoop) run(part string, voices []*Voice, f func(q compute.Queue)) error {
	for _, v := range voices {
		if v.Observer != nil || v.Forced != nil {
			f(l.queue)
			return nil
		}
	}
	key := recordingKey{part, len(voices), voices[0].Torch != nil}
	r, ok := l.recordings[key]
	if !ok {
		var err error
		if r, err = l.queue.Record(f); err != nil {
			return err
		}
		l.recordings[key] = r
	}
	r.Run()
	return nil
}

// drawSemantic computes the logits of the next semantic code or end token and draws.
func (l *FrameLoop) drawSemantic(voices []*Voice) error {
	c, n := l.lm.cfg, len(voices)
	l.gather(voices)
	l.uploadSemanticVariates(voices)
	s := l.sample(voices[0].Torch != nil, n)
	s.Logits, s.N, s.Restrict = l.logits, c.AudioCodebookSize+1, true
	if s.Exponentials != nil {
		s.Exponentials = l.semanticVariates
	}
	err := l.run("semantic", voices, func(q compute.Queue) {
		l.lm.head(q, l.logits, l.hidden, 2*n)
		q.Sample(s)
	})
	if err != nil {
		return err
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

// drawResidual runs the depth decoder: it draws the residual codes and appends the
// frame's hidden states to each voice's store.
func (l *FrameLoop) drawResidual(voices []*Voice) error {
	n, books, h := len(voices), l.depth.cfg.Codebooks, l.lm.cfg.HiddenSize
	l.gather(voices) // some may have ended since the semantic draw
	l.uploadCodes(voices)
	l.uploadDepthVariates(voices)
	var failure error
	err := l.run("residual", voices, func(q compute.Queue) {
		b := l.depthB
		for j := 1; j < books; j++ {
			hidden := l.depthPass(q, b, n, j)
			logits := b.logits.Slice(0, 2*n*l.depth.cfg.AudioVocabSize)
			q.Linear(hidden, 2*n, compute.Linear{Y: logits, W: l.depth.heads[j-1]})
			s := l.sample(voices[0].Torch != nil, n)
			s.Logits, s.N, s.Draw, s.OutColumn = logits, l.depth.cfg.AudioVocabSize, j, j
			if s.Exponentials != nil {
				s.Exponentials = l.depthVariates[j-1]
			}
			q.Sample(s)
			for s := range n {
				q.Copy(l.frame.Slice((s*books+j)*h, (s*books+j+1)*h), hidden.Slice(2*s*h, (2*s+1)*h))
			}
			if err := l.observeDepth(voices, j, hidden, logits); err != nil {
				failure = err
			}
		}
		for s := range n {
			q.Copy(l.frame.Slice(s*books*h, (s*books+1)*h), l.hidden.Slice(2*s*h, (2*s+1)*h))
		}
	})
	if err != nil {
		return err
	}
	if failure != nil {
		return failure
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
			if err := l.keepFrame(v, l.frame.Slice(s*books*h, (s+1)*books*h)); err != nil {
				return err
			}
		}
	}
	return nil
}

// depthPass runs the depth decoder up to the position that predicts code j of n
// voices and returns its normed hidden states [2n, H]. Code 1 needs positions 0 and 1
// at once: the language model's hidden state and the semantic code.
func (l *FrameLoop) depthPass(q compute.Queue, b depthBuffers, n, j int) compute.Buffer {
	d, rows, h, books := l.depth, 2*n, l.lm.cfg.HiddenSize, l.depth.cfg.Codebooks
	cut := func(x compute.Buffer, lo, hi int) compute.Buffer { return x.Slice(lo*h, hi*h) }
	if j > 1 {
		at := l.depthAt[j-2]
		at.N = rows
		q.EmbedSum(b.raw, rows, l.column[j-1], books, []compute.TablePart{{Table: d.embeddings, Base: (j - 2) * d.cfg.AudioVocabSize}}, 1)
		q.Linear(b.raw, rows, compute.Linear{Y: b.n, W: d.projection})
		q.Add(cut(b.h, 0, rows), cut(b.n, 0, rows), d.positions[j])
		d.forward(q, b, l.depthKV, at)
		return cut(b.n, 0, rows)
	}
	q.Copy(cut(b.raw, 0, rows), cut(l.hidden, 0, rows))
	q.EmbedSum(cut(b.raw, rows, 2*rows), rows, l.column[0], books, []compute.TablePart{{Table: l.lm.audio}}, 1)
	q.Linear(b.raw, 2*rows, compute.Linear{Y: b.n, W: d.projection})
	q.Add(cut(b.h, 0, rows), cut(b.n, 0, rows), d.positions[0])
	q.Add(cut(b.h, rows, 2*rows), cut(b.n, rows, 2*rows), d.positions[1])
	d.forward(q, b, l.depthKV, l.depthStart[n-1])
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
	seqs := make([]sequence, 0, 2*n)
	for i, v := range voices {
		l.ints = append(l.ints, int32(2*i), int32(2*i+1))
		seqs = append(seqs, v.seqs[0], v.seqs[1])
	}
	l.queue.UploadInts(l.step.seq, l.ints)
	l.uploadBlocks(l.step, seqs...)
	act := l.step.act.cut(l.lm.cfg, 2*n)
	err := l.run("feedback", voices, func(q compute.Queue) {
		q.EmbedSum(act.h, 2*n, l.codes, l.depth.cfg.Codebooks, l.frameParts, l.frameScale)
		l.lm.forward(q, act, l.pool.cache, l.step.rows(2*n))
	})
	if err != nil {
		return err
	}
	for s, v := range voices {
		l.queue.Copy(v.hidden, act.n.Slice(2*s*h, 2*(s+1)*h))
		v.pos++
	}
	return nil
}

// sample fills in what all draws share. A non-nil Exponentials only marks that the
// caller has to choose the buffer.
func (l *FrameLoop) sample(torch bool, n int) compute.Sample {
	s := compute.Sample{
		Songs: n, Guidance: frameGuidance, TopK: frameTopK,
		Seeds: l.seeds, Iterations: l.iterations,
		Out: l.codes, OutStride: l.depth.cfg.Codebooks,
	}
	if torch {
		s.Exponentials = l.semanticVariates
	}
	return s
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
