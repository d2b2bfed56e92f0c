package request

import (
	"skald/host/audio"
	"skald/host/engine"
)

// Understood is a request with every default filled in: what a job was asked for, as its
// caller reads it and as it is kept until it is sung.
type Understood struct {
	Model         string  `json:"model"`
	SourceJob     string  `json:"source_job,omitempty"`
	Input         string  `json:"input"`
	Instructions  string  `json:"instructions"`
	AudioDuration float64 `json:"audio_duration"` // of MaxNewTokens
	MaxNewTokens  int     `json:"max_new_tokens"`
	Seed          uint64  `json:"seed"`
	Steps         int     `json:"num_inference_steps"`
	Guidance      float64 `json:"guidance_scale"`
	Format        string  `json:"response_format"`
	SampleRate    int     `json:"sample_rate"`
	Instrumental  bool    `json:"instrumental"`
	PromptMode    string  `json:"prompt_mode"`
}

// Understood tells what a request to the model of the rules says.
func (s Speech) Understood(r *Rules) Understood {
	song := s.Song
	return Understood{
		Model: r.Info.Name, SourceJob: s.SourceJob, Input: song.Lyrics, Instructions: song.Instructions,
		AudioDuration: float64(song.MaxFrames) / r.Info.FrameRate, MaxNewTokens: song.MaxFrames,
		Seed: song.Seed, Steps: song.Steps, Guidance: song.Guidance,
		Format: s.Container.String(), SampleRate: s.SampleRate,
		Instrumental: song.Instrumental, PromptMode: string(song.PromptMode),
	}
}

// Song is the request to the engine.
func (u Understood) Song() engine.Request {
	return engine.Request{
		Lyrics: u.Input, Instructions: u.Instructions, PromptMode: engine.PromptMode(u.PromptMode),
		Instrumental: u.Instrumental, MaxFrames: u.MaxNewTokens, Seed: u.Seed,
		Steps: u.Steps, Guidance: u.Guidance, RNG: engine.Philox,
	}
}

// Container is the encoding asked for.
func (u Understood) Container() audio.Container {
	c, err := audio.ParseContainer(u.Format)
	if err != nil {
		return audio.WAV // of a record that another version wrote
	}
	return c
}
