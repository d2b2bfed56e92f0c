package server

import (
	"net/http"
	"time"

	"skald/host/music3/prompt"
	"skald/server/request"
)

// promptReply tells what a request would come to.
type promptReply struct {
	PromptTokens     int      `json:"prompt_tokens"`
	MaxPromptTokens  int      `json:"max_prompt_tokens"`
	AudioDuration    float64  `json:"audio_duration"`     // seconds asked for
	MaxAudioDuration float64  `json:"max_audio_duration"` // seconds that fit beside this prompt
	Warnings         []string `json:"warnings"`           // that the song would carry
	// Estimate is how long the lyrics take to sing, by a rule of thumb; absent when
	// they are the server's to make.
	Estimate *lengthEstimate `json:"estimate,omitempty"`
}

// lengthEstimate is in seconds.
type lengthEstimate struct {
	Shortest float64 `json:"shortest"`
	Longest  float64 `json:"longest"`
}

// prompt is POST /v1/music/prompt: the verdict on a request, and its size.
func (s *Server) prompt(w http.ResponseWriter, r *http.Request) {
	m, refusal := s.ready()
	if refusal != nil {
		s.writeError(w, refusal)
		return
	}
	body, refusal := s.readBody(w, r)
	if refusal != nil {
		s.writeError(w, refusal)
		return
	}
	speech, problems := request.Parse(body, s.rules(m))
	if len(problems) > 0 {
		s.writeError(w, errProblems(problems))
		return
	}
	song, info := speech.Song, m.Info()
	tokens, err := m.PromptTokens(song)
	if err != nil {
		s.writeError(w, errSong(speech, err))
		return
	}
	reply := promptReply{
		PromptTokens: tokens, MaxPromptTokens: info.MaxPromptTokens,
		AudioDuration:    float64(song.MaxFrames) / info.FrameRate,
		MaxAudioDuration: float64(min(info.MaxFrames, info.MaxPositions-tokens-1)) / info.FrameRate,
		Warnings:         append([]string{}, speech.Warnings...),
	}
	if !prompt.Blank(song.Lyrics) {
		shortest, longest := prompt.Estimate(song.Lyrics)
		reply.Estimate = &lengthEstimate{tenths(shortest), tenths(longest)}
	}
	writeJSON(w, http.StatusOK, reply)
}

// tenths is a duration in seconds, no more exact than it is meant.
func tenths(d time.Duration) float64 {
	return d.Round(100 * time.Millisecond).Seconds()
}
