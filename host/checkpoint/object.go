package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// object is one JSON object of a settings file. Its getters note every problem
// instead of stopping at the first, so that one error lists them all.
type object struct {
	file    string
	within  string // key of the object in its file, with a final dot, or ""
	members map[string]jsontext.Value
	used    map[string]bool
	report  *problems
}

// parseObject reads the JSON object that is the whole of data. Duplicate keys and
// text that is not UTF-8 are errors.
func parseObject(file string, data []byte, report *problems) (*object, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	value, err := dec.ReadValue()
	if err == nil {
		value = value.Clone()
		if _, rest := dec.ReadToken(); rest != io.EOF {
			if err = rest; err == nil {
				return nil, fmt.Errorf("%s: byte %d: something follows the JSON object", file, dec.InputOffset())
			}
		}
	}
	if err == io.EOF {
		return nil, fmt.Errorf("%s: byte 0: the file is empty, expected a JSON object", file)
	}
	if err != nil {
		var syntax *jsontext.SyntacticError
		if errors.As(err, &syntax) {
			return nil, fmt.Errorf("%s: byte %d: not valid JSON: %w", file, syntax.ByteOffset, syntax.Err)
		}
		return nil, fmt.Errorf("%s: not valid JSON: %w", file, err)
	}
	if value.Kind() != '{' {
		return nil, fmt.Errorf("%s: expected a JSON object, found %s", file, kindName(value.Kind()))
	}
	return &object{file: file, members: membersOf(value), used: map[string]bool{}, report: report}, nil
}

// membersOf splits an object that is known to be valid.
func membersOf(value jsontext.Value) map[string]jsontext.Value {
	members := map[string]jsontext.Value{}
	dec := jsontext.NewDecoder(bytes.NewReader(value))
	dec.ReadToken()
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			break
		}
		key := name.String()
		member, err := dec.ReadValue()
		if err != nil {
			break
		}
		members[key] = member.Clone()
	}
	return members
}

// get returns a member, and false when it is absent or null.
func (o *object) get(key string) (jsontext.Value, bool) {
	o.used[key] = true
	value, ok := o.members[key]
	return value, ok && value.Kind() != 'n'
}

func (o *object) wrong(key string, found jsontext.Value, expected string) {
	o.report.add("%s: %s%s is %s, expected %s", o.file, o.within, key, shorten(found), expected)
}

func (o *object) missing(key, expected string) {
	o.report.add("%s: %s%s is missing, expected %s", o.file, o.within, key, expected)
}

// integer reads a whole number in [low, high]; absent means def, and is a problem
// where def is lower than low.
func (o *object) integer(key string, def, low, high int) int {
	expected := fmt.Sprintf("an integer from %d to %d", low, high)
	value, ok := o.get(key)
	if !ok {
		if def < low {
			o.missing(key, expected)
		}
		return def
	}
	n, err := strconv.Atoi(string(value))
	if err != nil || n < low || n > high {
		o.wrong(key, value, expected)
		return low
	}
	return n
}

// number reads a number in [low, high]; absent means def, and is a problem where
// def is lower than low.
func (o *object) number(key string, def, low, high float64) float64 {
	expected := fmt.Sprintf("a number from %g to %g", low, high)
	value, ok := o.get(key)
	if !ok {
		if def < low {
			o.missing(key, expected)
		}
		return def
	}
	x, err := strconv.ParseFloat(string(value), 64)
	if err != nil || x < low || x > high {
		o.wrong(key, value, expected)
		return low
	}
	return x
}

// flag reads true or false; absent means def.
func (o *object) flag(key string, def bool) bool {
	value, ok := o.get(key)
	if !ok {
		return def
	}
	if kind := value.Kind(); kind != 't' && kind != 'f' {
		o.wrong(key, value, "true or false")
		return def
	}
	return value.Kind() == 't'
}

// text reads a string; absent means "".
func (o *object) text(key string) string {
	value, ok := o.get(key)
	if !ok {
		return ""
	}
	if value.Kind() != '"' {
		o.wrong(key, value, "a string")
		return ""
	}
	s, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		o.wrong(key, value, "a string")
	}
	return string(s)
}

// child reads an object; absent means nil.
func (o *object) child(key string) *object {
	value, ok := o.get(key)
	if !ok {
		return nil
	}
	if value.Kind() != '{' {
		o.wrong(key, value, "an object")
		return nil
	}
	return &object{
		file:    o.file,
		within:  o.within + key + ".",
		members: membersOf(value),
		used:    map[string]bool{},
		report:  o.report,
	}
}

// array splits an array into its values; absent means nil.
func (o *object) array(key string) []jsontext.Value {
	value, ok := o.get(key)
	if !ok {
		return nil
	}
	if value.Kind() != '[' {
		o.wrong(key, value, "an array")
		return nil
	}
	var values []jsontext.Value
	dec := jsontext.NewDecoder(bytes.NewReader(value))
	dec.ReadToken()
	for dec.PeekKind() != ']' {
		element, err := dec.ReadValue()
		if err != nil {
			break
		}
		values = append(values, element.Clone())
	}
	return values
}

// shorten quotes a JSON value in an error.
func shorten(value jsontext.Value) string {
	const most = 60
	if value == nil {
		return "absent"
	}
	if len(value) > most {
		return kindName(value.Kind()) + " of " + strconv.Itoa(len(value)) + " bytes"
	}
	return string(value)
}

func kindName(kind jsontext.Kind) string {
	switch kind {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 'n':
		return "null"
	}
	return "a boolean"
}

// refuseUnknown reports every member that no getter has asked for.
func (o *object) refuseUnknown() {
	known := sortedKeys(o.used)
	for _, key := range sortedKeys(o.members) {
		if !o.used[key] {
			o.report.add("%s: unknown key %s%s, expected one of %s", o.file, o.within, key, strings.Join(known, ", "))
		}
	}
}
