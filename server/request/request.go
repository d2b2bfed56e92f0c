// Package request turns the JSON body of a song request, or the query of a URL that says
// the same, into the engine's request.
//
// It is the whole request contract of /v1/audio/speech and knows nothing of
// HTTP. Nothing a caller says is silently dropped: a field that is not understood,
// not supported or said twice is a problem, and a body's problems are reported all
// at once, each with the JSON pointer of the member it is about.
//
// Whole numbers never pass through a float. A number counts as whole by its value,
// not by its spelling, as it does for the servers this contract is a superset of:
// 30, 30.0 and 3e1 are the same, 30.5 is refused, and -0 is 0. Strings are not
// trimmed and names are case-sensitive, but for the stock voice names.
package request

import (
	"skald/host/audio"
	"skald/host/engine"
)

// Formats lists the values of response_format, the default first.
func Formats() (names []string) {
	for _, c := range audio.Containers() {
		names = append(names, c.String())
	}
	return names
}

// Bounds of fields that do not depend on the model.
const (
	maxSteps      = 200
	maxGuidance   = 20
	MinSampleRate = 8000
	MaxSampleRate = 96000
)

// Rules are what a body is judged by: the loaded model and the operator's choices.
type Rules struct {
	Info     engine.Info    // name and limits
	Aliases  []string       // further served names
	Defaults engine.Request // what an absent field means; Instructions may be empty
	// Check finds what only the model can tell, such as a prompt of too many tokens:
	// Engine.Check.
	Check func(engine.Request) (warnings []string, err error)
	// Source finds the job that source_job names: what it was asked for. Nil: the request
	// is none for a job, and has no such field.
	Source func(id string) (Understood, error)
}

// Speech is a request as understood.
type Speech struct {
	Song       engine.Request
	Container  audio.Container
	SampleRate int      // of the audio, in Hz
	Stream     bool     // audio is sent while it is made
	Events     bool     // of a stream: as server-sent events, not bare
	Warnings   []string // of Rules.Check: the song will carry them
	SourceJob  string   // whose codes are rendered again; "": none
	given      map[string]given
}

// Problem is one thing that is wrong with a body.
type Problem struct {
	// Pointer is the JSON pointer (RFC 6901) of the member, "" for the whole body.
	// A very long member name is cut, which a "…" at the end shows.
	Pointer    string `json:"pointer"`
	Code       Code   `json:"code"`
	Message    string `json:"message"`              // for people, complete without the pointer
	Suggestion string `json:"suggestion,omitempty"` // the name or value probably meant
	Param      string `json:"-"`                    // the member's name
}

// Code classes problems for programs. The names are OpenAI's where it has one.
type Code string

// The codes.
const (
	InvalidJSON      Code = "invalid_json"
	UnknownField     Code = "unknown_parameter"
	UnsupportedField Code = "unsupported_parameter" // known from elsewhere, meaningless here
	UnsupportedValue Code = "unsupported_value"     // of the contract, not available here
	DuplicateField   Code = "duplicate_parameter"
	ConflictingField Code = "conflicting_parameters"
	MissingField     Code = "missing_required_parameter"
	InvalidType      Code = "invalid_type"
	InvalidValue     Code = "invalid_value"
	OutOfRange       Code = "out_of_range"
	ModelNotFound    Code = "model_not_found"
	TooManyProblems  Code = "too_many_problems"
)

// Parse reads a body. The Speech is only valid when there are no problems.
func Parse(body []byte, r Rules) (Speech, []Problem) {
	p := newParser(&r)
	var s Speech
	if p.walk(body) {
		if p.source() {
			s = p.speech()
		}
	}
	return s, p.problems()
}

// Names lists every name the model answers to, its own first.
func (r *Rules) Names() []string {
	return append([]string{r.Info.Name}, r.Aliases...)
}
