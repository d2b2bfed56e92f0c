package checkpoint

import (
	"fmt"
	"strings"
)

// problems collects everything that is wrong with a checkpoint, to say it at once.
type problems struct{ list []error }

func (p *problems) add(format string, args ...any) {
	p.list = append(p.list, fmt.Errorf(format, args...))
}

// include adds an error, or each of those that it collects; nil adds nothing.
func (p *problems) include(err error) {
	if many, ok := err.(*problems); ok {
		p.list = append(p.list, many.list...)
	} else if err != nil {
		p.list = append(p.list, err)
	}
}

// err returns nil when there is no problem.
func (p *problems) err() error {
	switch len(p.list) {
	case 0:
		return nil
	case 1:
		return p.list[0]
	}
	return p
}

// Error gives the count and then one line for each problem.
func (p *problems) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d problems:", len(p.list))
	for _, err := range p.list {
		fmt.Fprintf(&b, "\n  %v", err)
	}
	return b.String()
}

func (p *problems) Unwrap() []error { return p.list }

// clip shortens text from a file that goes into an error.
func clip(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%s... (%d bytes)", s[:most], len(s))
}
