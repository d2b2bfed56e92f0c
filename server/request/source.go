package request

import "fmt"

// checkSource looks the source job up. What it was asked for is looked up again later:
// a table of fields has no place for it.
func checkSource(r *Rules, v value) *fault {
	if _, err := r.Source(v.text); err != nil {
		return &fault{code: InvalidValue, message: err.Error()}
	}
	return nil
}

// ofSource are the fields that a source job settles.
var ofSource = []string{"input", "instructions", "audio_duration", "max_new_tokens", "instrumental", "prompt_mode"}

// source takes over what a source job was asked for, in place of the defaults. It reports
// whether there is a request to look at.
func (p *parser) source() bool {
	from, ok := p.given["source_job"]
	if !ok {
		return !p.bad["source_job"]
	}
	for _, name := range ofSource {
		if v, ok := p.given[name]; ok {
			p.bad[name] = true
			p.report(v.name, &fault{code: ConflictingField, message: fmt.Sprintf(
				"is that of %s, whose song is rendered again; leave it out", from.name)})
		}
	}
	u, err := p.rules.Source(from.value.text)
	if err != nil {
		p.bad["source_job"] = true
		p.report(from.name, &fault{code: InvalidValue, message: err.Error()})
		return false
	}
	rules := *p.rules
	rules.Defaults = u.Song()
	p.rules, p.sourceJob = &rules, from.value.text
	return true
}
