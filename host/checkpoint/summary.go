package checkpoint

import "fmt"

// Summary is what a checkpoint holds, for people.
type Summary struct {
	Name       string
	Lineage    string // the packaging
	Components []ComponentSummary
	Notes      []string // what is there, but not used
}

// ComponentSummary is what one component holds.
type ComponentSummary struct {
	Component  string
	Files      []string
	Tensors    int
	Parameters int64         // numbers in all tensors
	Bytes      int64         // of all tensors
	DTypes     map[DType]int // tensors of each type
}

// Summary counts what the checkpoint holds, component by component.
func (c *Checkpoint) Summary() Summary {
	s := Summary{Name: c.Name, Lineage: "diffusers folders"}
	for _, name := range Components() {
		part := c.components[name]
		if part == nil { // closed
			continue
		}
		sum := ComponentSummary{
			Component: name,
			Tensors:   len(part.tensors),
			Bytes:     part.bytes,
			DTypes:    map[DType]int{},
		}
		for _, f := range part.files {
			sum.Files = append(sum.Files, f.name)
		}
		for _, t := range part.tensors {
			sum.Parameters += int64(t.Elements())
			sum.DTypes[t.DType]++
		}
		s.Components = append(s.Components, sum)
	}
	if _, ok := c.ignoredHead(); ok {
		s.Notes = append(s.Notes, fmt.Sprintf("%s: %s is not used: the embeddings are tied", languageModel, lmHead))
	}
	if other := c.otherLineage(); other != "" {
		s.Notes = append(s.Notes, fmt.Sprintf("the %s lies beside the diffusers folders and is not read", other))
	}
	return s
}
