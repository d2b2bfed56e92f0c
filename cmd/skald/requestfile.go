package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
)

// requestFlags are the fields of a request, as the API and the web page write them to a
// file, and the flags of sing that say the same.
var requestFlags = map[string]string{
	"input": "lyrics", "lyrics": "lyrics",
	"instructions": "instructions", "description": "instructions", "prompt": "instructions", "caption": "instructions",
	"audio_duration": "duration", "duration": "duration", "duration_seconds": "duration",
	"seed": "seed", "num_inference_steps": "steps", "steps": "steps", "guidance_scale": "guidance",
	"instrumental": "instrumental", "prompt_mode": "prompt-mode", "sample_rate": "sample-rate",
	"response_format": "output",
}

// requestElsewhere are fields that mean something to a server alone.
var requestElsewhere = []string{"model", "voice", "speed", "stream", "stream_format"}

// readRequest sets the flags that a request's file has a value for, where the command
// line does not say otherwise.
func (f *singFlags) readRequest(cmd *cobra.Command, name string) error {
	data, err := readRequestFile(name, cmd.InOrStdin())
	if err != nil {
		return err
	}
	var fields map[string]jsontext.Value
	if err := json.Unmarshal(data, &fields); err != nil {
		return usagef("--request %s is not a request, a JSON object with fields such as input and instructions: %w", name, err)
	}
	by := map[string]string{} // flag: the field that set it
	given := map[string]bool{}
	for _, flag := range requestFlags {
		given[flag] = cmd.Flags().Changed(flag)
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		value := fields[field]
		flag, known := requestFlags[field]
		switch {
		case value.Kind() == 'n': // null equals absent
			continue
		case slices.Contains(requestElsewhere, field):
			fmt.Fprintf(cmd.ErrOrStderr(), "skald: %s of --request %s has no effect here\n", field, name)
			continue
		case !known:
			return usagef("--request %s: %q is not a field that sing knows; it knows %s", name, field, strings.Join(slices.Sorted(maps.Keys(requestFlags)), ", "))
		case by[flag] != "":
			return usagef("--request %s: %s and %s are two names of one field; keep one", name, by[flag], field)
		}
		by[flag] = field
		if given[flag] {
			continue
		}
		text, err := flagText(flag, value)
		if err == nil {
			err = cmd.Flags().Set(flag, text)
		}
		if err != nil {
			return usagef("--request %s: %s: %w", name, field, err)
		}
	}
	return nil
}

// flagText is a member's value as its flag takes it.
func flagText(flag string, value jsontext.Value) (string, error) {
	text := string(value)
	isText := map[string]bool{"lyrics": true, "instructions": true, "prompt-mode": true, "output": true}[flag]
	if isText != (value.Kind() == '"') {
		return "", fmt.Errorf("%.40s is not a value for it", text)
	}
	if isText {
		if err := json.Unmarshal(value, &text); err != nil {
			return "", err
		}
	}
	switch flag {
	case "lyrics", "instructions":
		// A file from somebody else must not name files of this machine.
		if strings.HasPrefix(text, "@") {
			text = "@" + text
		}
	case "output":
		if !slices.Contains(suffixes(), text) {
			return "", fmt.Errorf("%q is not one of %s", text, strings.Join(suffixes(), ", "))
		}
		return freeName("song", "."+text), nil
	}
	return text, nil
}

func readRequestFile(name string, stdin io.Reader) ([]byte, error) {
	in := stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, usagef("--request: %w", err)
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, maxText+1))
	if err != nil {
		return nil, fmt.Errorf("--request: %w", err)
	}
	if len(data) > maxText {
		return nil, usagef("--request: %s is longer than %d bytes", name, maxText)
	}
	return data, nil
}
