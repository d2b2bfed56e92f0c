package request

import (
	"errors"
	"fmt"
	"math"

	"skald/host/audio"
	"skald/host/audio/opus"
	"skald/host/engine"
	"skald/host/music3/prompt"
)

// frames is the reference's rule for the length of a song: the whole frames that fit,
// in float64, and no more than the model can make. The shortest duration that is allowed
// is one frame, also where it is less by rounding.
func (r *Rules) frames(seconds float64) int {
	return int(min(max(seconds*r.Info.FrameRate, 1), float64(r.Info.MaxFrames)))
}

// speech puts the fields together. What one field says about another is checked here,
// and only where the fields themselves have no problem.
func (p *parser) speech() Speech {
	s := Speech{Song: p.rules.Defaults, SourceJob: p.sourceJob, given: p.given}
	song := &s.Song

	if p.sourceJob == "" {
		p.words(song)
		p.length(song)
	}
	if v, ok := p.given["seed"]; ok {
		song.Seed = v.value.integer
	}
	if v, ok := p.given["num_inference_steps"]; ok {
		song.Steps = int(v.value.integer)
	}
	if v, ok := p.given["guidance_scale"]; ok {
		song.Guidance = v.value.number
	}
	if v, ok := p.given["prompt_mode"]; ok {
		song.PromptMode = engine.PromptMode(v.value.text)
	}
	p.sound(&s)
	p.delivery(&s)
	p.checkSong(&s)
	return s
}

// sound takes the two fields that say what the audio is.
func (p *parser) sound(s *Speech) {
	s.Container = audio.WAV
	format, named := p.given["response_format"]
	if named {
		s.Container, _ = audio.ParseContainer(format.value.text) // one of Formats
	}
	s.SampleRate = p.rules.Info.SampleRate
	if s.Container == audio.Opus {
		s.SampleRate = opus.SampleRate
	}
	rate, rated := p.given["sample_rate"]
	if rated {
		s.SampleRate = int(rate.value.integer)
	}
	if p.bad["response_format"] || p.bad["sample_rate"] {
		return
	}
	if err := s.Container.CheckSampleRate(s.SampleRate); err != nil {
		name := "sample_rate"
		if rated {
			name = rate.name
		}
		p.report(name, &fault{code: UnsupportedValue, message: "does not fit the response_format: " + err.Error()})
	}
}

// delivery takes the two fields that say how audio is sent. OpenAI's clients ask for
// events by stream_format alone.
func (p *parser) delivery(s *Speech) {
	stream, told := p.given["stream"]
	format, ok := p.given["stream_format"]
	s.Events = ok && format.value.text == "sse"
	s.Stream = s.Events || stream.value.flag
	if s.Stream && p.rules.Source != nil {
		name := stream.name
		if s.Events {
			name = format.name
		}
		p.report(name, &fault{code: UnsupportedValue, message: "means nothing for a job: its audio so far and its events have routes of their own, /audio and /events"})
		return
	}
	if s.Events && told && !stream.value.flag {
		p.report(format.name, &fault{code: ConflictingField, message: "of sse is a stream, but stream is false; send one of them"})
	}
}

// words takes the lyrics and the instructions.
func (p *parser) words(song *engine.Request) {
	instrumental, ok := p.given["instrumental"]
	if ok {
		song.Instrumental = instrumental.value.flag
	}
	input, ok := p.given["input"]
	song.Lyrics = input.value.text
	if prompt.Blank(song.Lyrics) && !song.Instrumental && !p.bad["input"] && !p.bad["instrumental"] {
		const want = "send the lyrics, or instrumental true for a song without"
		if ok {
			p.report(input.name, &fault{code: InvalidValue, message: "is blank; " + want})
		} else {
			p.report("input", &fault{code: MissingField, message: "is required; " + want})
		}
		p.bad["input"] = true
	}

	if v, ok := p.given["instructions"]; ok {
		song.Instructions = v.value.text
	} else if prompt.Blank(song.Instructions) && !p.bad["instructions"] {
		p.bad["instructions"] = true
		p.report("instructions", &fault{code: MissingField,
			message: "is required; describe the style, the voice and the instruments"})
	}
}

// length takes the two fields that bound the song.
func (p *parser) length(song *engine.Request) {
	seconds, bySeconds := p.given["audio_duration"]
	tokens, byTokens := p.given["max_new_tokens"]
	if bySeconds {
		song.MaxFrames = p.rules.frames(seconds.value.number)
	}
	if !byTokens {
		return
	}
	want := int(tokens.value.integer)
	// 4.6 s is 115 frames to people and 114.99999999999999 to a float64.
	near := math.Abs(seconds.value.number*p.rules.Info.FrameRate-float64(want)) < 1e-6
	if bySeconds && song.MaxFrames != want && !near {
		p.bad["max_new_tokens"] = true
		p.report(tokens.name, &fault{code: ConflictingField, message: fmt.Sprintf(
			"of %d and %s of %g s, which is %d tokens, disagree; send one of them",
			want, seconds.name, seconds.value.number, song.MaxFrames)})
		return
	}
	song.MaxFrames = want
}

// checkSong asks the model. A field that has a problem already is not reported again:
// the model saw a default in its place.
func (p *parser) checkSong(s *Speech) {
	if p.rules.Check == nil {
		return
	}
	var err error
	s.Warnings, err = p.rules.Check(s.Song)
	for _, e := range flatten(err) {
		_, f := fieldOf(e)
		if f != nil && (p.bad[f.name] || f.name == "audio_duration" && p.bad["max_new_tokens"]) {
			continue
		}
		p.add(s.problem(e))
	}
}

// Problems tells an error of the engine, where it is of the request, in the names the
// caller used.
func (s Speech) Problems(err error) []Problem {
	var all []Problem
	for _, e := range flatten(err) {
		all = append(all, s.problem(e))
	}
	return all
}

func (s Speech) problem(err error) Problem {
	e, f := fieldOf(err)
	if f == nil {
		return Problem{Code: InvalidValue, Message: err.Error()}
	}
	param := s.calledBy(f)
	return Problem{
		Code: InvalidValue, Message: param + ": " + e.Message,
		Param: param, Pointer: "/" + param,
	}
}

// calledBy is the name by which the caller set a field, or the field's own.
func (s Speech) calledBy(f *field) string {
	if v, ok := s.given[f.name]; ok {
		return v.name
	}
	if v, ok := s.given["max_new_tokens"]; ok && f.name == "audio_duration" {
		return v.name
	}
	return f.name
}

// fieldOf finds what an error of the engine says about the request, and the field it is
// about; nil when there is none.
func fieldOf(err error) (*engine.RequestError, *field) {
	e, ok := errors.AsType[*engine.RequestError](err)
	if !ok {
		return nil, nil
	}
	for i := range fields {
		if f := &fields[i]; f.engine == e.Field || f.engine == "" && f.name == e.Field {
			return e, f
		}
	}
	return e, nil
}

// flatten lists the errors that errors.Join put together.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, flatten(e)...)
	}
	return all
}
