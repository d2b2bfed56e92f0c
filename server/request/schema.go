package request

import "slices"

// Schema describes the body to programs, as a JSON Schema of the draft 2020-12. It says
// all of the contract that such a schema can: not that two fields contradict each other,
// nor what only the model can judge.
func (r *Rules) Schema() map[string]any {
	properties := map[string]any{}
	for i := range fields {
		f := &fields[i]
		if f.jobs && r.Source == nil {
			continue
		}
		properties[f.name] = f.schema(r)
		for _, alias := range f.aliases {
			s := f.schema(r)
			s["description"] = "Another name of " + f.name + "."
			delete(s, "default")
			properties[alias] = s
		}
	}
	var source []any // a job may take both from another one
	if r.Source != nil {
		source = present("source_job")
	}
	required := []any{map[string]any{"anyOf": slices.Concat(present("input"), source, []any{map[string]any{
		"required":   []string{"instrumental"},
		"properties": map[string]any{"instrumental": map[string]any{"const": true}},
	}})}}
	if r.Defaults.Instructions == "" {
		required = append(required, map[string]any{"anyOf": slices.Concat(present("instructions"), source)})
	}
	return map[string]any{
		"type":                 "object",
		"description":          "A field that is null counts as absent.",
		"properties":           properties,
		"additionalProperties": false,
		"allOf":                required,
	}
}

// Parameters describes the query of a URL to programs, as parameters of OpenAPI.
func (r *Rules) Parameters() (all []any) {
	for i := range fields {
		f := &fields[i]
		if f.jobs {
			continue
		}
		for _, name := range append([]string{f.name}, f.aliases...) {
			s := f.schema(r)
			about := f.about
			delete(s, "description")
			if name != f.name {
				about = "Another name of " + f.name + "."
				delete(s, "default")
			}
			s["type"] = f.kind.schemaType() // there is no null in a query
			if values, ok := s["enum"].([]any); ok {
				s["enum"] = values[1:]
			}
			all = append(all, map[string]any{"name": name, "in": "query", "description": about, "schema": s})
		}
	}
	return all
}

// present lists the ways to set a field.
func present(name string) (ways []any) {
	f, _ := lookup(name)
	for _, n := range append([]string{f.name}, f.aliases...) {
		ways = append(ways, map[string]any{
			"required":   []string{n},
			"properties": map[string]any{n: map[string]any{"type": "string", "pattern": notBlank}},
		})
	}
	return ways
}

func (f *field) schema(r *Rules) map[string]any {
	s := map[string]any{"type": []string{f.kind.schemaType(), "null"}, "description": f.about}
	if f.bounds != nil {
		s["minimum"], s["maximum"] = f.bounds(r)
	} else if f.kind == integer {
		s["minimum"], s["maximum"] = 0, uint64(1<<64-1)
	}
	if f.pattern != "" {
		s["pattern"] = f.pattern
	}
	if f.values != nil {
		enum := []any{nil}
		for _, v := range f.values(r) {
			enum = append(enum, v)
		}
		s["enum"] = enum
	}
	if f.fallback != nil {
		s["default"] = f.fallback(r)
	}
	return s
}

func (k kind) schemaType() string {
	return [...]string{"string", "number", "integer", "boolean"}[k]
}
