package main

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"skald/host/engine"
)

// engineFlags are the flags of every command that loads a model.
type engineFlags struct {
	model     string
	device    string
	precision *choice
	threads   int
	pack      *packFlag
	logLevel  *choice
}

func addEngineFlags(cmd *cobra.Command, logLevel string) *engineFlags {
	f := &engineFlags{}
	flags := cmd.Flags()
	flags.StringVar(&f.model, "model", "", "`folder` of the checkpoint; without it the built-in demonstration model")
	complete(cmd, "model", completeFolders)
	flags.StringVar(&f.device, "device", "auto", "auto (the first GPU if there is one), cpu, cuda or cuda:N")
	complete(cmd, "device", cobra.FixedCompletions([]string{"auto", "cpu", "cuda"}, cobra.ShellCompDirectiveNoFileComp))
	f.precision = choiceFlag(cmd, "precision", "auto",
		"arithmetic of the model: fp32 everywhere, mixed (language side bf16, acoustic side fp32) or bf16 everywhere; auto: mixed, or bf16 on a GPU where only that fits; fp16 is not supported yet",
		"auto", "fp32", "mixed", "bf16", "fp16")
	flags.IntVar(&f.threads, "threads", 0, "processor cores to use; 0: all that the machine or container offers")
	f.pack = addPackFlag(cmd)
	f.logLevel = choiceFlag(cmd, "log-level", logLevel, "how much to log to standard error", "debug", "info", "warn", "error")
	return f
}

// logger logs as text to w, from the level asked for.
func (f *engineFlags) logger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: f.level()}))
}

func (f *engineFlags) level() slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel.value)); err != nil {
		panic(err) // the flag takes only names of levels
	}
	return level
}

// options are those of an engine that makes so many songs at once.
func (f *engineFlags) options(songs int, log *slog.Logger, progress func(engine.LoadProgress)) (engine.Options, error) {
	if f.threads < 0 {
		return engine.Options{}, usagef("--threads %d: want 1 or more, or 0 for all cores", f.threads)
	}
	return engine.Options{
		ModelDir: f.model, Device: f.device, Threads: f.threads, Precision: f.precision.value,
		PackBytes: f.pack.bytes, Songs: songs, Logger: log, Progress: progress,
	}, nil
}

// modelName is how messages call the model that is loaded.
func (f *engineFlags) modelName() string {
	if f.model == "" {
		return "the built-in demonstration model"
	}
	return fmt.Sprintf("the model in %s", f.model)
}
