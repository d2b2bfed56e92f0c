package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"skald/server/request/nearest"
)

// newRoot returns the command with all its subcommands.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "skald",
		Short: "Turns lyrics and a description into a song",
		Long: `skald makes songs with the open-weights model MiniMax-Music3. A small
demonstration model is built in, so everything works without a download.

Every flag can also be given as the environment variable shown in brackets
behind it; a flag on the command line wins.

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted, 143 terminated.`,
		Example: `  skald sing --lyrics "[verse] [chorus]" --instructions "fast, happy piano, drums" -o song.wav
  skald serve`,
		Version:       readBuildFacts().Version,
		Args:          cobra.ArbitraryArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			near := nearest.Name(args[0], commandNames(cmd))
			return usagef("there is no command %q%s; `skald --help` lists the commands", args[0], didYouMean(near))
		},
	}
	root.AddCommand(
		newPull(),
		newSing(),
		newServe(),
		newInspect(),
		newSynth(),
		newBench(),
		newDoctor(),
		newVersion(),
	)
	root.SetFlagErrorFunc(flagError)
	return root
}

func commandNames(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return names
}

// flagError turns pflag's complaint into a usage error that names a near flag.
func flagError(cmd *cobra.Command, err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return usagef("--%s %s", invalid.GetFlag().Name, wrongValue(invalid.GetFlag(), invalid.GetValue(), errors.Unwrap(invalid)))
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return &usageError{err}
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	hint := didYouMean(prefixed("--", nearest.Name(unknown.GetSpecifiedName(), names)))
	return usagef("%w%s; `%s --help` lists the flags", err, hint, cmd.CommandPath())
}

// wrongValue says what a flag takes instead of a value that it refused.
func wrongValue(f *pflag.Flag, value string, err error) string {
	takes := map[string]string{
		"int":     "a whole number",
		"int64":   "a whole number",
		"uint64":  "a whole number from 0 to 18446744073709551615",
		"float64": "a number",
		"bool":    "true or false",
	}
	if want, ok := takes[f.Value.Type()]; ok {
		return fmt.Sprintf("%q: want %s", value, want)
	}
	if f.Value.Type() == "duration" {
		return fmt.Sprintf("%q: want a time such as 90s or 1h30m", value)
	}
	return fmt.Sprintf("%q: %v", value, err)
}

// exactArgs is cobra.ExactArgs with an error that says what is missing.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usagef("%s is missing: %s", names[len(args)], cmd.UseLine())
		case len(args) > len(names):
			return usagef("%q is one argument too many: %s", args[len(names)], cmd.UseLine())
		}
		return nil
	}
}

func prefixed(prefix, name string) string {
	if name == "" {
		return ""
	}
	return prefix + name
}

func didYouMean(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", name)
}
