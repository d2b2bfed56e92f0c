package main

import (
	"os"
	"strings"
	"testing"
)

// TestSingRequest makes the same song from flags and from a file that says the same.
func TestSingRequest(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, body string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("r.json", `{"input":"[verse]","instructions":"fast piano, drums","audio_duration":0.5,"seed":18446744073709551615,
		"num_inference_steps":2,"guidance_scale":1.5,"prompt_mode":"friendly","response_format":"flac","model":null}`)
	if got := skald(t, with(short, "--seed", "18446744073709551615", "--guidance", "1.5", "-o", "flags.flac")...); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	if got := skald(t, "sing", "--request", "r.json"); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	if got := skald(t, "sing", "--request", "r.json", "--seed", "1", "-o", "other.flac"); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	if read(t, "song.flac") != read(t, "flags.flac") {
		t.Error("the file gave another song than the flags")
	}
	if read(t, "song.flac") == read(t, "other.flac") {
		t.Error("--seed does not win over the file")
	}
	write("secret", "[verse]\n[chorus]")
	for body, want := range map[string]string{
		`{"input":"@secret","instructions":"calm","seed":"x"}`:         "seed",
		`{"input":"la","lyrics":"la","instructions":"calm"}`:           "two names",
		`{"input":"la","input":"lo","instructions":"calm"}`:            "duplicate",
		`{"input":"la","instructions":"calm","temperature":1}`:         `"temperature" is not a field`,
		`{"input":1,"instructions":"calm"}`:                            "input",
		`{"input":"la","instructions":"calm","seed":1.5}`:              "seed",
		`{"input":"la","instructions":"calm","response_format":"aac"}`: "aac",
		`[]`:       "not a request",
		`{"input"`: "not a request",
	} {
		write("bad.json", body)
		if got := skald(t, "sing", "--request", "bad.json"); got.code != exitUsage || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: %+v, want %q", body, got, want)
		}
	}
	// A text that begins with an @ is a text: the file of that name is not read.
	write("at.json", `{"input":"@secret","instructions":"fast piano, drums","audio_duration":0.5,"num_inference_steps":2}`)
	if got := skald(t, "sing", "--request", "at.json", "-o", "at.pcm"); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	if got := skald(t, with(short, "--lyrics", "@@secret", "-o", "text.pcm")...); got.code != exitOK || read(t, "at.pcm") != read(t, "text.pcm") {
		t.Errorf("@secret of a request is not the text: %+v", got)
	}
}
