package engine

import (
	"errors"
	"fmt"

	"skald/host"
	"skald/host/music3"
)

// Auto is the precision that the device decides.
const Auto = "auto"

// choosePrecision returns the precision asked for, with the acoustic half raised to the
// checkpoint's floor. Auto is mixed, as the published server runs, or bf16 on a GPU where
// only that fits.
func (e *Engine) choosePrecision(o Options) (music3.Precision, error) {
	asked := o.Precision
	if asked == "" || asked == Auto {
		p, err := e.fittingPrecision(o)
		if err != nil {
			return "", err
		}
		asked = string(p)
	}
	if asked == "fp16" {
		return "", errors.New("precision fp16: nothing here computes in it. It would be for GPUs without bfloat16, " +
			"those below compute capability 8.0, which are not supported: use mixed, bf16 or fp32")
	}
	p, err := music3.ParsePrecision(asked)
	if err != nil {
		return "", err
	}
	raised := e.raised(p)
	if raised != p {
		e.info.Warnings = append(e.info.Warnings, fmt.Sprintf(
			"precision raised from %s to %s: this checkpoint's acoustic stages need %s", p, raised, e.manifest.AcousticPrecision))
	}
	return raised, nil
}

func (e *Engine) raised(p music3.Precision) music3.Precision {
	return p.RaiseAcoustic(music3.Precision(e.manifest.AcousticPrecision))
}

// fittingPrecision is auto. When nothing fits it is mixed, and openDevice tells.
func (e *Engine) fittingPrecision(o Options) (music3.Precision, error) {
	d, err := host.Open(o.Device, host.Options{Threads: 1, PackBytes: -1})
	if err != nil {
		return "", err
	}
	defer d.Close()
	if d.Info().Kind == "cpu" {
		return music3.Mixed, nil
	}
	for _, p := range []music3.Precision{music3.Mixed, music3.BF16} {
		m, err := PlanMemory(d, e.ck, e.ck.Config, e.raised(p), e.songs)
		if err != nil {
			return "", err
		}
		if m.Fits() {
			e.log.Info("precision auto", "precision", p, "needed", m.Need.Total(), "available", m.Have.Free)
			return p, nil
		}
	}
	return music3.Mixed, nil
}
