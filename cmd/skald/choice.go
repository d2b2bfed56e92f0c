package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// choice is a flag that takes one of a few words.
type choice struct {
	value string
	words []string
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return strings.Join(c.words, "|") }

// Set is called by pflag, which puts the flag's name before the error.
func (c *choice) Set(s string) error {
	if !slices.Contains(c.words, s) {
		return fmt.Errorf("want %s", strings.Join(c.words, ", "))
	}
	c.value = s
	return nil
}

// choiceFlag adds a flag that takes one of words; "" as initial value stands for a
// default that is found later and that the usage describes.
func choiceFlag(cmd *cobra.Command, name, initial, usage string, words ...string) *choice {
	c := &choice{value: initial, words: words}
	cmd.Flags().Var(c, name, usage)
	complete(cmd, name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// complete registers shell completion for a flag that the caller has just added.
func complete(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // only for a flag that does not exist or was registered twice
	}
}

// completeFolders completes a flag or an argument that names a folder.
func completeFolders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}
