package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// maxText bounds a text file of lyrics or instructions: far more than a prompt holds.
const maxText = 1 << 20

// readText returns the text of a flag: the value itself, the contents of the file
// behind an @, or standard input for @-. A text that begins with an @ is written with
// two.
func readText(flag, value string, stdin io.Reader) (string, error) {
	name, isFile := strings.CutPrefix(value, "@")
	if !isFile {
		return value, nil
	}
	if strings.HasPrefix(name, "@") {
		return name, nil
	}
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return "", usagef("--%s: %w", flag, err)
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxText+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("--%s: %w", flag, err)
	case len(data) > maxText:
		return "", usagef("--%s: %s is longer than %d bytes", flag, name, maxText)
	case !utf8.Valid(data):
		return "", usagef("--%s: %s is not UTF-8 text", flag, name)
	}
	return strings.TrimPrefix(string(data), "\ufeff"), nil
}
