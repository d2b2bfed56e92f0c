package server

import (
	"fmt"
	"net/http"
	"slices"

	"skald/host/engine"
	"skald/server/request"
)

// modelObject is OpenAI's model object and what a client of songs wants to know.
type modelObject struct {
	ID      string `json:"id"`
	Object  string `json:"object"`  // model
	Created int64  `json:"created"` // when it was loaded, Unix seconds
	OwnedBy string `json:"owned_by"`

	Task       string        `json:"task"` // music
	Aliases    []string      `json:"aliases"`
	Title      string        `json:"title,omitempty"`
	Notice     string        `json:"notice,omitempty"`
	BuiltIn    bool          `json:"built_in"` // the demonstration model
	Device     string        `json:"device"`
	Precision  string        `json:"precision"`
	SampleRate int           `json:"sample_rate"` // Hz
	Channels   int           `json:"channels"`
	FrameRate  float64       `json:"frame_rate"` // max_new_tokens a second
	Formats    []string      `json:"response_formats"`
	Limits     modelLimits   `json:"limits"`
	Defaults   modelDefaults `json:"defaults"`
	Warnings   []string      `json:"warnings,omitempty"` // of loading
}

type modelLimits struct {
	MinAudioDuration float64 `json:"min_audio_duration"` // seconds
	MaxAudioDuration float64 `json:"max_audio_duration"` // seconds
	MaxNewTokens     int     `json:"max_new_tokens"`
	MaxPromptTokens  int     `json:"max_prompt_tokens"`
	MaxPositions     int     `json:"max_positions"` // prompt tokens + new tokens + 1
	MaxBodyBytes     int     `json:"max_body_bytes"`
}

type modelDefaults struct {
	AudioDuration float64 `json:"audio_duration"` // seconds
	Instructions  string  `json:"instructions,omitempty"`
	Seed          uint64  `json:"seed"`
	Steps         int     `json:"num_inference_steps"`
	Guidance      float64 `json:"guidance_scale"`
	PromptMode    string  `json:"prompt_mode"`
}

type modelList struct {
	Object string        `json:"object"` // list
	Data   []modelObject `json:"data"`
}

// rules are what a request to the model is judged by.
func (s *Server) rules(m singer) request.Rules {
	r := request.Rules{Info: m.Info(), Aliases: s.config.Aliases, Defaults: m.Defaults(), Check: m.Check}
	if s.config.Instructions != "" {
		r.Defaults.Instructions = s.config.Instructions
	}
	return r
}

func (s *Server) describe(m singer) modelObject {
	s.mu.Lock()
	loadedAt := s.loadedAt
	s.mu.Unlock()
	rules := s.rules(m)
	info, defaults := rules.Info, rules.Defaults
	return modelObject{
		ID: info.Name, Object: "model", Created: loadedAt.Unix(), OwnedBy: "skald",
		Task: "music", Aliases: rules.Names()[1:],
		Title: info.Title, Notice: info.Notice, BuiltIn: info.BuiltIn,
		Device: info.Device, Precision: info.Precision,
		SampleRate: info.SampleRate, Channels: len(engine.Song{}.Samples), FrameRate: info.FrameRate,
		Formats: request.Formats(),
		Limits: modelLimits{
			MinAudioDuration: 1 / info.FrameRate,
			MaxAudioDuration: float64(info.MaxFrames) / info.FrameRate,
			MaxNewTokens:     info.MaxFrames,
			MaxPromptTokens:  info.MaxPromptTokens,
			MaxPositions:     info.MaxPositions,
			MaxBodyBytes:     maxBodyBytes,
		},
		Defaults: modelDefaults{
			AudioDuration: float64(defaults.MaxFrames) / info.FrameRate,
			Instructions:  defaults.Instructions,
			Seed:          defaults.Seed,
			Steps:         defaults.Steps,
			Guidance:      defaults.Guidance,
			PromptMode:    string(defaults.PromptMode),
		},
		Warnings: info.Warnings,
	}
}

// models lists the one model there is.
func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	m, refusal := s.ready()
	if refusal != nil {
		s.writeError(w, refusal)
		return
	}
	writeJSON(w, http.StatusOK, modelList{"list", []modelObject{s.describe(m)}})
}

// model describes the model of a name or an alias.
func (s *Server) model(w http.ResponseWriter, _ *http.Request, id string) {
	m, refusal := s.ready()
	if refusal != nil {
		s.writeError(w, refusal)
		return
	}
	rules := s.rules(m)
	if !slices.Contains(rules.Names(), id) {
		s.writeError(w, newError(http.StatusNotFound, badRequest, string(request.ModelNotFound),
			fmt.Sprintf("model %q does not exist here; the served model is %q", limit(id), rules.Info.Name)))
		return
	}
	writeJSON(w, http.StatusOK, s.describe(m))
}
