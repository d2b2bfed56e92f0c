package request

import (
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// ParseQuery reads the query of a URL, of the same fields as a body: texts as they are,
// numbers and true and false as in JSON. The Speech is only valid when there are no
// problems.
func ParseQuery(query string, r Rules) (Speech, []Problem) {
	p := newParser(&r)
	seen := map[string]bool{}
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		name, value, told := strings.Cut(pair, "=")
		name, flaw := unescape(name)
		if flaw == "" && !told {
			flaw = "has no value; send it as " + clip(name) + "=VALUE"
		}
		if flaw == "" {
			value, flaw = unescape(value)
		}
		f, known := lookup(name)
		switch {
		case flaw == "" && seen[name]:
			flaw = "occurs twice; send it once"
			p.report(name, &fault{code: DuplicateField, message: flaw})
		case flaw != "":
			p.report(name, &fault{code: InvalidValue, message: flaw})
		case !known:
			p.unknown(name, jsontext.Value(`""`))
		default:
			p.parameter(name, f, value)
		}
		if flaw != "" && known {
			p.bad[f.name] = true
		}
		seen[name] = true
	}
	return p.speech(), p.problems()
}

// parameter takes one field of a query, as the member of a body that says the same.
func (p *parser) parameter(name string, f *field, value string) {
	raw := jsontext.Value(value)
	switch {
	case f.kind == text:
		raw = quoted(value)
	case f.kind == boolean && (value == "true" || value == "false"):
	case f.kind != boolean && isNumber(value):
	default:
		p.bad[f.name] = true
		p.report(name, &fault{code: InvalidType, message: fmt.Sprintf("must be %s; got %s", f.kind, quote(value))})
		return
	}
	p.member(name, raw)
}

// unescape decodes a part of a query; what is wrong with it continues "NAME ".
func unescape(s string) (plain, flaw string) {
	plain, err := url.QueryUnescape(s)
	if err != nil {
		return strings.ToValidUTF8(s, "\uFFFD"), "is not escaped as in URLs: " + err.Error()
	}
	if !utf8.ValidString(plain) {
		return strings.ToValidUTF8(plain, "\uFFFD"), "is not valid text: it is not UTF-8"
	}
	return plain, ""
}

// isNumber tells whether all of s is a number of JSON.
func isNumber(s string) bool {
	const digits = "0123456789"
	return s != "" && strings.Contains("-"+digits, s[:1]) && strings.Contains(digits, s[len(s)-1:]) && jsontext.Value(s).IsValid()
}

// quoted is a valid text as JSON.
func quoted(s string) jsontext.Value {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		panic(err) // of text that is not UTF-8
	}
	return b
}
