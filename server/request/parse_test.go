package request

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"skald/host/engine"
	"skald/host/music3/prompt"
)

// testRules are those of a model of the published frame rate and limits.
func testRules() Rules {
	return Rules{
		Info: engine.Info{
			Name:       "song-model",
			SampleRate: 44100, FrameRate: 25,
			MaxFrames: 9000, MaxPromptTokens: 5000, MaxPositions: 10240,
		},
		Aliases:  []string{"tts-1", "house-model"},
		Defaults: engine.Request{MaxFrames: 1500, Steps: 30, Guidance: 1.7, PromptMode: engine.Friendly, RNG: engine.Philox},
	}
}

// body makes a valid body with more members put in front.
func body(members string) string {
	return `{` + members + `"input":"[verse]\nla","instructions":"folk"}`
}

// member sets one field in a body that is valid otherwise.
func member(name, literal string) string {
	m := fmt.Sprintf("%q:%s", name, literal)
	f, _ := lookup(name)
	switch {
	case f != nil && f.name == "input":
		return `{` + m + `,"instructions":"folk"}`
	case f != nil && f.name == "instructions":
		return `{"input":"la",` + m + `}`
	}
	return body(m + ",")
}

type want struct {
	pointer string
	code    Code
	part    string // of the message
}

func compare(t *testing.T, body string, got []Problem, wants []want) {
	t.Helper()
	if len(got) != len(wants) {
		t.Errorf("%.200q: %d problems, want %d: %+v", body, len(got), len(wants), got)
		return
	}
	for i, w := range wants {
		if got[i].Pointer != w.pointer || got[i].Code != w.code || !strings.Contains(got[i].Message, w.part) {
			t.Errorf("%.200q: problem %d is\n\t%+v\nwant\n\t%+v", body, i, got[i], w)
		}
	}
}

func TestHostileBodies(t *testing.T) {
	deep := strings.Repeat("[", 20000)
	tests := []struct {
		body  string
		wants []want
	}{
		{"", []want{{"", InvalidJSON, "empty"}}},
		{" \n\t ", []want{{"", InvalidJSON, "empty"}}},
		{"\uFEFF" + body(""), []want{{"", InvalidJSON, "byte order mark"}}},
		{"null", []want{{"", InvalidType, "got null"}}},
		{"[]", []want{{"", InvalidType, "got an array"}}},
		{`"la"`, []want{{"", InvalidType, "got a string"}}},
		{"3", []want{{"", InvalidType, "got a number"}}},
		{"true", []want{{"", InvalidType, "got true"}}},
		{"NaN", []want{{"", InvalidJSON, "no NaN"}}},
		{"{", []want{{"", InvalidJSON, "ends too early"}}},
		{`{"input"`, []want{{"/input", InvalidJSON, "ends too early"}}},
		{`{"input":`, []want{{"/input", InvalidJSON, "ends too early"}}},
		{`{"input":"la`, []want{{"/input", InvalidJSON, "ends too early"}}},
		{`{'input':1}`, []want{{"", InvalidJSON, "byte 1"}}},
		{`{input:1}`, []want{{"", InvalidJSON, "byte 1"}}},
		{`{1:2}`, []want{{"", InvalidJSON, "must be a string"}}},
		{`{"seed":1,}`, []want{{"", InvalidJSON, "byte 9"}}},
		{`{"seed" 1}`, []want{{"/seed", InvalidJSON, "byte 8"}}},
		{`{"seed":1 "steps":2}`, []want{{"", InvalidJSON, "byte 10"}}},
		{body("") + "x", []want{{"", InvalidJSON, "data follows"}}},
		{body("") + body(""), []want{{"", InvalidJSON, "data follows"}}},
		{body("") + "\x00", []want{{"", InvalidJSON, "data follows"}}},
		{"\xff\xfe{\x00}\x00", []want{{"", InvalidJSON, "byte 0"}}},
		{`{"audio_duration":NaN}`, []want{{"/audio_duration", InvalidJSON, "no NaN"}}},
		{`{"audio_duration":Infinity}`, []want{{"/audio_duration", InvalidJSON, "no Infinity"}}},
		{`{"audio_duration":-Infinity}`, []want{{"/audio_duration", InvalidJSON, "no Infinity"}}},
		{`{"guidance_scale":+1}`, []want{{"/guidance_scale", InvalidJSON, "'+'"}}},
		{`{"seed":0x10}`, []want{{"", InvalidJSON, "'x'"}}},
		{`{"seed":01}`, []want{{"", InvalidJSON, "'1'"}}},
		{`{"seed":.5}`, []want{{"/seed", InvalidJSON, "'.'"}}},
		{"{\"input\":\"a\x01b\"}", []want{{"/input", InvalidJSON, "control"}}},
		{`{"input":"\x"}`, []want{{"/input", InvalidJSON, "escape"}}},
		{`{"x":` + deep + `}`, []want{{"/x", InvalidJSON, "max depth"}}},
		{`{"input":` + strings.Repeat(`{"input":`, 20000), []want{{"/input", InvalidJSON, "max depth"}}},
		{body(`"x":` + deep[:9000] + strings.Repeat("]", 9000) + `,`), []want{{"/x", UnknownField, "not a field"}}},

		{"{\"input\":\"a\xffb\",\"instructions\":\"folk\"}", []want{{"/input", InvalidValue, "not UTF-8"}}},
		{`{"input":"a\ud800b","instructions":"folk"}`, []want{{"/input", InvalidValue, "surrogate"}}},
		{`{"input":"a\udc00b","instructions":"folk"}`, []want{{"/input", InvalidValue, "surrogate"}}},
		{body("\"se\xffed\":1,"), []want{{"/se\uFFFDed", InvalidValue, "not UTF-8"}}},
		{body(`"\ud800":1,`), []want{{"/\uFFFD", InvalidValue, "surrogate"}}},
		{body(`"a/b~c":1,`), []want{{"/a~1b~0c", UnknownField, "not a field"}}},
		{body(`"":1,`), []want{{"/", UnknownField, "not a field"}}},

		{`{}`, []want{{"/input", MissingField, "required"}, {"/instructions", MissingField, "required"}}},
		{`{"input":null,"prompt":null}`, []want{{"/input", MissingField, "required"}, {"/instructions", MissingField, "required"}}},
		{`{"lyrics":" \u001c\u0085\u3000","caption":"\n"}`, []want{{"/caption", InvalidValue, "blank"}, {"/lyrics", InvalidValue, "blank"}}},
		{`{"instructions":"folk","instrumental":false}`, []want{{"/input", MissingField, "instrumental true"}}},
		{`{"instructions":"folk","instrumental":1}`, []want{{"/instrumental", InvalidType, "true or false"}}},

		{body(`"seed":1,"seed":1,`), []want{{"/seed", DuplicateField, "twice"}}},
		{body(`"s\u0065ed":1,"seed":2,`), []want{{"/seed", DuplicateField, "twice"}}},
		{body(`"zzzz":1,"zzzz":2,`), []want{{"/zzzz", UnknownField, ""}, {"/zzzz", DuplicateField, ""}}},
		{`{"input":"a","lyrics":"b","instructions":"folk"}`, []want{{"/lyrics", ConflictingField, "input"}}},
		{body(`"duration":1,"duration_seconds":2,`), []want{{"/duration_seconds", ConflictingField, "duration"}}},
		{body(`"steps":1,"num_inference_steps":2,`), []want{{"/num_inference_steps", ConflictingField, "steps"}}},
		{body(`"prompt":"pop","caption":"rock",`), []want{{"/caption", ConflictingField, "prompt"}, {"/instructions", ConflictingField, "prompt"}}},
		{body(`"duration":2,"max_new_tokens":51,`), []want{{"/max_new_tokens", ConflictingField, "duration of 2 s, which is 50 tokens"}}},

		{body(`"model":"song-modle",`), []want{{"/model", ModelNotFound, `did you mean "song-model"`}}},
		{body(`"model":"",`), []want{{"/model", ModelNotFound, "song-model"}}},
		{body(`"model":"SONG-MODEL",`), []want{{"/model", ModelNotFound, "did you mean"}}},

		{body(`"response_format":"WAV",`), []want{{"/response_format", InvalidValue, `did you mean "wav"`}}},
		{body(`"response_format":"aac",`), []want{{"/response_format", InvalidValue, "wav, flac, mp3, opus, pcm"}}},
		{body(`"response_format":"opus","sample_rate":44100,`), []want{{"/sample_rate", UnsupportedValue, "opus is always 48000"}}},
		{body(`"response_format":"mp3","sample_rate":96000,`), []want{{"/sample_rate", UnsupportedValue, "48000]"}}},
		{body(`"response_format":"mp4","sample_rate":44101,`), []want{{"/response_format", InvalidValue, "did you mean"}}},
		{body(`"stream_format":"",`), []want{{"/stream_format", InvalidValue, "audio, sse"}}},
		{body(`"stream_format":"SSE",`), []want{{"/stream_format", InvalidValue, `did you mean "sse"`}}},
		{body(`"stream_format":"sse","stream":false,`), []want{{"/stream_format", ConflictingField, "stream is false"}}},
		{body(`"stream":1,"stream_format":"sse",`), []want{{"/stream", InvalidType, "true or false"}}},
		{body(`"sample_rate":96001,`), []want{{"/sample_rate", OutOfRange, "8000 to 96000"}}},
		{body(`"sample_rate":7999,`), []want{{"/sample_rate", OutOfRange, "8000 to 96000"}}},
		{body(`"prompt_mode":"freindly",`), []want{{"/prompt_mode", InvalidValue, `did you mean "friendly"`}}},
		{body(`"voice":"aloy",`), []want{{"/voice", InvalidValue, `did you mean "alloy"`}}},
		{body(`"voice":" alloy",`), []want{{"/voice", InvalidValue, "named voices"}}},
		{body(`"voice":{"id":"voice_1234"},`), []want{{"/voice", InvalidType, "custom voices"}}},
		{body(`"speed":1.5,`), []want{{"/speed", UnsupportedValue, "must be 1"}}},

		{body(`"seed":-1,`), []want{{"/seed", OutOfRange, "got -1"}}},
		{body(`"seed":18446744073709551616,`), []want{{"/seed", OutOfRange, "18446744073709551615"}}},
		{body(`"seed":1e999,`), []want{{"/seed", OutOfRange, "got 1e999"}}},
		{body(`"seed":1e-1,`), []want{{"/seed", InvalidType, "whole"}}},
		{body(`"seed":0.5,`), []want{{"/seed", InvalidType, "whole"}}},
		{body(`"seed":` + strings.Repeat("9", 100000) + `,`), []want{{"/seed", OutOfRange, "…"}}},
		{body(`"max_new_tokens":0,`), []want{{"/max_new_tokens", OutOfRange, "1 to 9000"}}},
		{body(`"max_new_tokens":9001,`), []want{{"/max_new_tokens", OutOfRange, "1 to 9000"}}},
		{body(`"max_new_tokens":1e999,`), []want{{"/max_new_tokens", OutOfRange, ""}}},
		{body(`"steps":0,`), []want{{"/steps", OutOfRange, "1 to 200"}}},
		{body(`"steps":201,`), []want{{"/steps", OutOfRange, "1 to 200"}}},
		{body(`"guidance_scale":-0.1,`), []want{{"/guidance_scale", OutOfRange, "0 to 20"}}},
		{body(`"guidance_scale":20.1,`), []want{{"/guidance_scale", OutOfRange, "0 to 20"}}},
		{body(`"guidance_scale":1e999,`), []want{{"/guidance_scale", OutOfRange, "got 1e999"}}},
		{body(`"audio_duration":0,`), []want{{"/audio_duration", OutOfRange, "0.04 to 360"}}},
		{body(`"audio_duration":-0,`), []want{{"/audio_duration", OutOfRange, "got -0"}}},
		{body(`"audio_duration":0.039,`), []want{{"/audio_duration", OutOfRange, "0.04 to 360"}}},
		{body(`"audio_duration":360.001,`), []want{{"/audio_duration", OutOfRange, "0.04 to 360"}}},
		{body(`"audio_duration":-1e999,`), []want{{"/audio_duration", OutOfRange, ""}}},

		{body(`"audio_duration_s":0.1,`), []want{{"/audio_duration_s", UnknownField, `did you mean "audio_duration"`}}},
		{body(`"audioDuration":0.1,`), []want{{"/audioDuration", UnknownField, `did you mean "audio_duration"`}}},
		{body(`"SEED":1,`), []want{{"/SEED", UnknownField, `did you mean "seed"`}}},
		{body(`"max_tokens":1,`), []want{{"/max_tokens", UnknownField, `did you mean "max_new_tokens"`}}},
		{body(`"step":1,`), []want{{"/step", UnknownField, `did you mean "steps"`}}},
		{body(`"bogus":null,`), []want{{"/bogus", UnknownField, "its fields are model, input, lyrics"}}},
		{body(`"` + strings.Repeat("🎵", 250000) + `":1,`), []want{{"/" + strings.Repeat("🎵", 25) + "…", UnknownField, ""}}},
	}
	for _, tt := range tests {
		_, got := Parse([]byte(tt.body), testRules())
		compare(t, tt.body, got, tt.wants)
	}
	t.Logf("%d bodies", len(tests))
}

// A value of each wrong JSON type, in every field under each of its names, is refused
// as a wrong type of that member.
func TestWrongTypesInEveryField(t *testing.T) {
	literals := map[string]string{
		"a string": `"x"`, "a number": `1`, "true": `true`, "false": `false`, "an array": `[1]`, "an object": `{"a":{}}`,
	}
	right := map[kind][]string{
		text: {"a string"}, number: {"a number"}, integer: {"a number"}, boolean: {"true", "false"},
	}
	n := 0
	for _, f := range fields {
		for _, name := range append([]string{f.name}, f.aliases...) {
			for described, literal := range literals {
				if slices.Contains(right[f.kind], described) {
					continue
				}
				b := member(name, literal)
				_, got := Parse([]byte(b), testRules())
				compare(t, b, got, []want{{"/" + name, InvalidType, name + " must be "}})
				if len(got) == 1 && !strings.Contains(got[0].Message, "got "+described) {
					t.Errorf("%s: the message does not say what was sent: %s", b, got[0].Message)
				}
				n++
			}
			b := member(name, "null")
			if _, got := Parse([]byte(b), testRules()); len(got) != 0 && got[0].Code != MissingField {
				t.Errorf("%s: null does not equal absent: %+v", b, got)
			}
			n++
		}
	}
	t.Logf("%d bodies", n)
}

func TestRefusedFields(t *testing.T) {
	for name, reason := range refused {
		for _, literal := range []string{"1", `"x"`, "{}", "[]", "false"} {
			b := member(name, literal)
			_, got := Parse([]byte(b), testRules())
			compare(t, b, got, []want{{"/" + name, UnsupportedField, reason}})
		}
		if _, got := Parse([]byte(member(name, "null")), testRules()); len(got) != 0 {
			t.Errorf("%s: null does not equal absent: %+v", name, got)
		}
	}
	t.Logf("%d fields", len(refused))
}

func TestAllProblemsAtOnce(t *testing.T) {
	const b = `{"input":7,"audio_duration_s":3,"seed":-1,"temperature":0.5,"steps":1.5,"seed":2}`
	_, got := Parse([]byte(b), testRules())
	compare(t, b, got, []want{
		{"/input", InvalidType, "got a number"},
		{"/audio_duration_s", UnknownField, "audio_duration"},
		{"/seed", OutOfRange, "got -1"},
		{"/temperature", UnsupportedField, "no temperature"},
		{"/steps", InvalidType, "whole"},
		{"/seed", DuplicateField, "twice"},
		{"/instructions", MissingField, "required"},
	})
}

func TestManyProblemsAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("{")
	const n = 100000
	for i := range n {
		fmt.Fprintf(&b, `"%06d":0,`, i)
	}
	b.WriteString(`"input":"la","instructions":"folk"}`)
	_, got := Parse([]byte(b.String()), testRules())
	if len(got) != maxProblems+1 {
		t.Fatalf("%d problems listed, want %d", len(got), maxProblems+1)
	}
	last := got[maxProblems]
	if want := fmt.Sprint(n - maxProblems); last.Code != TooManyProblems || !strings.HasPrefix(last.Message, want) {
		t.Errorf("last problem %+v, want it to count %s", last, want)
	}
}

// FuzzParse looks for panics, for problems without a place or a message, and for
// requests out of the contract's ranges.
func FuzzParse(f *testing.F) {
	for _, name := range (&Rules{}).fieldNames() {
		for _, literal := range []string{`"x"`, `1`, `1e999`, `true`, `null`, `{"id":"x"}`, `[[]]`, "\"\xff\""} {
			f.Add([]byte(member(name, literal)))
		}
	}
	f.Add([]byte(`{"input":"a","input":"b","lyrics":"c"}`))
	f.Add([]byte(`{"audio_duration":4.6,"max_new_tokens":115,`))
	rules := testRules()
	rules.Check = func(r engine.Request) ([]string, error) {
		if strings.Contains(r.Lyrics, "x") {
			return nil, &engine.RequestError{Field: "lyrics", Message: "has an x"}
		}
		return nil, nil
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, problems := Parse(b, rules)
		for _, p := range problems {
			if p.Message == "" || p.Code == "" || !(p.Pointer == "" && p.Param == "" || strings.HasPrefix(p.Pointer, "/")) {
				t.Errorf("%q: incomplete problem %+v", b, p)
			}
			if !utf8.ValidString(p.Message) || !utf8.ValidString(p.Pointer) {
				t.Errorf("%q: a problem is not UTF-8: %+q", b, p)
			}
		}
		if len(problems) > 0 {
			return
		}
		if !json.Valid(b) {
			t.Errorf("%q: accepted, but is not JSON", b)
		}
		song := s.Song
		if song.MaxFrames < 1 || song.MaxFrames > 9000 || song.Steps < 1 || song.Steps > maxSteps ||
			!(song.Guidance >= 0 && song.Guidance <= maxGuidance) || prompt.Blank(song.Instructions) ||
			prompt.Blank(song.Lyrics) && !song.Instrumental || !utf8.ValidString(song.Lyrics) {
			t.Errorf("%q: accepted as %+v", b, song)
		}
	})
}
