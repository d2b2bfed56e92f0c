package request

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"skald/host/audio"
	"skald/host/engine"
	"skald/server/request/nearest"
)

func TestAccepted(t *testing.T) {
	set := func(change func(*Speech)) Speech {
		s := Speech{Song: testRules().Defaults, Container: audio.WAV, SampleRate: 44100}
		s.Song.Lyrics, s.Song.Instructions = "[verse]\nla", "folk"
		if change != nil {
			change(&s)
		}
		return s
	}
	tests := []struct {
		members string
		want    Speech
	}{
		{"", set(nil)},
		{`"seed":null,"temperature":null,"voice":null,`, set(nil)},
		{`"model":"song-model","voice":"alloy","speed":1.0,"stream":false,"stream_format":"audio","response_format":"wav",`, set(nil)},
		{`"model":"tts-1","voice":"","speed":1e0,`, set(nil)},
		{`"model":"house-model","voice":"Default","sample_rate":44100,`, set(nil)},
		{`"voice":"CORAL","lyrics":"[verse]\n\u006ca","prompt":"folk","description":"folk",`, set(nil)},
		{`"sample_rate":8000,`, set(func(s *Speech) { s.SampleRate = 8000 })},
		{`"sample_rate":96e3,`, set(func(s *Speech) { s.SampleRate = 96000 })},
		{`"stream":true,`, set(func(s *Speech) { s.Stream = true })},
		{`"stream":true,"stream_format":"audio",`, set(func(s *Speech) { s.Stream = true })},
		{`"stream":true,"stream_format":"sse",`, set(func(s *Speech) { s.Stream, s.Events = true, true })},
		{`"stream":null,"stream_format":"sse",`, set(func(s *Speech) { s.Stream, s.Events = true, true })},
		{`"response_format":"opus",`, set(func(s *Speech) { s.Container, s.SampleRate = audio.Opus, 48000 })},
		{`"response_format":"opus","sample_rate":48000,`, set(func(s *Speech) { s.Container, s.SampleRate = audio.Opus, 48000 })},
		{`"response_format":"mp3","sample_rate":22050,`, set(func(s *Speech) { s.Container, s.SampleRate = audio.MP3, 22050 })},
		{`"response_format":"flac","sample_rate":44101,`, set(func(s *Speech) { s.Container, s.SampleRate = audio.FLAC, 44101 })},
		{`"response_format":"pcm",`, set(func(s *Speech) { s.Container = audio.PCM })},
		{`"seed":18446744073709551615,`, set(func(s *Speech) { s.Song.Seed = 1<<64 - 1 })},
		{`"seed":9007199254740993,`, set(func(s *Speech) { s.Song.Seed = 1<<53 + 1 })},
		{`"seed":-0,`, set(nil)},
		{`"seed":1e3,`, set(func(s *Speech) { s.Song.Seed = 1000 })},
		{`"steps":30.0,"num_inference_steps":3e1,`, set(nil)},
		{`"steps":200,`, set(func(s *Speech) { s.Song.Steps = 200 })},
		{`"guidance_scale":0,`, set(func(s *Speech) { s.Song.Guidance = 0 })},
		{`"guidance_scale":20,`, set(func(s *Speech) { s.Song.Guidance = 20 })},
		{`"prompt_mode":"reference",`, set(func(s *Speech) { s.Song.PromptMode = engine.Reference })},
		{`"instrumental":true,`, set(func(s *Speech) { s.Song.Instrumental = true })},
		{`"audio_duration":0.04,`, set(func(s *Speech) { s.Song.MaxFrames = 1 })},
		{`"audio_duration":0.1,`, set(func(s *Speech) { s.Song.MaxFrames = 2 })},
		{`"duration":360,`, set(func(s *Speech) { s.Song.MaxFrames = 9000 })},
		{`"max_new_tokens":9000,`, set(func(s *Speech) { s.Song.MaxFrames = 9000 })},
		{`"duration":2.01,"max_new_tokens":50,`, set(func(s *Speech) { s.Song.MaxFrames = 50 })},
		// 4.6 * 25 is 114.99999999999999: the reference makes 114 frames.
		{`"duration":4.6,`, set(func(s *Speech) { s.Song.MaxFrames = 114 })},
		{`"duration":4.6,"max_new_tokens":115,`, set(func(s *Speech) { s.Song.MaxFrames = 115 })},
		{`"duration":4.6,"max_new_tokens":114,`, set(func(s *Speech) { s.Song.MaxFrames = 114 })},
	}
	for _, tt := range tests {
		got, problems := Parse([]byte(body(tt.members)), testRules())
		if len(problems) > 0 {
			t.Errorf("%s: %+v", tt.members, problems)
			continue
		}
		got.given = nil
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", tt.members, got, tt.want)
		}
	}
	t.Logf("%d bodies", len(tests))
}

func TestInstrumentalNeedsNoInput(t *testing.T) {
	for _, b := range []string{
		`{"instrumental":true,"prompt":"folk"}`,
		`{"instrumental":true,"prompt":"folk","input":null}`,
		`{"instrumental":true,"prompt":"folk","lyrics":" \n"}`,
	} {
		s, problems := Parse([]byte(b), testRules())
		if len(problems) > 0 || !s.Song.Instrumental {
			t.Errorf("%s: %+v, %+v", b, s, problems)
		}
	}
}

func TestDefaultInstructions(t *testing.T) {
	rules := testRules()
	rules.Defaults.Instructions = "house style"
	s, problems := Parse([]byte(`{"input":"la"}`), rules)
	if len(problems) > 0 || s.Song.Instructions != "house style" {
		t.Errorf("got %q and problems %+v", s.Song.Instructions, problems)
	}
	// A default does not excuse what the caller did say.
	b := `{"input":"la","caption":""}`
	_, problems = Parse([]byte(b), rules)
	compare(t, b, problems, []want{{"/caption", InvalidValue, "blank"}})
}

// What the model refuses is reported under the names the caller used.
func TestModelCheck(t *testing.T) {
	rules := testRules()
	var seen engine.Request
	rules.Check = func(r engine.Request) ([]string, error) {
		seen = r
		return nil, errors.Join(
			&engine.RequestError{Field: "lyrics", Message: "5001 tokens"},
			errors.Join(&engine.RequestError{Field: "max_frames", Message: "10241 positions"}),
			&engine.RequestError{Field: "unheard_of", Message: "something"},
			errors.New("plain"),
		)
	}
	tests := []struct {
		body  string
		wants []want
	}{
		{`{"lyrics":"la","caption":"folk"}`, []want{
			{"/lyrics", InvalidValue, "5001 tokens"},
			{"/audio_duration", InvalidValue, "10241 positions"},
			{"", InvalidValue, "something"},
			{"", InvalidValue, "plain"},
		}},
		{`{"input":"la","caption":"folk","max_new_tokens":9000}`, []want{
			{"/input", InvalidValue, "5001 tokens"},
			{"/max_new_tokens", InvalidValue, "10241 positions"},
			{"", InvalidValue, "something"},
			{"", InvalidValue, "plain"},
		}},
		// The model was asked with defaults in place of what is wrong.
		{`{"input":1,"caption":"folk","duration":-1,"seed":3}`, []want{
			{"/input", InvalidType, "string"},
			{"/duration", OutOfRange, "360"},
			{"", InvalidValue, "something"},
			{"", InvalidValue, "plain"},
		}},
	}
	for _, tt := range tests {
		_, problems := Parse([]byte(tt.body), rules)
		compare(t, tt.body, problems, tt.wants)
	}
	if seen.Seed != 3 || seen.MaxFrames != 1500 || seen.Lyrics != "" {
		t.Errorf("the model was asked about %+v", seen)
	}
}

func TestParseInteger(t *testing.T) {
	tests := []struct {
		literal string
		want    uint64
		err     error
	}{
		{"0", 0, nil}, {"-0", 0, nil}, {"-0.0e5", 0, nil}, {"0e999999999999999999999", 0, nil},
		{"1", 1, nil}, {"1.0", 1, nil}, {"10e-1", 1, nil}, {"0.001e3", 1, nil}, {"0.5e1", 5, nil},
		{"1e3", 1000, nil}, {"1E+3", 1000, nil}, {"1200", 1200, nil}, {"0.00012e7", 1200, nil},
		{"18446744073709551615", 1<<64 - 1, nil},
		{"18446744073709551615.000", 1<<64 - 1, nil},
		{"1844674407370955161.5e1", 1<<64 - 1, nil},
		{"18446744073709551616", 0, errRange}, {"1e20", 0, errRange}, {"1e19", 1e19, nil},
		{"1e999", 0, errRange}, {"1e999999999999999999999", 0, errRange},
		{"-1", 0, errRange}, {"-1e999", 0, errRange},
		{"0.5", 0, errFraction}, {"-1.5", 0, errFraction}, {"1e-1", 0, errFraction},
		{"1e-999999999999999999999", 0, errFraction}, {"1.00000000000000000000000001", 0, errFraction},
	}
	for _, tt := range tests {
		got, err := parseInteger(tt.literal)
		if got != tt.want || err != tt.err {
			t.Errorf("%s: got %d, %v; want %d, %v", tt.literal, got, err, tt.want, tt.err)
		}
	}
	for _, n := range []uint64{0, 1, 9, 10, 1 << 32, 1<<53 + 1, 1<<64 - 10, 1<<64 - 1} {
		if got, err := parseInteger(strconv.FormatUint(n, 10)); got != n || err != nil {
			t.Errorf("%d: got %d, %v", n, got, err)
		}
	}
	t.Logf("%d literals", len(tests))
}

func TestParseNumber(t *testing.T) {
	if f, err := parseNumber("-0.0"); err != nil || 1/f < 0 {
		t.Errorf("-0.0 keeps its sign: %g, %v", 1/f, err)
	}
	if _, err := parseNumber("1e999"); err != errRange {
		t.Errorf("1e999: %v", err)
	}
}

func TestNearest(t *testing.T) {
	tests := map[string]string{
		"audio_duration_s": "audio_duration", "duration_s": "duration", "audioDuration": "audio_duration",
		"stream_mode": "", strings.Repeat("_", 40) + "seed": "",
		"lyric": "lyrics", "Prompt": "prompt", "guidance": "guidance_scale", "sede": "seed", "cfg": "", "x": "", "": "", "format": "",
		"responce_format": "response_format", "guidance-scale": "guidance_scale", "sampling_rate": "sample_rate",
	}
	for name, want := range tests {
		if got := nearest.Name(name, (&Rules{}).fieldNames()); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	t.Logf("%d names", len(tests))
}
