package music3

import (
	"math"
	"testing"

	"skald/host/checkpoint"
)

// TestSchedulerSettings compares four steps, bit for bit, with what
// FlowMatchEulerDiscreteScheduler of diffusers 0.42.1 gives for settings that the
// published model does not use.
func TestSchedulerSettings(t *testing.T) {
	compared := 0
	for _, x := range []struct {
		c     checkpoint.Scheduler
		t, dt []uint32
	}{
		{
			c:  checkpoint.Scheduler{Shift: 3, NumTrainTimesteps: 1, InvertSigmas: true},
			t:  []uint32{0x00000000, 0x3dccccd0, 0x3e800000, 0x3f000000},
			dt: []uint32{0x3dccccd0, 0x3e199998, 0x3e800000, 0x3f000000},
		},
		{
			c:  checkpoint.Scheduler{Shift: 0.3, NumTrainTimesteps: 7, InvertSigmas: false},
			t:  []uint32{0x40e00000, 0x405435e4, 0x3fcec4ed, 0x3f22e8ba},
			dt: []uint32{0xbf06bca2, 0xbe78beb2, 0xbe0f3780, 0xbdba2e8c},
		},
		{
			c:  checkpoint.Scheduler{Shift: 1, NumTrainTimesteps: 1000, InvertSigmas: true},
			t:  []uint32{0x00000000, 0x437a0000, 0x43fa0000, 0x443b8000},
			dt: []uint32{0x3e800000, 0x3e800000, 0x3e800000, 0x3e800000},
		},
	} {
		for k, s := range schedule(len(x.t), x.c) {
			compared += 2
			if math.Float32bits(s.t) != x.t[k] || math.Float32bits(s.dt) != x.dt[k] {
				t.Errorf("%+v: step %d has time %v and length %v, recorded %v and %v",
					x.c, k, s.t, s.dt, math.Float32frombits(x.t[k]), math.Float32frombits(x.dt[k]))
			}
		}
	}
	t.Logf("%d values compared", compared)
}
