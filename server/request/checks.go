package request

import (
	"fmt"
	"slices"
	"strings"

	"skald/host/music3/prompt"
	"skald/server/request/nearest"
)

func checkModel(r *Rules, v value) *fault {
	names := r.Names()
	if slices.Contains(names, v.text) {
		return nil
	}
	return &fault{
		code:       ModelNotFound,
		message:    fmt.Sprintf("%s does not exist here; the served model is %q", quote(v.text), r.Info.Name),
		suggestion: nearest.Name(v.text, names),
	}
}

func checkNotBlank(_ *Rules, v value) *fault {
	if !prompt.Blank(v.text) {
		return nil
	}
	return &fault{code: InvalidValue, message: "is blank; describe the style, the voice and the instruments"}
}

func checkVoice(_ *Rules, v value) *fault {
	lower := strings.ToLower(v.text)
	if slices.Contains(stockVoices, lower) {
		return nil
	}
	return &fault{
		code:       InvalidValue,
		message:    fmt.Sprintf("%s does not exist: the model has no named voices, and the stock names (default, alloy, ...) have no effect; describe the voice in instructions", quote(v.text)),
		suggestion: nearest.Name(lower, stockVoices[1:]),
	}
}

func checkSpeed(_ *Rules, v value) *fault {
	if v.number == 1 {
		return nil
	}
	return &fault{code: UnsupportedValue, message: "must be 1: the model's tempo is set in instructions"}
}

// judge applies what the table says of a field to a value of its kind.
func (f *field) judge(r *Rules, v value) *fault {
	if f.check != nil {
		if flaw := f.check(r, v); flaw != nil {
			return flaw
		}
	}
	if f.bounds != nil {
		lo, hi := f.bounds(r)
		if f.kind == integer && !(v.integer >= uint64(lo) && v.integer <= uint64(hi)) ||
			f.kind == number && !(v.number >= lo && v.number <= hi) {
			return f.outOfBounds(r)
		}
	}
	if f.values == nil || f.check != nil {
		return nil
	}
	values := f.values(r)
	if slices.Contains(values, v.text) {
		return nil
	}
	return &fault{
		code:       InvalidValue,
		message:    fmt.Sprintf("must be one of %s; got %s", strings.Join(values, ", "), quote(v.text)),
		suggestion: nearest.Name(v.text, values),
	}
}

func (f *field) outOfBounds(r *Rules) *fault {
	lo, hi := f.bounds(r)
	return &fault{code: OutOfRange, message: fmt.Sprintf("must be %s from %v to %v%s", f.kind, lo, hi, f.unit)}
}
