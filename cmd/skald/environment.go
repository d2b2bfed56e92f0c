package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"skald/server/request/nearest"
)

const environmentPrefix = "SKALD_"

// environmentName is the variable that stands for a flag: --api-key-file is
// SKALD_API_KEY_FILE.
func environmentName(flag string) string {
	return environmentPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// bindEnvironment lets every flag of every command take its value from environ when
// the command line does not give one, and names the variable in the flag's help. It
// returns warnings about variables that look like misspelt ones. An empty variable
// counts as absent.
func bindEnvironment(root *cobra.Command, environ []string) (warnings []string) {
	values := map[string]string{}
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok && strings.HasPrefix(name, environmentPrefix) && value != "" {
			values[name] = value
		}
	}
	known := map[string]bool{}
	walk(root, func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			known[environmentName(f.Name)] = true
			f.Usage += " [$" + environmentName(f.Name) + "]"
		})
	})
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		var err error
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			value, ok := values[environmentName(f.Name)]
			if !ok || f.Changed || f.Name == "help" || err != nil {
				return
			}
			if e := cmd.Flags().Set(f.Name, value); e != nil {
				if invalid, ok := errors.AsType[*pflag.InvalidValueError](e); ok {
					e = errors.Unwrap(invalid)
				}
				err = usagef("environment variable %s=%s", environmentName(f.Name), wrongValue(f, value, e))
			}
		})
		return err
	}
	for name := range values {
		if known[name] {
			continue
		}
		// Only a letter's difference: a cluster puts variables of its own beside ours
		// (SKALD_SERVICE_HOST for a service called skald), and tests have some.
		for _, k := range slices.Sorted(maps.Keys(known)) {
			if nearest.Distance(name, k) <= 1 {
				warnings = append(warnings, fmt.Sprintf("environment variable %s has no meaning; did you mean %s?", name, k))
				break
			}
		}
	}
	slices.Sort(warnings)
	return warnings
}

func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, c := range cmd.Commands() {
		walk(c, visit)
	}
}
