package checkpoint

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"skald/host/refdata"
)

func openGood(t testing.TB, dir string) *Checkpoint {
	t.Helper()
	c, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// expectOpen opens a damaged checkpoint; the error must hold every text.
func expectOpen(t *testing.T, dir string, want ...string) {
	t.Helper()
	c, err := Open(dir)
	if err == nil {
		c.Close()
		t.Errorf("opened, want %q", want)
		return
	}
	for _, text := range append(want, dir) {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%v\n  lacks %q", err, text)
		}
	}
}

func TestOpen(t *testing.T) {
	dir := writeSample(t, sampleConfig())
	c := openGood(t, dir)
	if c.Name != "sample" || !reflect.DeepEqual(c.Config, sampleConfig()) || c.Manifest != (Manifest{}) {
		t.Errorf("name %q, config %+v, manifest %+v", c.Name, c.Config, c.Manifest)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	tensors, sum := 0, int64(0)
	for _, component := range Components() {
		want := sampleTensors(c.Config, component)
		if names := c.Names(component); len(names) != len(want) {
			t.Errorf("%s: %d names, want %d", component, len(names), len(want))
		}
		for i, w := range want {
			got, ok := c.Tensor(component, w.Name)
			if !ok || got.DType != F32 || !slices.Equal(got.Shape, w.Shape) || !bytes.Equal(got.Data, w.Data) {
				t.Errorf("%s %s: found %v, %s %v, %d bytes", component, w.Name, ok, got.DType, got.Shape, len(got.Data))
			}
			if name := c.Names(component)[i]; name != w.Name {
				t.Errorf("%s: name %d is %s, want %s", component, i, name, w.Name)
			}
			if want := filepath.Join(dir, component, weightsOf(component)); got.File != want {
				t.Errorf("%s: file %s, want %s", w.Name, got.File, want)
			}
			tensors++
			sum += int64(len(w.Data))
		}
	}
	if c.Bytes() != sum {
		t.Errorf("%d bytes, want %d", c.Bytes(), sum)
	}
	counted := ComponentSummary{}
	for _, s := range c.Summary().Components {
		counted.Tensors += s.Tensors
		counted.Parameters += s.Parameters
		counted.Bytes += s.Bytes
		if want := filepath.Join(dir, s.Component, weightsOf(s.Component)); !slices.Equal(s.Files, []string{want}) {
			t.Errorf("%s: files %q, want %q", s.Component, s.Files, want)
		}
		if !maps.Equal(s.DTypes, map[DType]int{F32: s.Tensors}) {
			t.Errorf("%s: types %v of %d tensors", s.Component, s.DTypes, s.Tensors)
		}
	}
	if counted.Tensors != tensors || counted.Parameters != sum/4 || counted.Bytes != sum {
		t.Errorf("summary %+v, want %d tensors, %d bytes", counted, tensors, sum)
	}
	if _, ok := c.Tensor("vocoder", "absent"); ok {
		t.Error("found a tensor that is not there")
	}
	if _, ok := c.Tensor("absent", "conv_in.bias"); ok || c.Names("absent") != nil || c.ComponentBytes("absent") != 0 {
		t.Error("found a component that is not there")
	}
	t.Logf("%d tensors, %d bytes", tensors, sum)
}

// TestReference opens the checkpoints that the reference itself has written.
func TestReference(t *testing.T) {
	shared := refdata.Shared(t, "the checkpoints written by the reference")
	for _, test := range []struct {
		dir     string
		tensors [5]int // by Components
	}{
		{"golden/tiny", [5]int{36, 29, 4, 45, 121}},
		{"golden/aligned", [5]int{25, 29, 4, 33, 121}},
		{"nano/nano", [5]int{47, 29, 4, 33, 121}},
	} {
		dir := filepath.Join(shared, filepath.FromSlash(test.dir))
		mapped := openGood(t, dir)
		read, err := OpenFS(os.DirFS(dir), "read")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []*Checkpoint{mapped, read} {
			if err := c.Check(); err != nil {
				t.Error(err)
			}
			var tensors [5]int
			for i, component := range c.Summary().Components {
				tensors[i] = component.Tensors
			}
			if tensors != test.tensors {
				t.Errorf("%s: %v tensors, want %v", test.dir, tensors, test.tensors)
			}
		}
		for _, component := range Components() {
			for _, name := range mapped.Names(component) {
				a, _ := mapped.Tensor(component, name)
				b, _ := read.Tensor(component, name)
				if !bytes.Equal(a.Data, b.Data) || a.Offset != b.Offset {
					t.Errorf("%s %s: mapped and read differ", component, name)
				}
			}
		}
		if data, err := mapped.ReadFile("tokenizer/tokenizer.json"); err != nil || !bytes.HasPrefix(data, []byte("{")) {
			t.Errorf("%s: tokenizer: %d bytes, %v", test.dir, len(data), err)
		}
		t.Logf("%s: %v tensors, %d bytes", test.dir, test.tensors, mapped.Bytes())
	}
}

func TestOpenFS(t *testing.T) {
	dir := writeSample(t, sampleConfig())
	files := fstest.MapFS{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		files[name] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := OpenFS(files, "built in")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(); err != nil || c.Name != "built in" {
		t.Errorf("%s: %v", c.Name, err)
	}
	if x, _ := c.Tensor("vocoder", "conv_in.bias"); x.File != "vocoder/diffusion_pytorch_model.safetensors" {
		t.Errorf("file %q", x.File)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, ok := c.Tensor("vocoder", "conv_in.bias"); ok || c.Bytes() != 0 {
		t.Error("a closed checkpoint gives tensors")
	}

	files["vocoder/diffusion_pytorch_model.safetensors"].Data = []byte("short")
	if _, err := OpenFS(files, "built in"); err == nil ||
		!strings.Contains(err.Error(), "vocoder/diffusion_pytorch_model.safetensors: byte 0") {
		t.Error(err)
	}
}

func TestReadFile(t *testing.T) {
	dir := writeSample(t, sampleConfig())
	write(t, dir, "large", make([]byte, maxReadFile+1))
	c := openGood(t, dir)
	if data, err := c.ReadFile("tokenizer/tokenizer.json"); err != nil || string(data) != "{}" {
		t.Errorf("%q, %v", data, err)
	}
	for name, want := range map[string]string{
		"absent":         "absent is missing",
		"large":          "large: more than 67108864 bytes",
		"../secret":      "../secret: ",
		"/etc/passwd":    "/etc/passwd: ",
		"tokenizer":      "tokenizer: ",
		"tokenizer/../x": "tokenizer/../x: ",
	} {
		data, err := c.ReadFile(name)
		if err == nil || !strings.Contains(err.Error(), "sample: "+want) {
			t.Errorf("%s: %d bytes, %v, want %s", name, len(data), err, want)
		}
	}
	if _, err := c.ReadFile("absent"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v is not fs.ErrNotExist", err)
	}
}

// TestIncomplete removes or damages files.
func TestIncomplete(t *testing.T) {
	const weights = "diffusion_pytorch_model.safetensors"
	for _, test := range []struct {
		name   string
		damage func(dir string)
		want   []string
	}{
		{"config gone", func(dir string) { remove(t, dir, "transformer/config.json") },
			[]string{"transformer/config.json is missing"}},
		{"scheduler gone", func(dir string) { remove(t, dir, "scheduler") },
			[]string{"scheduler/scheduler_config.json is missing"}},
		{"component gone", func(dir string) { remove(t, dir, "vocoder") },
			[]string{"2 problems", "vocoder/config.json is missing", "vocoder: no weights: expected one of"}},
		{"component and index gone", func(dir string) { remove(t, dir, "vocoder"); remove(t, dir, modularIndex) },
			[]string{"incomplete diffusers folders: vocoder/config.json missing"}},
		{"weights gone", func(dir string) { remove(t, dir, "vocoder/"+weights) },
			[]string{"vocoder: no weights: expected one of model.safetensors, " + weights + ", each also with .index.json"}},
		{"weights of another name", func(dir string) {
			remove(t, dir, "vocoder/"+weights)
			write(t, dir, "vocoder/diffusion_pytorch_model.fp16.safetensors", nil)
			write(t, dir, "vocoder/diffusion_pytorch_model.bin", nil)
		}, []string{"found diffusion_pytorch_model.bin, diffusion_pytorch_model.fp16.safetensors"}},
		{"weights twice", func(dir string) { write(t, dir, "vocoder/"+weights+".index.json", nil) },
			[]string{"vocoder: which of these holds the weights?", "vocoder/" + weights + ".index.json"}},
		{"weights cut off", func(dir string) {
			if err := os.Truncate(filepath.Join(dir, "vocoder", weights), 4000); err != nil {
				t.Fatal(err)
			}
		}, []string{filepath.Join("vocoder", weights) + ": byte 0: header length"}},
		{"several", func(dir string) {
			write(t, dir, "vocoder/"+weights, nil)
			write(t, dir, "transformer/"+weights, nil)
			write(t, dir, "scheduler/scheduler_config.json", []byte("{"))
			write(t, dir, manifestFile, []byte(`{"nom":"x"}`))
		}, []string{"4 problems", "unknown key nom", "scheduler_config.json: byte 1: not valid JSON",
			filepath.Join("vocoder", weights) + ": byte 0", filepath.Join("transformer", weights) + ": byte 0"}},
		{"large config", func(dir string) { write(t, dir, "vocoder/config.json", make([]byte, maxSettings+1)) },
			[]string{"vocoder/config.json: more than 4194304 bytes"}},
		{"other pipeline", func(dir string) { write(t, dir, modularIndex, []byte(`{"_class_name":"FluxModularPipeline"}`)) },
			[]string{`modular_model_index.json: _class_name is "FluxModularPipeline", expected MiniMaxMusic3ModularPipeline`}},
		{"index no JSON", func(dir string) { write(t, dir, modularIndex, []byte(`x`)) },
			[]string{"modular_model_index.json: byte 0: not valid JSON"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := writeSample(t, sampleConfig())
			test.damage(dir)
			expectOpen(t, dir, test.want...)
		})
	}
}

// TestWithoutIndex opens the folders alone.
func TestWithoutIndex(t *testing.T) {
	dir := writeSample(t, sampleConfig())
	remove(t, dir, modularIndex)
	if err := openGood(t, dir).Check(); err != nil {
		t.Error(err)
	}
}

// TestUnaligned puts the numbers at every distance from a multiple of eight.
func TestUnaligned(t *testing.T) {
	dir := writeSample(t, sampleConfig())
	tensors := sampleTensors(sampleConfig(), vocoder)
	text, err := encodeHeader(tensors, nil)
	if err != nil {
		t.Fatal(err)
	}
	var body []byte
	for _, x := range tensors {
		body = append(body, x.Data...)
	}
	header := strings.TrimRight(string(text[lengthBytes:]), " ")
	for range 8 {
		header += " "
		write(t, dir, "vocoder/"+weightsOf(vocoder), file(header, string(body)))
		c := openGood(t, dir)
		if err := c.Check(); err != nil {
			t.Error(err)
		}
		for _, want := range tensors {
			if got, _ := c.Tensor(vocoder, want.Name); !bytes.Equal(got.Data, want.Data) {
				t.Errorf("header of %d bytes: %s differs", len(header), want.Name)
			}
		}
	}
}

// TestHubCache lays the files as a Hub cache does: links in a snapshot, contents
// under their hash.
func TestHubCache(t *testing.T) {
	sample := writeSample(t, sampleConfig())
	cache := filepath.Join(t.TempDir(), "models--Owner--Some-Model")
	snapshot := filepath.Join(cache, "snapshots", "abc123")
	var blobs []string
	err := fs.WalkDir(os.DirFS(sample), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		blob := filepath.Join(cache, "blobs", strings.ReplaceAll(name, "/", "-"))
		data, err := os.ReadFile(filepath.Join(sample, name))
		if err != nil {
			return err
		}
		write(t, filepath.Dir(blob), filepath.Base(blob), data)
		blobs = append(blobs, blob)
		link := filepath.Join(snapshot, name)
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			return err
		}
		target, err := filepath.Rel(filepath.Dir(link), blob)
		if err != nil {
			return err
		}
		return os.Symlink(target, link)
	})
	if err != nil {
		t.Skipf("NOT EXAMINED: a Hub cache of %d files: links cannot be made here: %v", len(blobs), err)
	}
	good := func(dir string) {
		t.Helper()
		c := openGood(t, dir)
		if err := c.Check(); err != nil || c.Name != "Some-Model" {
			t.Errorf("%s: name %q, %v", dir, c.Name, err)
		}
	}
	good(snapshot)
	good(cache) // the only snapshot
	if err := os.Mkdir(filepath.Join(cache, "snapshots", "other"), 0o755); err != nil {
		t.Fatal(err)
	}
	expectOpen(t, cache, "holds 2 snapshots and no refs/main")
	write(t, cache, "refs/main", []byte("abc123"))
	good(cache)
	write(t, cache, "refs/main", []byte("../../elsewhere\n"))
	expectOpen(t, cache, "refs/main names a snapshot that is not there")

	for _, blob := range blobs {
		if err := os.Rename(blob, blob+".incomplete"); err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(blob)
		if name == "tokenizer-tokenizer.json" {
			var check *CheckError
			if err := openGood(t, snapshot).Check(); !errors.As(err, &check) || !strings.Contains(err.Error(), "is a link to a file that is not there") {
				t.Errorf("%s: %v", name, err)
			}
		} else {
			expectOpen(t, snapshot, "is a link to a file that is not there: is the download complete?")
		}
		if err := os.Rename(blob+".incomplete", blob); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d links broken one by one", len(blobs))
}
