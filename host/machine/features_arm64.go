package machine

import "golang.org/x/sys/cpu"

func features() []string {
	a := &cpu.ARM64
	return present([]feature{
		{"NEON", a.HasASIMD},
		{"FP16", a.HasASIMDHP},
		{"DOTPROD", a.HasASIMDDP},
		{"FHM", a.HasASIMDFHM},
		{"I8MM", a.HasI8MM},
		{"SVE", a.HasSVE},
		{"SVE2", a.HasSVE2},
	})
}
