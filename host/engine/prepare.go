package engine

import (
	"errors"
	"fmt"
	"math"

	"skald/host/music3"
	"skald/host/music3/prompt"
)

// maxPromptTokens is the reference's bound on a prompt.
const maxPromptTokens = 5000

// demonstration tells users of the demonstration model what they hear.
const demonstration = "this is the built-in demonstration model, a toy that does not sing; for real songs fetch the weights of MiniMaxAI/MiniMax-Music3 and name their folder with --model"

// Check reports what is wrong with a request, without doing any work, as one
// *RequestError per fault joined by errors.Join, and the warnings the song will
// carry.
func (e *Engine) Check(r Request) (warnings []string, err error) {
	_, warnings, err = e.prepare(&r)
	return warnings, err
}

// PromptTokens counts the tokens of a request's prompt. The request is one that Check
// finds nothing wrong with.
func (e *Engine) PromptTokens(r Request) (int, error) {
	p, _, err := e.prepare(&r)
	return len(p.IDs), err
}

// prepare checks a request and builds its prompt. In an instrumental request it fills
// in the lyrics.
func (e *Engine) prepare(r *Request) (p prompt.Prompt, warnings []string, err error) {
	warnings = append(warnings, e.info.Warnings...)
	if e.info.BuiltIn {
		warnings = append(warnings, demonstration)
	}
	var faults []error
	fault := func(field, format string, args ...any) {
		faults = append(faults, &RequestError{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	if r.MaxFrames < 1 || r.MaxFrames > e.info.MaxFrames {
		fault("max_frames", "%d frames asked for, expected 1 to %d", r.MaxFrames, e.info.MaxFrames)
	}
	if r.Steps < 1 || r.Steps > 200 {
		fault("steps", "%d Euler steps asked for, expected 1 to 200", r.Steps)
	}
	if math.IsNaN(r.Guidance) || r.Guidance < 0 || r.Guidance > 20 {
		fault("guidance", "a guidance scale of %v asked for, expected 0 to 20", r.Guidance)
	}
	if r.RNG != Philox && r.RNG != Torch {
		fault("rng", "%q is not a generator, expected philox or torch", r.RNG)
	}
	mode := prompt.Friendly
	switch r.PromptMode {
	case Friendly:
	case Reference:
		mode = prompt.Reference
	default:
		fault("prompt_mode", "%q is not a mode, expected friendly or reference", r.PromptMode)
	}
	if r.Replay != nil {
		e.checkReplay(r, fault)
	}
	caption, lyrics := r.Instructions, r.Lyrics
	if r.Instrumental {
		if prompt.Blank(lyrics) {
			caption, lyrics = prompt.Instrumental(caption, float64(r.MaxFrames)/e.info.FrameRate)
		}
		warnings = append(warnings, "instrumental is best effort: the model has no switch for it and may still sing")
	}
	p, err = prompt.Build(e.tokenizer, caption, lyrics, mode, prompt.Config{
		CFGID: int32(e.model.Config.LanguageModel.AudioCFGID), MaxTokens: maxPromptTokens,
	})
	faults = append(faults, fieldErrors(err)...)
	warnings = append(warnings, p.Warnings...)
	if tokens := len(p.IDs); err == nil && r.MaxFrames > 0 && tokens+r.MaxFrames+1 > e.info.MaxPositions {
		fault("max_frames", "%d prompt tokens + %d frames + 1 need %d positions, the model has %d: shorten the lyrics or the song",
			tokens, r.MaxFrames, tokens+r.MaxFrames+1, e.info.MaxPositions)
	}
	return p, warnings, errors.Join(faults...)
}

// checkReplay checks recorded codes against the model and bounds the song by them.
func (e *Engine) checkReplay(r *Request, fault func(field, format string, args ...any)) {
	lm, depth := e.model.Config.LanguageModel, e.model.Config.DepthDecoder
	codes := r.Replay.Codes
	if len(codes) < 2 {
		fault("replay", "%d iterations of codes, expected at least 2: the first only primes", len(codes))
		return
	}
	for i, row := range codes {
		if len(row) != depth.Codebooks {
			fault("replay", "iteration %d has %d codes, expected %d", i, len(row), depth.Codebooks)
			return
		}
		for j, c := range row {
			size := depth.AudioVocabSize
			if j == 0 {
				size = lm.AudioCodebookSize
			}
			if c < 0 || int(c) >= size {
				fault("replay", "code %d of iteration %d is %d, expected 0 to %d", j, i, c, size-1)
				return
			}
		}
	}
	frames := len(codes) - 1
	if r.Replay.EndedByToken {
		frames++ // the end token comes before the bound
	}
	r.MaxFrames = min(r.MaxFrames, frames)
	for k, w := range music3.Windows(e.model.Config.ConditionEncoder, len(codes)-1) {
		if k < len(r.Replay.Noise) && r.Replay.Noise[k] != nil {
			if n := w.Latents * e.model.Config.Transformer.InChannels; len(r.Replay.Noise[k]) != n {
				fault("replay", "the noise of window %d has %d values, expected %d", k, len(r.Replay.Noise[k]), n)
			}
		}
	}
}

// fieldErrors turns the prompt's faults into the request's.
func fieldErrors(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, x := range joined.Unwrap() {
			out = append(out, fieldErrors(x)...)
		}
		return out
	}
	var f *prompt.FieldError
	if errors.As(err, &f) {
		return []error{&RequestError{Field: f.Field, Message: f.Message}}
	}
	return []error{err}
}
