package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// result is what one run of the program did.
type result struct {
	code           int
	stdout, stderr string
}

// skald runs the program with the arguments and nothing else.
func skald(t *testing.T, args ...string) result {
	t.Helper()
	return skaldWith(t, context.Background(), nil, "", args...)
}

func skaldWith(t *testing.T, ctx context.Context, environ []string, stdin string, args ...string) result {
	t.Helper()
	var stdout, stderr safeBuffer
	code := run(ctx, args, environ, strings.NewReader(stdin), &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

// safeBuffer is a buffer that a test may read while the program writes.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestUsage checks the exit code of wrong command lines, and that one line says what
// is wrong and what to do.
func TestUsage(t *testing.T) {
	tests := []struct {
		args string
		want []string // in the one line on standard error
	}{
		{"srve", []string{`"srve"`, "did you mean serve", "skald --help"}},
		{"xyzzy", []string{`"xyzzy"`, "skald --help"}},
		{"sing --lyrcs x", []string{"--lyrcs", "did you mean --lyrics", "skald sing --help"}},
		{"sing --seed -1", []string{`--seed "-1": want a whole number from 0 to 18446744073709551615`}},
		{"sing --steps x", []string{`--steps "x": want a whole number`}},
		{"sing --precision fp8", []string{`--precision "fp8": want auto, fp32, mixed, bf16`}},
		{"serve --song-timeout 5", []string{`--song-timeout "5": want a time such as 90s`}},
		{"serve --max-queue -1", []string{"skald: --max-queue -1: must not be negative"}},
		{"serve --stall-after 0s", []string{"skald: --stall-after 0s: must be positive"}},
		{"sing --sede 1", []string{"did you mean --seed"}},
		{"sing --instruct x", []string{"did you mean --instru"}},
		{"sing --qqqqqqq x", []string{"--qqqqqqq", "skald sing --help"}},
		{"sing -x", []string{"'x' in -x"}},
		{"sing", []string{"--lyrics", "--instructions", "for example"}},
		{"sing --instructions pop", []string{"--lyrics is missing", "--instrumental"}},
		{"sing --lyrics la --instructions pop -o song.ogg", []string{"song.ogg", ".wav", ".pcm"}},
		{"sing --lyrics la --instructions pop -o song.pcm --wav-format pcm24", []string{"--wav-format"}},
		{"sing --lyrics la --instructions pop -o song.opus --sample-rate 44100", []string{"--sample-rate", "48000"}},
		{"sing --lyrics @/no/such/file --instructions pop", []string{"--lyrics", "/no/such/file"}},
		{"sing --lyrics @- --instructions @-", []string{"standard input"}},
		{"sing --lyrics la --instructions pop --precision fp31", []string{"--precision", "fp32, mixed, bf16"}},
		{"sing --lyrics la --instructions pop --seed -1", []string{"--seed", "-1"}},
		{"sing --lyrics la --instructions pop --seed 18446744073709551616", []string{"--seed", "want a whole number from 0 to 18446744073709551615"}},
		{"sing --lyrics la --instructions pop --duration 0", []string{"--duration 0"}},
		{"sing --lyrics la --instructions pop --duration NaN", []string{"--duration NaN"}},
		{"sing --lyrics la --instructions pop --steps 0", []string{"steps", "1 to 200"}},
		{"sing --lyrics la --instructions pop --guidance 21", []string{"guidance", "0 to 20"}},
		{"sing --lyrics la --instructions pop --threads -1", []string{"--threads -1"}},
		{"sing --lyrics la --instructions pop extra", []string{`"extra"`, "too many"}},
		{"inspect", []string{"DIR is missing", "skald inspect DIR"}},
		{"synth", []string{"DIR is missing"}},
		{"synth x --shape huge", []string{"--shape", "tiny, aligned, medium, full"}},
		{"serve --listen 0.0.0.0:0", []string{"without an API key", "--allow-unauthenticated-network"}},
		{"serve --songs 0", []string{"--songs 0"}},
		{"serve --max-queue -1", []string{"--max-queue"}},
		{"serve --api-key-file /no/such/file", []string{"--api-key-file", "/no/such/file"}},
	}
	t.Chdir(t.TempDir())
	for _, test := range tests {
		got := skald(t, strings.Fields(test.args)...)
		if got.code != exitUsage {
			t.Errorf("%s: exit code %d, want %d", test.args, got.code, exitUsage)
		}
		lines := strings.Split(strings.TrimSpace(got.stderr), "\n")
		last := lines[len(lines)-1]
		for _, want := range test.want {
			if !strings.Contains(last, want) {
				t.Errorf("%s: %q does not say %q", test.args, last, want)
			}
		}
		if !strings.HasPrefix(last, "skald: ") || got.stdout != "" {
			t.Errorf("%s: printed %q and %q", test.args, got.stdout, got.stderr)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("files left behind: %v, %v", left, err)
	}
	t.Logf("examined %d command lines", len(tests))
}

// TestHelp checks that every command shows examples and names the variable of every
// flag.
func TestHelp(t *testing.T) {
	root := newRoot()
	bindEnvironment(root, nil)
	commands, flags := 0, 0
	for _, cmd := range root.Commands() {
		got := skald(t, cmd.Name(), "--help")
		if got.code != exitOK || !strings.Contains(got.stdout, "Examples:\n  skald ") || !strings.Contains(got.stdout, cmd.Short[:10]) && cmd.Long == "" {
			t.Errorf("%s --help: exit code %d, %s", cmd.Name(), got.code, got.stdout)
		}
		for line := range strings.Lines(got.stdout) {
			if !strings.Contains(line, "  --") && !strings.HasPrefix(strings.TrimSpace(line), "-o") {
				continue
			}
			if strings.Contains(line, "skald ") { // an example
				continue
			}
			flags++
			if !strings.Contains(line, "[$SKALD_") {
				t.Errorf("%s: no variable in %q", cmd.Name(), line)
			}
		}
		commands++
	}
	if top := skald(t); top.code != exitOK || !strings.Contains(top.stdout, "130 interrupted") {
		t.Errorf("skald without arguments: %+v", top)
	}
	t.Logf("examined %d commands, %d flags", commands, flags)
}

func TestEnvironment(t *testing.T) {
	run := func(environ []string, args ...string) result {
		return skaldWith(t, context.Background(), environ, "", args...)
	}
	if got := run([]string{"SKALD_JSON=true"}, "version"); got.code != exitOK || !json.Valid([]byte(got.stdout)) {
		t.Errorf("SKALD_JSON=true: %+v", got)
	}
	if got := run([]string{"SKALD_JSON=true"}, "version", "--json=false"); json.Valid([]byte(got.stdout)) {
		t.Errorf("the command line does not win: %+v", got)
	}
	if got := run([]string{"SKALD_JSON="}, "version"); got.code != exitOK || json.Valid([]byte(got.stdout)) {
		t.Errorf("an empty variable: %+v", got)
	}
	got := run([]string{"SKALD_PRECISION=fp8"}, "sing", "--lyrics", "la", "--instructions", "pop")
	if got.code != exitUsage || !strings.Contains(got.stderr, "SKALD_PRECISION") || !strings.Contains(got.stderr, "fp32, mixed, bf16") {
		t.Errorf("a wrong value: %+v", got)
	}
	got = run([]string{"SKALD_LISTN=:1", "SKALD_SHARED=x", "SKALD_SERVICE_HOST=10.0.0.1", "SKALD_PORT=tcp://10.0.0.1:80"}, "version")
	if got.code != exitOK || !strings.Contains(got.stderr, "SKALD_LISTN has no meaning; did you mean SKALD_LISTEN?") {
		t.Errorf("a misspelt variable: %+v", got)
	}
	if strings.Contains(got.stderr, "SERVICE_HOST") || strings.Contains(got.stderr, "SKALD_SHARED") || strings.Contains(got.stderr, "SKALD_PORT") {
		t.Errorf("a cluster's own variables: %+v", got)
	}
}

func TestCompletion(t *testing.T) {
	for args, want := range map[string]string{
		"__complete s":                       "serve",
		"__complete sing --precision ":       "mixed",
		"__complete sing --r":                "--replay",
		"__complete synth --shape ":          "aligned",
		"completion bash":                    "__start_skald",
		"completion zsh":                     "#compdef skald",
		"__complete inspect ":                ":16", // folders
		"__complete sing --wav-format ":      "float32",
		"__complete serve --log-format ":     "json",
		"__complete sing --model ":           ":16",
		"__complete sing -o ":                "wav",
		"__complete sing --prompt-mode fri":  "friendly",
		"__complete sing --device ":          "cuda",
		"__complete serve --allow-":          "--allow-unauthenticated-network",
		"__complete doctor --":               "--json",
		"__complete synth --dtype published": "published",
	} {
		got := skald(t, strings.Split(args, " ")...)
		if got.code != exitOK || !strings.Contains(got.stdout, want) {
			t.Errorf("%s: want %q in %q, exit code %d", args, want, got.stdout, got.code)
		}
	}
}

func TestVersion(t *testing.T) {
	got := skald(t, "version")
	if got.code != exitOK || !strings.HasPrefix(got.stdout, "skald ") || !strings.Contains(got.stdout, "CUDA architectures  none") {
		t.Errorf("%+v", got)
	}
	var facts buildFacts
	got = skald(t, "version", "--json")
	if err := json.Unmarshal([]byte(got.stdout), &facts); err != nil || facts.Version == "" || facts.Go == "" || facts.CUDAArchitectures == nil {
		t.Errorf("%+v: %+v, %v", got, facts, err)
	}
}

func TestDoctor(t *testing.T) {
	got := skald(t, "doctor")
	for _, want := range []string{"processor", "cores", "memory", "disk", "cpu: ", "chosen: ", "MiniMax-Music3 in mixed"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("doctor does not say %q: %+v", want, got)
		}
	}
	var d diagnosis
	got = skald(t, "doctor", "--json")
	if err := json.Unmarshal([]byte(got.stdout), &d); err != nil || got.code != exitOK {
		t.Fatalf("%v: %+v", err, got)
	}
	if len(d.Devices) == 0 || !d.Devices[0].Chosen || len(d.Memory) != 3 {
		t.Errorf("%+v", d)
	}
	// The published weights in mixed: 17.17 + 1.29 + 0.05 + 9.73 + 0.22 GB, but of the
	// language model's two tables of 1.64 GB only the rows of the codes, 0.13 GB each.
	if w := d.Memory[1].InPlace + d.Memory[1].Private; w < 25.40e9 || w > 25.50e9 {
		t.Errorf("the published model needs %d bytes for its weights in mixed", w)
	}
	if n := d.Memory[1]; n.Total != n.InPlace+n.Private+n.KVCache+n.Held+n.Scratch || n.Packed > n.Private {
		t.Errorf("the parts do not add up: %+v", n)
	}
}

// TestDoctorPortable: doctor tells when the portable code runs.
func TestDoctorPortable(t *testing.T) {
	t.Setenv("SKALD_CPU", "go")
	var d diagnosis
	got := skald(t, "doctor", "--json")
	if err := json.Unmarshal([]byte(got.stdout), &d); err != nil || len(d.Advice) == 0 || !strings.Contains(d.Advice[0], "portable code runs") {
		t.Errorf("%v: %+v", err, d)
	}
	if !slices.Contains(d.Levels, "go") || !strings.Contains(d.Devices[0].Detail, "level go (portable)") {
		t.Errorf("%+v", d)
	}
	if lines := portable([]diagnosedDevice{{Kind: "cpu", Detail: "amd64, level avx2 (x)"}}, d.Levels); lines != nil {
		t.Errorf("with vector kernels: %v", lines)
	}
}

func TestPackFlag(t *testing.T) {
	for text, want := range map[string]int64{
		"auto": 0, "none": -1, "all": math.MaxInt64, "0": -1, "1": 1, "64MB": 64e6, "1.5 GiB": 3 << 29, "2KiB": 2048, "7B": 7,
	} {
		var f packFlag
		if err := f.Set(text); err != nil || f.bytes != want {
			t.Errorf("--pack %q: %d bytes, %v; want %d", text, f.bytes, err, want)
		}
	}
	for _, text := range []string{"", "some", "-1", "MB", "1e400", "NaN", "64 M", "9999999999GB"} {
		var f packFlag
		if err := f.Set(text); err == nil || !strings.Contains(err.Error(), "64MB") {
			t.Errorf("--pack %q: %d bytes, %v", text, f.bytes, err)
		}
	}
	packed := map[string]string{}
	for _, pack := range []string{"none", "all"} {
		got := skald(t, "doctor", "--json", "--pack", pack)
		var d diagnosis
		if err := json.Unmarshal([]byte(got.stdout), &d); err != nil || d.Packing == "" {
			t.Fatalf("%v: %+v", err, got)
		}
		packed[pack] = d.Packing
		if n := d.Memory[1].Packed; (pack == "none") != (n == 0) && !strings.Contains(d.Packing, "level go") {
			t.Errorf("--pack %s: %d bytes are packed: %s", pack, n, d.Packing)
		}
	}
}

func TestSynthAndInspect(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tiny")
	if got := skald(t, "synth", dir, "--shape", "tiny", "--seed", "3"); got.code != exitOK || !strings.Contains(got.stdout, "shape tiny, seed 3") {
		t.Fatalf("synth: %+v", got)
	}
	got := skald(t, "synth", dir)
	if got.code != exitFailure || !strings.Contains(got.stderr, "not empty") {
		t.Errorf("synth into a full folder: %+v", got)
	}
	got = skald(t, "inspect", dir, "--tensors")
	for _, want := range []string{"diffusers folders", "language_model", " files", "BF16", "KV cache", "model.embed_tokens.weight", "[1600 64]"} {
		if got.code != exitOK || !strings.Contains(got.stdout, want) {
			t.Errorf("inspect does not say %q: exit code %d, %.400s ...", want, got.code, got.stdout)
		}
	}
	var found inspection
	got = skald(t, "inspect", dir, "--json")
	if err := json.Unmarshal([]byte(got.stdout), &found); err != nil || len(found.Components) != 5 || len(found.Problems) != 0 {
		t.Errorf("%v: %+v", err, got)
	}

	// A config that promises another vocabulary: two tensors are misshapen.
	config := filepath.Join(dir, "language_model", "config.json")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Replace(text, []byte(`"vocab_size": 1600`), []byte(`"vocab_size": 1601`), 1)
	if bytes.Equal(damaged, text) {
		t.Fatal("the config has no vocab_size of 1600")
	}
	if err := os.WriteFile(config, damaged, 0o644); err != nil {
		t.Fatal(err)
	}
	got = skald(t, "inspect", dir)
	if got.code != exitFailure || !strings.Contains(got.stdout, "2 problems") ||
		!strings.Contains(got.stdout, "lm_head.weight") || !strings.Contains(got.stdout, "model.embed_tokens.weight") ||
		!strings.Contains(got.stderr, "2 problems") {
		t.Errorf("a damaged checkpoint: %+v", got)
	}
	if got := skald(t, "inspect", t.TempDir()); got.code != exitFailure || got.stderr == "" {
		t.Errorf("an empty folder: %+v", got)
	}
}

func TestCheckDisk(t *testing.T) {
	err := checkDisk(t.TempDir(), 1<<60)
	if err == nil || !strings.Contains(err.Error(), "1152921504623624192 bytes") || !strings.Contains(err.Error(), "free") {
		t.Errorf("an impossible size: %v", err)
	}
	if err := checkDisk(t.TempDir(), 1); err != nil {
		t.Errorf("one byte: %v", err)
	}
}
