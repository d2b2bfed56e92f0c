package engine

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"skald/host"
	"skald/host/checkpoint"
	"skald/host/compute"
	"skald/host/music3"
)

// Memory is what a model would take on a device, and what there is.
type Memory struct {
	Need      music3.Need
	Have      compute.MemoryInfo
	Precision music3.Precision
	Songs     int
	Positions int // of the KV cache
	Seconds   int // that a song may have, with a prompt of some hundred tokens

	plan music3.Plan
}

// Fits tells whether there is room, or nobody knows.
func (m Memory) Fits() bool { return m.Have.Total == 0 || m.Need.Total() <= m.Have.Free }

// What the KV cache has room for at least: a song of a minute, the default length.
const (
	leastSeconds = 60
	leastPrompt  = 500 // tokens
)

// PlanMemory works out what a model takes for so many songs at once, from the shapes and
// types of its tensors alone. The KV cache has room for that many of the longest songs,
// as far as half of what the rest leaves goes, and for one of them if that fits: songs wait
// for a place in it. Where it does not, the cache has room for as long a song as fits, and
// for one of a minute in any case.
func PlanMemory(dev compute.Device, src music3.Source, c checkpoint.Config, p music3.Precision, songs int) (Memory, error) {
	return planMemory(dev, src, c, p, songs, dev.Memory())
}

func planMemory(dev compute.Device, src music3.Source, c checkpoint.Config, p music3.Precision, songs int, have compute.MemoryInfo) (Memory, error) {
	rate := float64(c.ConditionEncoder.InputSamplingRate) / float64(c.ConditionEncoder.InputHopLength)
	longest := 2*c.LanguageModel.MaxPositions + maxPromptTokens
	plan := func(positions int) (Memory, error) {
		m := Memory{Precision: p, Songs: songs, Positions: positions, Have: have}
		m.Seconds = min(music3.MaxFrames, c.LanguageModel.MaxPositions-leastPrompt, positions/2-leastPrompt-1) * 1000 / int(1000*rate)
		var err error
		m.plan, err = music3.NewPlan(dev, src, c, p, songs, positions)
		m.Need = m.plan.Need
		return m, err
	}
	m, err := plan(longest)
	if err != nil {
		return m, err
	}
	if !m.Fits() {
		low, high := min(longest, 2*(int(leastSeconds*rate)+leastPrompt+1)), longest
		if m, err = plan(low); err != nil || !m.Fits() {
			return m, err
		}
		for high-low > longest/50 {
			next, err := plan((low + high) / 2)
			switch {
			case err != nil:
				return m, err
			case next.Fits():
				m, low = next, next.Positions
			default:
				high = next.Positions
			}
		}
		return m, nil
	}
	more := (songs - 1) * longest
	if have.Total > 0 {
		room := float64(have.Free-m.Need.Total()) / 2
		more = min(more, int(max(0, room)*float64(longest)/float64(max(m.Need.KVCache, 1))))
	}
	if more == 0 {
		return m, nil
	}
	return plan(longest + more)
}

// ReadBytes is how much of the checkpoint is read to load the model.
func (m Memory) ReadBytes() (n int64) {
	for _, r := range m.plan.Read {
		n += int64(len(r.Data))
	}
	return n
}

// String lists the parts.
func (m Memory) String() string {
	n := m.Need
	return fmt.Sprintf("%s in %s for %s of at most %d s: weights in place %s, weights of its own %s, KV cache %s, songs until they are rendered %s, working memory %s",
		gigabytes(n.Total()), m.Precision, songsOf(m.Songs), m.Seconds, gigabytes(n.InPlace), gigabytes(n.Private), gigabytes(n.KVCache), gigabytes(n.Songs), gigabytes(n.Scratch))
}

func songsOf(n int) string {
	if n == 1 {
		return "1 song"
	}
	return fmt.Sprintf("%d songs at once", n)
}

func gigabytes(n int64) string { return fmt.Sprintf("%.2f GB", float64(n)/1e9) }

// preload reads the weights that the plan names, component by component.
func (e *Engine) preload(ctx context.Context, plan music3.Plan, workers int, progress func(component string, bytes int64)) error {
	for from := 0; from < len(plan.Read); {
		component, parts := plan.Read[from].Component, [][]byte(nil)
		for ; from < len(plan.Read) && plan.Read[from].Component == component; from++ {
			parts = append(parts, plan.Read[from].Data)
		}
		if err := e.ck.Preload(ctx, parts, workers, func(bytes int64) { progress(component, bytes) }); err != nil {
			return err
		}
	}
	return nil
}

// openDevice opens the device and plans the model's memory on it. Nothing is loaded yet.
// Where packing is left to the program, there is only as much of it as fits.
func (e *Engine) openDevice(o Options, p music3.Precision) (Memory, error) {
	m, err := e.tryDevice(o.Device, host.Options{Threads: o.Threads, PackBytes: o.PackBytes}, p, e.songs)
	if err != nil {
		return m.Memory, err
	}
	e.device = m.device
	if m.Fits() || !m.certain {
		return m.Memory, nil
	}
	if o.PackBytes == 0 {
		less, err := e.tryDevice(o.Device, host.Options{Threads: o.Threads, PackBytes: -1}, p, e.songs)
		if err != nil {
			return m.Memory, err
		}
		if less.Fits() {
			e.device = less.device
			e.log.Info("weights are not packed, to save memory", "bytes", m.Need.Total()-less.Need.Total())
			return less.Memory, m.device.Close()
		}
		if err := less.device.Close(); err != nil {
			return m.Memory, err
		}
	}
	return m.Memory, e.refuse(o, m.Memory)
}

// trial is a device and what the model takes on it.
type trial struct {
	Memory
	device  compute.Device
	certain bool // the device can tell beforehand
}

func (e *Engine) tryDevice(device string, o host.Options, p music3.Precision, songs int) (t trial, err error) {
	if t.device, err = host.Open(device, o); err != nil {
		return t, err
	}
	_, t.certain = t.device.(compute.Estimator)
	if t.Memory, err = PlanMemory(t.device, e.ck, e.ck.Config, p, songs); err != nil {
		t.device.Close()
	}
	return t, err
}

// refuse is the error of a model for which there is no room: the numbers, and what would
// fit.
func (e *Engine) refuse(o Options, m Memory) error {
	var fits []string
	least := m
	try := func(pack int64, p music3.Precision, songs int, how string) error {
		t, err := e.tryDevice(o.Device, host.Options{Threads: o.Threads, PackBytes: pack}, p, songs)
		if err != nil {
			return err
		}
		if t.Need.Total() < least.Need.Total() {
			least = t.Memory
		}
		if t.Fits() {
			fits = append(fits, fmt.Sprintf("%s (%s)", how, gigabytes(t.Need.Total())))
		}
		return t.device.Close()
	}
	var err error
	floor := music3.Precision(e.manifest.AcousticPrecision)
	for _, p := range []music3.Precision{m.Precision, music3.Mixed, music3.BF16} {
		if p != p.RaiseAcoustic(floor) || p == music3.FP32 && m.Precision != p || p == music3.Mixed && m.Precision == music3.BF16 {
			continue
		}
		if p != m.Precision {
			err = cmp.Or(err, try(o.PackBytes, p, m.Songs, fmt.Sprintf("precision %s", p)))
		} else if o.PackBytes > 0 {
			err = cmp.Or(err, try(-1, p, m.Songs, "no packing"))
		}
		if m.Songs > 1 {
			err = cmp.Or(err, try(-1, p, 1, fmt.Sprintf("precision %s, 1 song and no packing", p)))
		}
	}
	if err != nil {
		return err
	}
	advice := fmt.Sprintf("nothing makes it fit, the least is %s: use a machine with more memory", least)
	if fits != nil {
		advice = "what fits: " + strings.Join(fits, "; ")
	}
	return fmt.Errorf("not enough memory: the model needs %s; available are %s of %s; %s", m, gigabytes(m.Have.Free), gigabytes(m.Have.Total), advice)
}
