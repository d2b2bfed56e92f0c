package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skald/host/engine"
)

// singFlags are the flags of sing.
type singFlags struct {
	*engineFlags
	requestFile          string
	lyrics, instructions string
	instrumental         bool
	duration             float64
	seed                 uint64
	steps                int
	guidance             float64
	rng, promptMode      *choice
	output               string
	wavFormat            *choice
	sampleRate           int
	trace, replay        string
	server, key          string
}

func newSing() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sing",
		Short: "Makes one song into a file",
		Long: `Makes one song into a file: here, or as a job of the server that --server names.

--lyrics and --instructions take a text, @FILE for the contents of a file, or @-
for standard input; a text that begins with an @ is written with two.

The format follows from the suffix of --output: .wav, .flac, .mp3, .opus, or .pcm for
bare interleaved samples of 16 bits. A file of that name is replaced, but only when
the song is complete; without --output the first free of song.wav, song-2.wav, ...
is taken.

The same flags on the same build give the same song.`,
		Example: `  skald sing --lyrics "[verse] [chorus]" --instructions "fast, happy piano, drums" -o song.wav
  skald sing --model ~/MiniMax-Music3 --lyrics @lyrics.txt --instructions "folk ballad, warm voice" --duration 90
  skald sing --server http://songs.example.org:8087 --lyrics @lyrics.txt --instructions "folk ballad" -o song.mp3
  skald sing --instrumental --instructions "slow pads in F sharp minor, no drums" --seed 7`,
		Args: exactArgs(),
	}
	f := &singFlags{engineFlags: addEngineFlags(cmd, "warn")}
	flags := cmd.Flags()
	flags.StringVar(&f.requestFile, "request", "", "JSON `file` of a request, such as one that the web page saved, or -; flags beside it win")
	flags.StringVar(&f.lyrics, "lyrics", "", "`text` to sing, with section tags such as [verse] and [chorus], or @FILE")
	flags.StringVar(&f.instructions, "instructions", "", "`text` that describes style, voice and instruments, or @FILE")
	flags.BoolVar(&f.instrumental, "instrumental", false, "make a song without words; needs no lyrics")
	flags.Float64Var(&f.duration, "duration", 0, "`seconds` at most, 0.04 to 360: the model may end the song earlier (default: the checkpoint's, or 60)")
	flags.Uint64Var(&f.seed, "seed", 0, "`number` that makes the song another one, 0 to 2^64-1")
	flags.IntVar(&f.steps, "steps", 0, "steps of the flow transformer, 1 to 200 (default: the checkpoint's, or 30)")
	flags.Float64Var(&f.guidance, "guidance", 0, "guidance scale of the flow transformer, 0 to 20 (default: the checkpoint's, or 1.7)")
	f.rng = choiceFlag(cmd, "rng", "philox", "random numbers: philox, or torch for the songs that the reference pipeline makes of a seed", "philox", "torch")
	f.promptMode = choiceFlag(cmd, "prompt-mode", "friendly", "friendly moves text beside a section tag to its own line; reference drops it, as the reference pipeline does", "friendly", "reference")
	flags.StringVarP(&f.output, "output", "o", "", "`file` to write: .wav, .flac, .mp3, .opus or .pcm")
	complete(cmd, "output", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return suffixes(), cobra.ShellCompDirectiveFilterFileExt
	})
	f.wavFormat = choiceFlag(cmd, "wav-format", "pcm16", "samples of a .wav file", "pcm16", "pcm24", "float32")
	flags.IntVar(&f.sampleRate, "sample-rate", 0, "samples a second in the file, 8000 to 192000 (default: the model's, 48000 for .opus)")
	flags.StringVar(&f.trace, "trace", "", "safetensors `file` to write every stage's tensors to, see docs/numerics.md")
	flags.StringVar(&f.replay, "replay", "", "safetensors `file` with codes and noise to use instead of drawing them, such as one that --trace wrote; the song is at most as long as they are")
	flags.StringVar(&f.server, "server", "", "`URL` of a skald server that makes the song as a job; interrupting the command cancels it")
	flags.StringVar(&f.key, "key", "", "API `key` of --server; others on this machine can read it in the list of processes, so prefer the variable")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return f.run(cmd) }
	return cmd
}

func (f *singFlags) run(cmd *cobra.Command) (err error) {
	ctx, stderr := cmd.Context(), cmd.ErrOrStderr()
	if f.requestFile != "" {
		if err := f.readRequest(cmd, f.requestFile); err != nil {
			return err
		}
	}
	if err := f.readTexts(cmd.InOrStdin()); err != nil {
		return err
	}
	if f.output == "" {
		f.output = freeName("song", ".wav")
	}
	if f.server != "" {
		return f.runRemote(cmd)
	}
	format, err := f.format(cmd)
	if err != nil {
		return err
	}
	var replay *engine.Replay
	if f.replay != "" {
		if replay, err = readReplay(f.replay); err != nil {
			return fmt.Errorf("--replay: %w", err)
		}
	}
	if f.trace != "" && filepath.Clean(f.trace) == filepath.Clean(f.output) {
		return usagef("--trace and --output both name %s: the song and its trace need two files", f.output)
	}
	// Opened before any work, so that an hour's song does not end at a closed door.
	out, err := createAtomic(f.output)
	if err != nil {
		return err
	}
	defer out.discard()
	tracing, err := openTrace(f.trace)
	if err != nil {
		return err
	}
	defer tracing.discard()

	show := newDisplay(stderr)
	defer show.close()
	options, err := f.options(1, f.logger(show.log()), show.load)
	if err != nil {
		return err
	}
	e, err := engine.Open(ctx, options)
	if err != nil {
		return fmt.Errorf("loading %s: %w", f.modelName(), cause(ctx, err))
	}
	defer func() { err = errors.Join(err, e.Close()) }()

	r, err := f.request(cmd, e)
	if err != nil {
		return err
	}
	r.Replay, r.Progress = replay, show.song
	if tracing != nil {
		r.Trace = tracing.add
	}
	begin := time.Now()
	song, err := e.Sing(ctx, r)
	took := time.Since(begin)
	if err != nil {
		return requestFault(cause(ctx, err))
	}
	if err := format.write(out, song, e.Info()); err != nil {
		return fmt.Errorf("writing %s: %w", f.output, err)
	}
	if err := out.commit(); err != nil {
		return fmt.Errorf("writing %s: %w", f.output, err)
	}
	if err := tracing.commit(song); err != nil {
		return fmt.Errorf("writing %s: %w", f.trace, err)
	}
	show.close()
	for _, w := range song.Warnings {
		fmt.Fprintln(stderr, "warning:", w)
	}
	report(cmd.OutOrStdout(), f.output, song, e.Info(), float64(len(song.Samples[0]))/float64(song.SampleRate), took)
	return nil
}

// readTexts resolves @FILE and says what is missing.
func (f *singFlags) readTexts(stdin io.Reader) (err error) {
	if f.lyrics == "@-" && f.instructions == "@-" {
		return usagef("--lyrics and --instructions cannot both come from standard input")
	}
	if f.lyrics, err = readText("lyrics", f.lyrics, stdin); err != nil {
		return err
	}
	if f.instructions, err = readText("instructions", f.instructions, stdin); err != nil {
		return err
	}
	const try = `for example --lyrics "[verse] [chorus]" --instructions "fast, happy piano, drums"`
	switch {
	case f.lyrics == "" && f.instructions == "":
		return usagef("what shall it be? Give --lyrics and --instructions, %s", try)
	case f.lyrics == "" && !f.instrumental:
		return usagef("--lyrics is missing: give the words, or --instrumental for a song without")
	}
	return nil
}

// request fills in what the command line said; the rest keeps the checkpoint's
// defaults.
func (f *singFlags) request(cmd *cobra.Command, e *engine.Engine) (engine.Request, error) {
	r := e.Defaults()
	r.Lyrics, r.Instrumental, r.Seed = f.lyrics, f.instrumental, f.seed
	if f.instructions != "" {
		r.Instructions = f.instructions
	}
	if r.Instructions == "" && e.Info().BuiltIn {
		r.Instructions = "medium tempo, piano, drums and bass"
		fmt.Fprintf(cmd.ErrOrStderr(), "skald: no --instructions: taking %q\n", r.Instructions)
	}
	r.RNG, r.PromptMode = engine.RNG(f.rng.value), engine.PromptMode(f.promptMode.value)
	if cmd.Flags().Changed("steps") {
		r.Steps = f.steps
	}
	if cmd.Flags().Changed("guidance") {
		r.Guidance = f.guidance
	}
	if f.replay != "" {
		r.MaxFrames = e.Info().MaxFrames // as long as the codes, unless told otherwise
	}
	if cmd.Flags().Changed("duration") {
		frames, err := e.Frames(f.duration)
		if err != nil {
			return r, usagef("--duration %v: %w", f.duration, err)
		}
		r.MaxFrames = frames
	}
	return r, nil
}

// requestFault makes a usage error of one that says the request is at fault, and names
// the flags by their names here.
func requestFault(err error) error {
	var fault *engine.RequestError
	if !errors.As(err, &fault) {
		return err
	}
	return &usageError{err}
}

// cause prefers what ended the context, such as a signal, to what the engine made of
// it.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// freeName returns the first of base.ext, base-2.ext, ... that no file has.
func freeName(base, ext string) string {
	name := base + ext
	for n := 2; ; n++ {
		if _, err := os.Lstat(name); errors.Is(err, os.ErrNotExist) {
			return name
		}
		name = fmt.Sprintf("%s-%d%s", base, n, ext)
	}
}

// report tells what became of the song.
func report(w io.Writer, path string, song *engine.Song, info engine.Info, seconds float64, took time.Duration) {
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("file", "%s", filepath.Clean(path))
	if info.Device == "" { // a server's
		row("model", "%s", info.Name)
	} else {
		row("model", "%s, %s, %s", info.Name, info.Precision, info.Device)
	}
	row("song", "%.1f s stereo at %d Hz, level %.3f RMS, peak %.3f", seconds, song.SampleRate, song.RMS, song.Peak)
	row("seed", "%d", song.Seed)
	row("frames", "%d, after a prompt of %d tokens", song.Frames, song.PromptTokens)
	row("ended by", "%s", endReason(song.EndReason))
	var timings []string
	for _, t := range song.Timings {
		timings = append(timings, fmt.Sprintf("%s %.2f s", t.Stage, t.Duration.Seconds()))
	}
	loading := ""
	if info.LoadTime > 0 {
		loading = fmt.Sprintf("; loading before that %.1f s", info.LoadTime.Seconds())
	}
	row("time", "%.2f s: %s%s", took.Seconds(), strings.Join(timings, ", "), loading)
	row("speed", "%.2f s of music a second", seconds/took.Seconds())
}

func endReason(r engine.EndReason) string {
	switch r {
	case engine.EndEOS:
		return "the model (eos)"
	case engine.EndLength:
		return "the length asked for (length)"
	case engine.EndFinished:
		return "request (finished)"
	}
	return string(r)
}
