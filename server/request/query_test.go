package request

import (
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// A query means what a body of the same fields means.
func TestQueryIsBody(t *testing.T) {
	tests := map[string]string{
		"input=%5Bverse%5D%0Ala&instructions=folk":                         body(""),
		"lyrics=[verse]%0Ala&caption=folk&seed=18446744073709551615":       body(`"seed":18446744073709551615,`),
		"input=[verse]%0Ala&instructions=folk&duration=4.6&stream=true":    body(`"audio_duration":4.6,"stream":true,`),
		"instructions=folk&instrumental=true&":                             `{"instructions":"folk","instrumental":true}`,
		"input=a+b&instructions=c%2Bd&steps=3e1&response_format=mp3":       `{"input":"a b","instructions":"c+d","steps":30,"response_format":"mp3"}`,
		"input=null&instructions=true&voice=&model=tts-1&sample_rate=8000": `{"input":"null","instructions":"true","voice":"","model":"tts-1","sample_rate":8000}`,
		"stream_format=sse&input=%F0%9F%8E%B5&instructions=%22":            `{"stream_format":"sse","input":"🎵","instructions":"\""}`,
	}
	for query, same := range tests {
		got, problems := ParseQuery(query, testRules())
		want, _ := Parse([]byte(same), testRules())
		got.given, want.given = nil, nil
		if len(problems) > 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %+v; want %+v", query, got, problems, want)
		}
	}
	t.Logf("%d queries", len(tests))
}

func TestQueryRefused(t *testing.T) {
	const good = "input=la&instructions=folk&"
	tests := []struct {
		query string
		wants []want
	}{
		{"", []want{{"/input", MissingField, "required"}, {"/instructions", MissingField, "required"}}},
		{good + "seed=1&seed=1", []want{{"/seed", DuplicateField, "twice"}}},
		{good + "sede=1", []want{{"/sede", UnknownField, `did you mean "seed"`}}},
		{good + "api_key=k", []want{{"/api_key", UnknownField, "not a field"}}},
		{good + "temperature=1", []want{{"/temperature", UnsupportedField, "no temperature"}}},
		{good + "seed=", []want{{"/seed", InvalidType, `a whole number; got ""`}}},
		{good + "seed", []want{{"/seed", InvalidValue, "seed=VALUE"}}},
		{good + "seed=-1", []want{{"/seed", OutOfRange, "-1"}}},
		{good + "seed=1.5", []want{{"/seed", InvalidType, "1.5"}}},
		{good + "seed=+1", []want{{"/seed", InvalidType, `" 1"`}}},
		{good + "seed=%2B1&steps=01&duration=NaN&guidance_scale=1,5", []want{
			{"/seed", InvalidType, `"+1"`}, {"/steps", InvalidType, `"01"`}, {"/duration", InvalidType, `"NaN"`}, {"/guidance_scale", InvalidType, `"1,5"`}}},
		{good + "seed=null&steps={}", []want{{"/seed", InvalidType, `"null"`}, {"/steps", InvalidType, `"{}"`}}},
		{good + "stream=1&instrumental=True", []want{{"/stream", InvalidType, `true or false; got "1"`}, {"/instrumental", InvalidType, `"True"`}}},
		{good + "lyrics=lo", []want{{"/lyrics", ConflictingField, "input"}}},
		{good + "duration=1000", []want{{"/duration", OutOfRange, "1000"}}},
		{"input=%zz&instructions=folk", []want{{"/input", InvalidValue, "%zz"}}},
		{"input=%ff&instructions=folk", []want{{"/input", InvalidValue, "UTF-8"}}},
		{"input=a;b&instructions=folk&se%ffed=1", []want{{"/se\uFFFDed", InvalidValue, "UTF-8"}}},
		{good + "=1", []want{{"/", UnknownField, "not a field"}}},
	}
	for _, tt := range tests {
		_, problems := ParseQuery(tt.query, testRules())
		compare(t, tt.query, problems, tt.wants)
	}
	_, problems := ParseQuery(strings.Repeat("x&", 10000), testRules())
	if len(problems) != maxProblems+1 {
		t.Errorf("%d problems are listed", len(problems))
	}
	t.Logf("%d queries", len(tests)+1)
}

func FuzzParseQuery(f *testing.F) {
	for _, name := range (&Rules{}).fieldNames() {
		for _, value := range []string{"x", "1", "1e999", "true", "%ff", "+", ""} {
			f.Add("input=la&instructions=folk&" + name + "=" + value)
		}
	}
	f.Fuzz(func(t *testing.T, query string) {
		_, problems := ParseQuery(query, testRules())
		for _, p := range problems {
			if p.Message == "" || p.Code == "" || !strings.HasPrefix(p.Pointer, "/") || !utf8.ValidString(p.Message) || !utf8.ValidString(p.Pointer) {
				t.Errorf("%q: problem %+q", query, p)
			}
		}
		if len(problems) > 0 {
			return
		}
		// What is taken means the same to others, and has no name that is not a field's.
		values, err := url.ParseQuery(query)
		if err != nil && !strings.Contains(err.Error(), "semicolon") {
			t.Errorf("%q is taken: %v", query, err)
		}
		for name, v := range values {
			if !slices.Contains((&Rules{}).fieldNames(), name) || len(v) != 1 {
				t.Errorf("%q is taken with %q %q", query, name, v)
			}
		}
	})
}
