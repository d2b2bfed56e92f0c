package request

import (
	"slices"

	"skald/host/engine"
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
	about   string // for the documentation
	// bounds of a number, both of them included, and its unit; nil: those of its kind.
	bounds func(r *Rules) (lo, hi float64)
	unit   string
	// values of a text that has a fixed set of them.
	values func(r *Rules) []string
	// pattern of a text, for the documentation.
	pattern string
	// check judges a value before the bounds do, and instead of values.
	check func(r *Rules, v value) *fault
	// fallback is what an absent field means, for the documentation; nil: see about.
	fallback func(r *Rules) any
	// engine is the field's name in an engine.RequestError, when it differs.
	engine string
	// object says why an object is refused, where other servers take one.
	object string
	// jobs says that only a job has the field.
	jobs bool
}

// notBlank is the pattern of a text that says something.
const notBlank = `\S`

// fields is the contract, in the order of its documentation.
var fields = []field{
	{name: "model", kind: text, values: (*Rules).Names, check: checkModel,
		about:    "Name or alias of the model.",
		fallback: func(r *Rules) any { return r.Info.Name }},
	{name: "input", aliases: []string{"lyrics"}, kind: text, engine: "lyrics",
		about: "The lyrics, with section tags such as [verse] and [chorus] on lines of their own. May be blank or absent when instrumental is true."},
	{name: "instructions", aliases: []string{"description", "prompt", "caption"}, kind: text, pattern: notBlank, check: checkNotBlank,
		about: "Style, voice and instruments. Required unless the server has a default."},
	{name: "audio_duration", aliases: []string{"duration", "duration_seconds"}, kind: number, engine: "max_frames", unit: " seconds",
		bounds: func(r *Rules) (lo, hi float64) {
			return 1 / r.Info.FrameRate, float64(r.Info.MaxFrames) / r.Info.FrameRate
		},
		about:    "Length in seconds at most; the model may end the song earlier.",
		fallback: func(r *Rules) any { return float64(r.Defaults.MaxFrames) / r.Info.FrameRate }},
	{name: "max_new_tokens", kind: integer,
		bounds: func(r *Rules) (lo, hi float64) { return 1, float64(r.Info.MaxFrames) },
		about:  "The same bound as audio_duration, in frames."},
	{name: "seed", kind: integer,
		about:    "Another number gives another song, the same one the same song.",
		fallback: func(r *Rules) any { return r.Defaults.Seed }},
	{name: "num_inference_steps", aliases: []string{"steps"}, kind: integer, engine: "steps",
		bounds:   func(*Rules) (lo, hi float64) { return 1, maxSteps },
		about:    "Steps of the flow transformer: more take longer and may sound better.",
		fallback: func(r *Rules) any { return r.Defaults.Steps }},
	{name: "guidance_scale", kind: number, engine: "guidance",
		bounds:   func(*Rules) (lo, hi float64) { return 0, maxGuidance },
		about:    "How closely the flow transformer follows what was sung.",
		fallback: func(r *Rules) any { return r.Defaults.Guidance }},
	{name: "response_format", kind: text, values: fixed(Formats()...),
		about:    "Encoding of the audio.",
		fallback: func(*Rules) any { return Formats()[0] }},
	{name: "sample_rate", kind: integer, unit: " Hz",
		bounds:   func(*Rules) (lo, hi float64) { return MinSampleRate, MaxSampleRate },
		about:    "Sample rate of the audio in Hz. Opus has 48000 alone, and mp3 the nine rates of MPEG audio up to 48000.",
		fallback: func(r *Rules) any { return r.Info.SampleRate }},
	{name: "stream", kind: boolean,
		about:    "Send audio while it is made.",
		fallback: func(*Rules) any { return false }},
	{name: "stream_format", kind: text, values: fixed("audio", "sse"),
		about:    "How a stream is sent: as bare audio, or as server-sent events, which need not be asked for by stream too.",
		fallback: func(*Rules) any { return "audio" }},
	{name: "instrumental", kind: boolean,
		about:    "A song without words, as well as the model can.",
		fallback: func(*Rules) any { return false }},
	{name: "prompt_mode", kind: text, values: fixed(string(engine.Friendly), string(engine.Reference)),
		about:    "What becomes of text beside a section tag: friendly moves it to the next line, reference drops it as the reference pipeline does.",
		fallback: func(r *Rules) any { return r.Defaults.PromptMode }},
	{name: "voice", kind: text, values: fixed(stockVoices...), check: checkVoice,
		about:  "No effect: there for clients that always send one. Upper or lower case does not matter.",
		object: "custom voices do not exist here; describe the voice in instructions"},
	{name: "source_job", kind: text, jobs: true, check: checkSource,
		about: "Id of a finished job whose codes are rendered again, with another num_inference_steps, guidance_scale or seed; its lyrics, instructions and length are taken over and cannot be sent too."},
	{name: "speed", kind: number, check: checkSpeed,
		bounds:   func(*Rules) (lo, hi float64) { return 1, 1 },
		about:    "1, and nothing else: the tempo is set in instructions.",
		fallback: func(*Rules) any { return 1 }},
}

func fixed(values ...string) func(*Rules) []string {
	return func(*Rules) []string { return values }
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
func (r *Rules) fieldNames() (names []string) {
	for _, f := range fields {
		if !f.jobs || r.Source != nil {
			names = append(append(names, f.name), f.aliases...)
		}
	}
	return names
}

// lookup finds the field of a member name.
func lookup(name string) (*field, bool) {
	for i := range fields {
		if f := &fields[i]; f.name == name || slices.Contains(f.aliases, name) {
			return f, true
		}
	}
	return nil, false
}
