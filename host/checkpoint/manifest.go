package checkpoint

const manifestFile = "skald.json"

// Manifest is what a checkpoint says about itself in skald.json. The file and
// each of its members are optional.
type Manifest struct {
	Name   string // the name under which it is served
	Title  string
	Notice string // shown to users

	Defaults Defaults

	// AcousticPrecision is the least precision of the condition encoder, the
	// transformer and the vocoder: "fp32", "bf16", or "" for any.
	AcousticPrecision string
}

// Defaults are request fields that the checkpoint sets when a request does not.
type Defaults struct {
	NumInferenceSteps *int     // flow matching steps, 1 to 200
	GuidanceScale     *float64 // of the flow transformer, 0 to 20
	AudioDuration     *float64 // seconds, 0.04 to 360
	Instructions      string   // description of the music
}

// parseManifest reads skald.json. The error lists everything that is wrong.
func parseManifest(data []byte) (Manifest, error) {
	var report problems
	o, err := parseObject(manifestFile, data, &report)
	if err != nil {
		return Manifest{}, err
	}
	m := Manifest{
		Name:              o.text("name"),
		Title:             o.text("title"),
		Notice:            o.text("notice"),
		AcousticPrecision: o.text("acoustic_precision"),
	}
	switch m.AcousticPrecision {
	case "", "fp32", "bf16":
	default:
		report.add("%s: acoustic_precision is %q, expected fp32 or bf16", o.file, clip(m.AcousticPrecision))
	}
	if d := o.child("defaults"); d != nil {
		if _, ok := d.get("num_inference_steps"); ok {
			n := d.integer("num_inference_steps", 0, 1, 200)
			m.Defaults.NumInferenceSteps = &n
		}
		if _, ok := d.get("guidance_scale"); ok {
			x := d.number("guidance_scale", 0, 0, 20)
			m.Defaults.GuidanceScale = &x
		}
		if _, ok := d.get("audio_duration"); ok {
			x := d.number("audio_duration", 0, 0.04, 360)
			m.Defaults.AudioDuration = &x
		}
		m.Defaults.Instructions = d.text("instructions")
		d.refuseUnknown()
	}
	o.refuseUnknown()
	return m, report.err()
}
