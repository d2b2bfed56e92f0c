package request

import (
	"fmt"
	"slices"
	"strings"

	"skald/host/music3/prompt"
)

// kind is the JSON type a field takes.
type kind int

const (
	text kind = iota
	number
	integer
	boolean
)

func (k kind) String() string {
	return [...]string{"a string", "a number", "a whole number", "true or false"}[k]
}

// value is a decoded member; only the part of the field's kind is set, so that two
// values can be compared.
type value struct {
	text    string
	number  float64
	integer uint64
	flag    bool
}

// fault is what a check finds: the rest of a Problem is known to the caller. The
// message continues "NAME ".
type fault struct {
	code       Code
	message    string
	suggestion string
}

// field is one row of the request contract.
type field struct {
	name    string
	aliases []string
	kind    kind
	// check judges a value of the right kind; nil takes every value.
	check func(r *Rules, v value) *fault
	// engine is the field's name in an engine.RequestError, when it differs.
	engine string
	// object says why an object is refused, where other servers take one.
	object string
}

// fields is the contract, in the order of its documentation.
var fields = []field{
	{name: "model", kind: text, check: checkModel},
	{name: "input", aliases: []string{"lyrics"}, kind: text, engine: "lyrics"},
	{name: "instructions", aliases: []string{"description", "prompt", "caption"}, kind: text, check: checkNotBlank},
	{name: "audio_duration", aliases: []string{"duration", "duration_seconds"}, kind: number, check: checkDuration, engine: "max_frames"},
	{name: "max_new_tokens", kind: integer, check: checkFrames},
	{name: "seed", kind: integer},
	{name: "num_inference_steps", aliases: []string{"steps"}, kind: integer, check: checkSteps, engine: "steps"},
	{name: "guidance_scale", kind: number, check: checkGuidance, engine: "guidance"},
	{name: "response_format", kind: text, check: oneOf([]string{string(WAV), string(PCM)}, []string{"flac", "mp3", "opus"})},
	{name: "sample_rate", kind: integer, check: checkSampleRate},
	{name: "stream", kind: boolean},
	{name: "stream_format", kind: text, check: oneOf([]string{"audio", "sse"}, nil)},
	{name: "instrumental", kind: boolean},
	{name: "prompt_mode", kind: text, check: oneOf([]string{"friendly", "reference"}, nil)},
	{name: "voice", kind: text, check: checkVoice,
		object: "custom voices do not exist here; describe the voice in instructions"},
	{name: "speed", kind: number, check: checkSpeed},
}

// refused gives the reason why a field of other servers means nothing here.
var refused = map[string]string{
	"temperature":                "the model's sampling has no temperature",
	"top_p":                      "the model's sampling has no top-p",
	"top_k":                      "the model was trained for its fixed top-50 sampling",
	"repetition_penalty":         "the model's sampling has no repetition penalty",
	"language":                   "the model sings in the language of the lyrics",
	"ref_audio":                  "the model takes no reference audio; describe the voice in instructions",
	"ref_text":                   "the model takes no reference audio, so it has no transcript either",
	"task_type":                  "the model has one task, music",
	"token_count":                "the length is set by audio_duration or max_new_tokens",
	"duration_tokens":            "the length is set by audio_duration or max_new_tokens",
	"x_vector_only_mode":         "the model takes no reference audio to make a speaker vector of",
	"initial_codec_chunk_frames": "the windows of the model have a fixed length",
}

// stockVoices are the voices that OpenAI's clients may name, and "" and default. A
// gateway always sends one, so they are accepted, in upper or lower case, and have no
// effect.
var stockVoices = []string{
	"", "default", "alloy", "ash", "ballad", "cedar", "coral", "echo", "fable", "marin",
	"nova", "onyx", "sage", "shimmer", "verse",
}

// fieldNames lists every accepted name, for suggestions.
var fieldNames = func() (names []string) {
	for _, f := range fields {
		names = append(append(names, f.name), f.aliases...)
	}
	return names
}()

// lookup finds the field of a member name.
func lookup(name string) (*field, bool) {
	for i := range fields {
		if f := &fields[i]; f.name == name || slices.Contains(f.aliases, name) {
			return f, true
		}
	}
	return nil, false
}

func checkModel(r *Rules, v value) *fault {
	names := r.Names()
	if slices.Contains(names, v.text) {
		return nil
	}
	return &fault{
		code:       ModelNotFound,
		message:    fmt.Sprintf("%s does not exist here; the served model is %q", quote(v.text), r.Info.Name),
		suggestion: nearest(v.text, names),
	}
}

func checkNotBlank(_ *Rules, v value) *fault {
	if !prompt.Blank(v.text) {
		return nil
	}
	return &fault{code: InvalidValue, message: "is blank; describe the style, the voice and the instruments"}
}

func checkDuration(r *Rules, v value) *fault {
	lo, hi := 1/r.Info.FrameRate, float64(r.Info.MaxFrames)/r.Info.FrameRate
	if v.number >= lo && v.number <= hi && r.frames(v.number) > 0 {
		return nil
	}
	return &fault{code: OutOfRange, message: fmt.Sprintf("must be from %g to %g seconds", lo, hi)}
}

func checkFrames(r *Rules, v value) *fault { return integerIn(v.integer, 1, uint64(r.Info.MaxFrames)) }

func checkSteps(_ *Rules, v value) *fault { return integerIn(v.integer, 1, maxSteps) }

func checkGuidance(_ *Rules, v value) *fault {
	if v.number >= 0 && v.number <= maxGuidance {
		return nil
	}
	return &fault{code: OutOfRange, message: fmt.Sprintf("must be a number from 0 to %d", maxGuidance)}
}

func checkSampleRate(_ *Rules, v value) *fault {
	return integerIn(v.integer, minSampleRate, maxSampleRate)
}

func checkVoice(_ *Rules, v value) *fault {
	lower := strings.ToLower(v.text)
	if slices.Contains(stockVoices, lower) {
		return nil
	}
	return &fault{
		code:       InvalidValue,
		message:    fmt.Sprintf("%s does not exist: the model has no named voices, and the stock names (default, alloy, ...) have no effect; describe the voice in instructions", quote(v.text)),
		suggestion: nearest(lower, stockVoices[1:]),
	}
}

func checkSpeed(_ *Rules, v value) *fault {
	if v.number == 1 {
		return nil
	}
	return &fault{code: UnsupportedValue, message: "must be 1: the model's tempo is set in instructions"}
}

func integerIn(n, lo, hi uint64) *fault {
	if n >= lo && n <= hi {
		return nil
	}
	return &fault{code: OutOfRange, message: fmt.Sprintf("must be a whole number from %d to %d", lo, hi)}
}

// oneOf checks a string that has a fixed set of values; later are the values of the
// contract that this version cannot serve.
func oneOf(available, later []string) func(*Rules, value) *fault {
	return func(_ *Rules, v value) *fault {
		if slices.Contains(available, v.text) {
			return nil
		}
		list := strings.Join(available, ", ")
		if slices.Contains(later, v.text) {
			return &fault{code: UnsupportedValue, message: fmt.Sprintf("%q is not available in this version; available: %s", v.text, list)}
		}
		return &fault{
			code:       InvalidValue,
			message:    fmt.Sprintf("must be one of %s; got %s", list, quote(v.text)),
			suggestion: nearest(v.text, available),
		}
	}
}
