package request

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"skald/server/request/nearest"
)

// maxProblems bounds the list in a reply: a body of 1 MiB can hold 200,000 problems.
const maxProblems = 64

// given is a field the caller set, and what the caller called it.
type given struct {
	name  string
	value value
}

type parser struct {
	rules *Rules
	given map[string]given // by the field's own name
	bad   map[string]bool  // fields that have a problem already, by their own name
	found []Problem
	more  int // problems beyond maxProblems

	sourceJob string // whose request takes the place of the defaults; "": none
}

func newParser(r *Rules) *parser {
	return &parser{rules: r, given: map[string]given{}, bad: map[string]bool{}}
}

// report adds a problem of the member called param.
func (p *parser) report(param string, f *fault) {
	param = clip(param)
	name := param
	if name == "" {
		name = `""`
	}
	p.add(Problem{
		Code: f.code, Message: name + " " + f.message, Suggestion: f.suggestion,
		Param: param, Pointer: string(jsontext.Pointer("").AppendToken(param)),
	})
}

// reportBody adds a problem of the whole body.
func (p *parser) reportBody(code Code, message string) {
	p.add(Problem{Code: code, Message: message})
}

func (p *parser) add(problem Problem) {
	if len(p.found) >= maxProblems {
		p.more++
		return
	}
	if problem.Suggestion != "" {
		problem.Message += fmt.Sprintf("; did you mean %q?", problem.Suggestion)
	}
	p.found = append(p.found, problem)
}

func (p *parser) problems() []Problem {
	if p.more > 0 {
		p.found = append(p.found, Problem{
			Code:    TooManyProblems,
			Message: fmt.Sprintf("%d more problems are not listed", p.more),
		})
	}
	return p.found
}

// walk reads the body member by member and reports whether it is one JSON object.
func (p *parser) walk(body []byte) bool {
	switch start := bytes.TrimLeft(body, " \t\r\n"); {
	case len(start) == 0:
		p.reportBody(InvalidJSON, "the body is empty; expected a JSON object")
		return false
	case bytes.HasPrefix(start, []byte("\uFEFF")):
		p.reportBody(InvalidJSON, "the body begins with a byte order mark; JSON has none")
		return false
	}
	// Duplicates and broken text are let through here and reported with their member.
	dec := jsontext.NewDecoder(bytes.NewBuffer(body),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if k := dec.PeekKind(); k != '{' && k != 0 {
		p.reportBody(InvalidType, "the body must be a JSON object; got "+describe(k))
		return false
	}
	if _, err := dec.ReadToken(); err != nil {
		p.reportBody(InvalidJSON, "the body "+syntax(body, err))
		return false
	}
	seen := map[string]bool{}
	for dec.PeekKind() != '}' {
		raw, err := dec.ReadValue()
		if err != nil {
			p.reportBody(InvalidJSON, "the body "+syntax(body, err))
			return false
		}
		name, nameErr := unquote(raw)
		v, err := dec.ReadValue()
		if err != nil {
			p.report(name, &fault{code: InvalidJSON, message: syntax(body, err)})
			return false
		}
		switch {
		case nameErr != nil:
			p.report(name, &fault{code: InvalidValue, message: "is not a valid name: " + nameErr.Error()})
		case seen[name]:
			if f, ok := lookup(name); ok {
				p.bad[f.name] = true
			}
			p.report(name, &fault{code: DuplicateField, message: "occurs twice; send it once"})
		default:
			seen[name] = true
			p.member(name, v)
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		p.reportBody(InvalidJSON, "the body "+syntax(body, err))
		return false
	}
	if rest := bytes.TrimLeft(body[dec.InputOffset():], " \t\r\n"); len(rest) > 0 {
		p.reportBody(InvalidJSON, fmt.Sprintf("data follows the JSON object at byte %d", len(body)-len(rest)))
		return false
	}
	return true
}

// syntax says where the body stops being JSON, which is the end of the walk.
func syntax(body []byte, err error) string {
	message, offset := err.Error(), int64(len(body))
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		message, offset = e.Err.Error(), e.ByteOffset
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		message = "it ends too early"
	}
	rest := bytes.TrimPrefix(body[min(offset, int64(len(body))):], []byte("-"))
	if bytes.HasPrefix(rest, []byte("NaN")) || bytes.HasPrefix(rest, []byte("Inf")) {
		message = "JSON has no NaN and no Infinity; send a finite number"
	}
	return fmt.Sprintf("is not valid JSON at byte %d: %s", offset, message)
}

// member takes one member of the body.
func (p *parser) member(name string, raw jsontext.Value) {
	f, ok := lookup(name)
	if !ok {
		p.unknown(name, raw)
		return
	}
	if raw.Kind() == 'n' {
		return // null equals absent
	}
	v, flaw := f.decode(raw)
	if flaw == nil && f.jobs && p.rules.Source == nil {
		flaw = &fault{code: UnsupportedField, message: "is not supported here: only jobs have it, POST /v1/music/jobs"}
	}
	if flaw == nil {
		if flaw = f.judge(p.rules, v); flaw != nil && (f.kind == number || f.kind == integer) {
			flaw.message += "; got " + clip(string(raw))
		}
	}
	if flaw != nil {
		p.bad[f.name] = true
		p.report(name, flaw)
		return
	}
	if first, twice := p.given[f.name]; twice && first.value != v {
		p.bad[f.name] = true
		p.report(name, &fault{code: ConflictingField, message: fmt.Sprintf(
			"and %s are two names of one field and have different values; send one of them", first.name)})
		return
	} else if twice {
		return
	}
	p.given[f.name] = given{name, v}
}

func (p *parser) unknown(name string, raw jsontext.Value) {
	if reason, ok := refused[name]; ok {
		// Absent is what the field should be, and null equals absent.
		if raw.Kind() != 'n' {
			p.report(name, &fault{code: UnsupportedField, message: "is not supported: " + reason})
		}
		return
	}
	f := &fault{code: UnknownField, message: "is not a field of this request"}
	if len(p.found) < maxProblems {
		f.suggestion = nearest.Name(name, p.rules.fieldNames())
	}
	if f.suggestion == "" {
		f.message += "; its fields are " + strings.Join(p.rules.fieldNames(), ", ")
	}
	p.report(name, f)
}

// decode reads a value of the field's kind.
func (f *field) decode(raw jsontext.Value) (v value, flaw *fault) {
	got := raw.Kind()
	if got == '{' && f.object != "" {
		return v, &fault{code: InvalidType, message: "must be a string; got an object: " + f.object}
	}
	var err error
	switch {
	case f.kind == text && got == '"':
		v.text, err = unquote(raw)
	case f.kind == boolean && (got == 't' || got == 'f'):
		v.flag = got == 't'
	case f.kind == number && got == '0':
		v.number, err = parseNumber(string(raw))
	case f.kind == integer && got == '0':
		v.integer, err = parseInteger(string(raw))
	default:
		return v, &fault{code: InvalidType, message: fmt.Sprintf("must be %s; got %s", f.kind, describe(got))}
	}
	switch {
	case errors.Is(err, errFraction):
		return v, &fault{code: InvalidType, message: "must be a whole number; got " + clip(string(raw))}
	case errors.Is(err, errRange) && f.kind == integer && f.bounds == nil:
		return v, &fault{code: OutOfRange, message: "must be a whole number from 0 to 18446744073709551615; got " + clip(string(raw))}
	case errors.Is(err, errRange):
		return v, &fault{code: OutOfRange, message: "is out of range; got " + clip(string(raw))}
	case err != nil:
		return v, &fault{code: InvalidValue, message: "is not valid text: " + err.Error()}
	}
	return v, nil
}

// unquote decodes a JSON string. Broken text is replaced by U+FFFD and is an error.
func unquote(raw jsontext.Value) (string, error) {
	b, err := jsontext.AppendUnquote(nil, raw)
	if err == nil {
		return string(b), nil
	}
	if !utf8.Valid(raw) {
		return string(b), errors.New("it is not UTF-8")
	}
	return string(b), errors.New("it has half a surrogate pair")
}

// describe names the JSON type of a value.
func describe(k jsontext.Kind) string {
	switch k {
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 't', 'f':
		return k.String()
	case '{':
		return "an object"
	case '[':
		return "an array"
	}
	return "null"
}

// clip shortens a text of the caller for a message.
func clip(s string) string {
	const most = 100 // bytes
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

func quote(s string) string { return strconv.Quote(clip(s)) }
