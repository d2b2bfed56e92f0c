package main

import (
	"io"
	"os"
	"slices"
	"strings"
)

// keys gathers the keys of the flag and the file.
func (f *serveFlags) keys() ([]string, error) {
	keys := slices.Clone(f.apiKeys)
	if f.apiKeyFile == "" {
		return keys, nil
	}
	file, err := os.Open(f.apiKeyFile)
	if err != nil {
		return nil, usagef("--api-key-file: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxText+1))
	if err != nil || len(data) > maxText {
		return nil, usagef("--api-key-file %s: cannot be read, or is longer than %d bytes: %v", f.apiKeyFile, maxText, err)
	}
	before := len(keys)
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			keys = append(keys, line)
		}
	}
	if len(keys) == before {
		return nil, usagef("--api-key-file %s holds no key", f.apiKeyFile)
	}
	return keys, nil
}
