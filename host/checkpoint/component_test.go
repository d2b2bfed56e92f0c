package checkpoint

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
)

// shard replaces the transformer's single file by two shards and returns the
// weight_map. The tensors go to them in turn.
func shard(t *testing.T, dir string) map[string]string {
	t.Helper()
	remove(t, dir, "transformer/"+weightsOf(transformer))
	var parts [2][]Tensor
	weights := map[string]string{}
	for i, x := range sampleTensors(sampleConfig(), transformer) {
		parts[i%2] = append(parts[i%2], x)
		weights[x.Name] = []string{"one.safetensors", "two.safetensors"}[i%2]
	}
	writeWeights(t, dir, "transformer/one.safetensors", parts[0])
	writeWeights(t, dir, "transformer/two.safetensors", parts[1])
	writeIndex(t, dir, weights)
	return weights
}

func writeIndex(t *testing.T, dir string, weights any) {
	t.Helper()
	data, err := json.Marshal(map[string]any{"metadata": map[string]int{"total_size": 1}, "weight_map": weights})
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "transformer/"+weightsOf(transformer)+indexSuffix, data)
}

func TestShards(t *testing.T) {
	dir := writeSample(t, sampleConfig())
	whole := openGood(t, dir)
	names, size := whole.Names(transformer), whole.ComponentBytes(transformer)
	weights := shard(t, dir)
	c := openGood(t, dir)
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	for name, shard := range weights {
		if x, ok := c.Tensor(transformer, name); !ok || x.File != filepath.Join(dir, transformer, shard) {
			t.Errorf("%s: %v in %s, want %s", name, ok, x.File, shard)
		}
	}
	got := c.Names(transformer)
	slices.Sort(got)
	slices.Sort(names)
	if !slices.Equal(got, names) || c.ComponentBytes(transformer) != size {
		t.Errorf("%d names, %d bytes, want %d, %d", len(got), c.ComponentBytes(transformer), len(names), size)
	}
	if files := c.Summary().Components[3].Files; len(files) != 2 {
		t.Errorf("files %q", files)
	}
	t.Logf("%d tensors in 2 shards", len(weights))
}

func TestShardsRefused(t *testing.T) {
	const first, second = "time_proj.weight", "time_embed.linear_1.weight" // in one and two
	tensors := sampleTensors(sampleConfig(), transformer)
	for _, test := range []struct {
		name   string
		damage func(dir string, weights map[string]string)
		want   []string
	}{
		{"shard gone", func(dir string, weights map[string]string) { remove(t, dir, "transformer/two.safetensors") },
			[]string{"transformer/two.safetensors is missing"}},
		{"shard damaged", func(dir string, weights map[string]string) { write(t, dir, "transformer/two.safetensors", nil) },
			[]string{filepath.Join("transformer", "two.safetensors") + ": byte 0"}},
		{"not in its shard", func(dir string, weights map[string]string) {
			weights["new.weight"] = "one.safetensors"
			writeIndex(t, dir, weights)
		}, []string{`index.json: tensor "new.weight" is not in its shard one.safetensors`}},
		{"in another shard", func(dir string, weights map[string]string) {
			weights[first] = "two.safetensors"
			writeIndex(t, dir, weights)
		}, []string{`tensor "time_proj.weight" is said to be in `, `two.safetensors, but is in `}},
		{"not in the index", func(dir string, weights map[string]string) {
			delete(weights, second)
			writeIndex(t, dir, weights)
		}, []string{`two.safetensors: tensor "time_embed.linear_1.weight" is not in the index`}},
		{"in two shards", func(dir string, weights map[string]string) {
			writeWeights(t, dir, "transformer/two.safetensors", tensors)
		}, []string{`two.safetensors: tensor "time_proj.weight" is also in `, "one.safetensors"}},
		{"path upwards", func(dir string, weights map[string]string) {
			weights[first] = "../vocoder/diffusion_pytorch_model.safetensors"
			writeIndex(t, dir, weights)
		}, []string{`weight_map.time_proj.weight is "../vocoder/diffusion_pytorch_model.safetensors", expected the name of a file in the same folder`}},
		{"absolute path", func(dir string, weights map[string]string) {
			weights[first] = "/dev/zero"
			writeIndex(t, dir, weights)
		}, []string{`weight_map.time_proj.weight is "/dev/zero", expected the name of a file`}},
		{"no file", func(dir string, weights map[string]string) {
			weights[first], weights[second] = "", "."
			writeIndex(t, dir, weights)
		}, []string{"2 problems", `is "", expected the name`, `is ".", expected the name`}},
		{"a number", func(dir string, weights map[string]string) {
			writeIndex(t, dir, map[string]int{first: 1})
		}, []string{`index.json: weight_map.time_proj.weight is 1, expected a string`}},
		{"a null", func(dir string, weights map[string]string) { writeIndex(t, dir, map[string]any{first: nil}) },
			[]string{`index.json: weight_map.time_proj.weight is null, expected the name of a file`}},
		{"null map", func(dir string, weights map[string]string) { writeIndex(t, dir, nil) },
			[]string{"index.json: weight_map is missing"}},
		{"array", func(dir string, weights map[string]string) { writeIndex(t, dir, []int{}) },
			[]string{"index.json: weight_map is [], expected an object"}},
		{"empty index", func(dir string, weights map[string]string) {
			write(t, dir, "transformer/"+weightsOf(transformer)+indexSuffix, nil)
		}, []string{"index.json: byte 0: the file is empty"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := writeSample(t, sampleConfig())
			weights := shard(t, dir)
			test.damage(dir, weights)
			expectOpen(t, dir, test.want...)
		})
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"weight_map":{"a":"one.safetensors"}}`))
	f.Add([]byte(`{"weight_map":{"a":"../one.safetensors","b":"c:\\x"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		shards, err := parseIndex("f", data)
		if err != nil {
			return
		}
		for name, shard := range shards {
			if filepath.Base(shard) != shard || !filepath.IsLocal(shard) {
				t.Errorf("%q lies in %q", name, shard)
			}
		}
	})
}
