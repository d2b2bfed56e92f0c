package nano_test

import (
	"encoding/binary"
	"encoding/json"
	"io/fs"
	"path"
	"strings"
	"testing"

	"skald/host/nano"
)

// TestComplete checks that every component of the diffusers layout is embedded, that
// each safetensors file is as long as its header says, and that the files are not
// stand-ins left by a partial checkout.
func TestComplete(t *testing.T) {
	model := nano.FS()
	for _, name := range []string{
		"modular_model_index.json", "skald.json", "tokenizer/tokenizer.json",
		"scheduler/scheduler_config.json", "language_model/config.json",
		"rvq_depth_decoder/config.json", "condition_encoder/config.json",
		"transformer/config.json", "vocoder/config.json",
	} {
		data, err := fs.ReadFile(model, name)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if !json.Valid(data) {
			t.Errorf("%s is not JSON", name)
		}
	}
	weights, tensors := 0, 0
	err := fs.WalkDir(model, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".safetensors" {
			return err
		}
		data, err := fs.ReadFile(model, name)
		if err != nil {
			return err
		}
		header := binary.LittleEndian.Uint64(data)
		if header > uint64(len(data)-8) {
			t.Errorf("%s: header of %d bytes in a file of %d", name, header, len(data))
			return nil
		}
		var entries map[string]struct {
			Offsets [2]int `json:"data_offsets"`
		}
		if err := json.Unmarshal(data[8:8+header], &entries); err != nil {
			t.Errorf("%s: %v", name, err)
			return nil
		}
		end := 0
		for key, e := range entries {
			if key != "__metadata__" {
				end = max(end, e.Offsets[1])
				tensors++
			}
		}
		if want := 8 + int(header) + end; want != len(data) {
			t.Errorf("%s: %d bytes, the header says %d", name, len(data), want)
		}
		weights++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if weights != 5 {
		t.Errorf("%d safetensors files, want one for each of 5 components", weights)
	}
	t.Logf("examined %d files of weights, %d tensors", weights, tensors)
}

// TestReadOnly checks that a caller cannot reach outside the checkpoint folder.
func TestReadOnly(t *testing.T) {
	for _, name := range []string{"../nano.go", "/etc/passwd", "model"} {
		if _, err := fs.Stat(nano.FS(), name); err == nil {
			t.Errorf("%s can be opened", name)
		} else if !strings.Contains(err.Error(), name) {
			t.Errorf("error %q does not name %s", err, name)
		}
	}
}
