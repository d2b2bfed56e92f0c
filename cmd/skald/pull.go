package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"skald/cmd/skald/internal/hub"
	"skald/host/checkpoint"
)

func newPull() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pull DIR",
		Short: "Fetches the weights from the Hugging Face Hub",
		Long: `Fetches the files of a model that skald reads from the Hugging Face Hub into DIR,
and checks the result as inspect does. Every file is compared with the checksum that
the Hub gives for it. A pull that was interrupted goes on where it stopped when the
same command runs again; files that are there are not fetched again.

The weights have a licence of their own; it is shown, and its text is fetched too.`,
		Example:           "  skald pull music3\n  skald pull --revision v1.0 --endpoint https://mirror.example music3",
		Args:              exactArgs("DIR"),
		ValidArgsFunction: completeFolders,
	}
	flags := cmd.Flags()
	repo := flags.String("repo", "MiniMaxAI/MiniMax-Music3", "repository on the Hub, `OWNER/NAME`")
	revision := flags.String("revision", "main", "branch, tag or commit")
	endpoint := flags.String("endpoint", "https://huggingface.co", "`URL` of the Hub or of a mirror of it")
	parallel := flags.Int("parallel", 4, "`number` of files fetched at the same time, 1 to 16")
	dryRun := flags.Bool("dry-run", false, "only list what would be fetched")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *parallel < 1 || *parallel > 16 {
			return usagef("--parallel %d: want 1 to 16", *parallel)
		}
		if !strings.HasPrefix(*endpoint, "https://") && !strings.HasPrefix(*endpoint, "http://") {
			return usagef("--endpoint %q: want a URL that begins with https://", *endpoint)
		}
		client := &hub.Client{
			Endpoint: strings.TrimRight(*endpoint, "/"),
			Token:    os.Getenv("HF_TOKEN"),
			HTTP:     &http.Client{Transport: http.DefaultTransport},
		}
		listing, err := client.List(cmd.Context(), *repo, *revision)
		if err != nil {
			return err
		}
		p := pulling{cmd: cmd, client: client, listing: listing, dir: args[0], parallel: *parallel}
		return p.run(*dryRun)
	}
	return cmd
}

// pulling is one run of pull.
type pulling struct {
	cmd      *cobra.Command
	client   *hub.Client
	listing  hub.Listing
	dir      string
	parallel int
}

func (p *pulling) run(dryRun bool) error {
	out := p.cmd.OutOrStdout()
	files := neededFiles(p.listing.Files)
	if len(files) == 0 {
		return fmt.Errorf("%s has no file that a model in the diffusers layout needs (it has %s)", p.listing.Repo, count(len(p.listing.Files), "file"))
	}
	var total, missing int64
	for _, f := range files {
		total += f.Size
		missing += f.Size
		for _, name := range []string{"", ".part"} {
			if info, err := os.Stat(filepath.Join(p.dir, filepath.FromSlash(f.Path)) + name); err == nil {
				missing -= min(f.Size, info.Size())
				break
			}
		}
	}
	fmt.Fprintf(out, "%s at %s: %s of %d, %s, of which %s are missing in %s\n", p.listing.Repo, p.listing.Commit[:12],
		count(len(files), "file"), len(p.listing.Files), size(total), size(missing), p.dir)
	licence := p.listing.Licence
	if licence == "" {
		licence = "not named in its card; see its page"
	}
	fmt.Fprintf(out, "licence of the weights: %s (%s/%s)\n", licence, p.client.Endpoint, p.listing.Repo)
	if dryRun {
		for _, f := range files {
			fmt.Fprintf(out, "%10s  %s\n", size(f.Size), f.Path)
		}
		return nil
	}
	if err := os.MkdirAll(p.dir, 0o777); err != nil {
		return err
	}
	if err := checkDisk(p.dir, missing); err != nil {
		return err
	}
	if err := p.fetch(files, total, missing); err != nil {
		return fmt.Errorf("%w (what came is kept; the same command goes on from there)", err)
	}
	return p.check()
}

// fetch brings the files, the largest first, so that no large one is left for the end.
func (p *pulling) fetch(files []hub.File, total, missing int64) error {
	show := newMeter(p.cmd.ErrOrStderr())
	defer show.close()
	ctx, cancel := context.WithCancelCause(p.cmd.Context())
	defer cancel(nil)

	var have atomic.Int64
	var drawing sync.Mutex
	began, drawn := time.Now(), time.Time{}
	queue := make(chan hub.File)
	var workers sync.WaitGroup
	for range p.parallel {
		workers.Go(func() {
			for f := range queue {
				err := p.client.Fetch(ctx, p.listing, f, p.dir, func(n int64) {
					now := have.Add(n)
					drawing.Lock()
					defer drawing.Unlock()
					if time.Since(drawn) > 100*time.Millisecond {
						drawn = time.Now()
						rate := float64(max(0, now-(total-missing))) / time.Since(began).Seconds()
						show.show("pull", float64(now)/float64(total), fmt.Sprintf("%s of %s, %s/s", size(now), size(total), size(int64(rate))))
					}
				})
				if err != nil {
					cancel(err)
				}
			}
		})
	}
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b hub.File) int { return int(b.Size>>10 - a.Size>>10) })
send:
	for _, f := range files {
		select {
		case queue <- f:
		case <-ctx.Done():
			break send
		}
	}
	close(queue)
	workers.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	show.show("pull", 1, size(total))
	return nil
}

// check looks at the result as inspect does.
func (p *pulling) check() error {
	found := inspect(p.dir, false)
	if n := len(found.Problems); n > 0 {
		var errs []error
		for _, problem := range found.Problems {
			errs = append(errs, errors.New(problem))
		}
		return fmt.Errorf("%s was fetched, but cannot be used: %w", p.dir, errors.Join(errs...))
	}
	fmt.Fprintf(p.cmd.OutOrStdout(), "%s is complete. Try:\n  skald sing --model %[1]s --lyrics \"[verse]\" --instructions \"folk ballad\" -o song.wav\n", p.dir)
	return nil
}

// neededFiles leaves out what skald does not read: other packagings of the same weights,
// pictures, samples.
func neededFiles(files []hub.File) []hub.File {
	folders := append(checkpoint.Components(), "scheduler", "tokenizer")
	var needed []hub.File
	for _, f := range files {
		folder, name, nested := strings.Cut(f.Path, "/")
		switch {
		case !nested:
			upper := strings.ToUpper(f.Path)
			if f.Path == "modular_model_index.json" || f.Path == "skald.json" ||
				strings.HasPrefix(upper, "LICENSE") || strings.HasPrefix(upper, "NOTICE") {
				needed = append(needed, f)
			}
		case slices.Contains(folders, folder) && !strings.Contains(name, "/") &&
			(strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".safetensors")):
			needed = append(needed, f)
		}
	}
	return needed
}
