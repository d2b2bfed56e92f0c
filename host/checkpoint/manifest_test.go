package checkpoint

import (
	"reflect"
	"strings"
	"testing"
)

func TestManifest(t *testing.T) {
	steps, scale, duration := 8, 1.5, 20.0
	for data, want := range map[string]Manifest{
		`{}`:                            {},
		`{"name":null}`:                 {},
		`{"defaults":{}}`:               {},
		`{"name":"n"}`:                  {Name: "n"},
		`{"title":"é","notice":"x"}`:    {Title: "é", Notice: "x"},
		`{"acoustic_precision":"bf16"}`: {AcousticPrecision: "bf16"},
		`{"defaults":{"num_inference_steps":8,"guidance_scale":1.5,"audio_duration":20,"instructions":"calm"}}`: {
			Defaults: Defaults{&steps, &scale, &duration, "calm"},
		},
	} {
		got, err := parseManifest([]byte(data))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", data, got, err)
		}
	}
}

func TestManifestRefused(t *testing.T) {
	for data, want := range map[string]string{
		`[]`:                                       "expected a JSON object",
		`{"name":"a","name":"b"}`:                  "skald.json: byte 12: not valid JSON: duplicate",
		`{"name":3}`:                               "name is 3, expected a string",
		`{"titel":"x"}`:                            "unknown key titel, expected one of acoustic_precision, defaults, name, notice, title",
		`{"acoustic_precision":"fp16"}`:            `acoustic_precision is "fp16", expected fp32 or bf16`,
		`{"defaults":8}`:                           "defaults is 8, expected an object",
		`{"defaults":{"steps":8}}`:                 "unknown key defaults.steps, expected one of audio_duration, guidance_scale, instructions, num_inference_steps",
		`{"defaults":{"num_inference_steps":0}}`:   "defaults.num_inference_steps is 0, expected an integer from 1 to 200",
		`{"defaults":{"num_inference_steps":201}}`: "defaults.num_inference_steps is 201",
		`{"defaults":{"num_inference_steps":8.5}}`: "defaults.num_inference_steps is 8.5",
		`{"defaults":{"guidance_scale":-1}}`:       "defaults.guidance_scale is -1, expected a number from 0 to 20",
		`{"defaults":{"guidance_scale":1e999}}`:    "defaults.guidance_scale is 1e999, expected a number from 0 to 20",
		`{"defaults":{"audio_duration":361}}`:      "defaults.audio_duration is 361, expected a number from 0.04 to 360",
	} {
		if m, err := parseManifest([]byte(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v, want %s", data, m, err, want)
		}
	}
}

func TestManifestNamesCheckpoint(t *testing.T) {
	dir := writeSample(t, sampleConfig())
	write(t, dir, manifestFile, []byte(`{"name":"small","notice":"a toy"}`))
	if c := openGood(t, dir); c.Name != "small" || c.Manifest.Notice != "a toy" {
		t.Errorf("name %q, manifest %+v", c.Name, c.Manifest)
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"name":"n","defaults":{"num_inference_steps":8,"guidance_scale":1.5},"acoustic_precision":"fp32"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parseManifest(data)
		if err != nil {
			return
		}
		if n := m.Defaults.NumInferenceSteps; n != nil && (*n < 1 || *n > 200) {
			t.Errorf("%d steps", *n)
		}
		if x := m.Defaults.GuidanceScale; x != nil && !(*x >= 0 && *x <= 20) {
			t.Errorf("guidance %g", *x)
		}
	})
}
