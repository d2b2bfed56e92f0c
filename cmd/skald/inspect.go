package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"skald/host/checkpoint"
	"skald/host/music3"
)

// inspection is what inspect prints.
type inspection struct {
	Folder     string                `json:"folder"`
	Name       string                `json:"name,omitempty"`
	Lineage    string                `json:"lineage,omitempty"` // how the weights are packaged
	Title      string                `json:"title,omitempty"`
	Notice     string                `json:"notice,omitempty"`
	Components []inspectionComponent `json:"components"`
	Memory     []memoryNeed          `json:"memory"`
	Floor      string                `json:"acoustic_precision,omitempty"` // least precision of the acoustic stages
	Notes      []string              `json:"notes"`
	Problems   []string              `json:"problems"`
	Tensors    []inspectionTensor    `json:"tensors,omitempty"`
}

type inspectionComponent struct {
	Name       string         `json:"name"`
	Files      []string       `json:"files"`
	Tensors    int            `json:"tensors"`
	Parameters int64          `json:"parameters"`
	Bytes      int64          `json:"bytes"`
	DTypes     map[string]int `json:"dtypes"` // tensors of each type
}

type inspectionTensor struct {
	Component string `json:"component"`
	Name      string `json:"name"`
	DType     string `json:"dtype"`
	Shape     []int  `json:"shape"`
}

func newInspect() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inspect DIR",
		Short: "Says what a checkpoint holds and everything that is wrong with it",
		Long: `Says what a checkpoint folder holds: how it is packaged, its components, files,
types and sizes, and the memory it needs in each precision. A checkpoint that does
not hold what its settings promise is listed with everything that is wrong, and the
exit code is 1. The weights' values are not read.`,
		Example:           "  skald inspect ~/MiniMax-Music3\n  skald inspect --tensors --json ~/MiniMax-Music3",
		Args:              exactArgs("DIR"),
		ValidArgsFunction: completeFolders,
	}
	tensors := cmd.Flags().Bool("tensors", false, "list every tensor")
	asJSON := cmd.Flags().Bool("json", false, "print as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		found := inspect(args[0], *tensors)
		if *asJSON {
			if err := printJSON(cmd.OutOrStdout(), found); err != nil {
				return err
			}
		} else {
			found.print(cmd.OutOrStdout())
		}
		if n := len(found.Problems); n > 0 {
			return fmt.Errorf("%s cannot be used: %s", args[0], count(n, "problem"))
		}
		return nil
	}
	return cmd
}

// inspect opens a checkpoint and describes it as far as that goes.
func inspect(dir string, tensors bool) inspection {
	found := inspection{Folder: dir, Components: []inspectionComponent{}, Notes: []string{}, Problems: []string{}}
	c, err := checkpoint.Open(dir)
	if err != nil {
		found.Problems = problemLines(err)
		return found
	}
	defer c.Close()
	s := c.Summary()
	found.Name, found.Lineage = s.Name, s.Lineage
	found.Title, found.Notice = c.Manifest.Title, c.Manifest.Notice
	found.Floor = c.Manifest.AcousticPrecision
	found.Notes = append(found.Notes, s.Notes...)
	for _, part := range s.Components {
		found.Components = append(found.Components, describeComponent(dir, part))
		if !tensors {
			continue
		}
		for _, name := range c.Names(part.Component) {
			t, _ := c.Tensor(part.Component, name)
			found.Tensors = append(found.Tensors, inspectionTensor{part.Component, name, string(t.DType), t.Shape})
		}
	}
	if err := c.Check(); err != nil {
		found.Problems = problemLines(err)
		return found
	}
	if found.Memory, err = memoryNeeds(c, c.Config, 0); err != nil {
		found.Problems = problemLines(err)
	}
	return found
}

func describeComponent(dir string, s checkpoint.ComponentSummary) inspectionComponent {
	part := inspectionComponent{
		Name: s.Component, Tensors: s.Tensors, Parameters: s.Parameters, Bytes: s.Bytes, DTypes: map[string]int{},
	}
	for _, file := range s.Files {
		if rel, err := filepath.Rel(dir, file); err == nil {
			file = rel
		}
		part.Files = append(part.Files, file)
	}
	for dtype, n := range s.DTypes {
		part.DTypes[string(dtype)] = n
	}
	return part
}

// problemLines returns one line for each problem.
func problemLines(err error) []string {
	var check *checkpoint.CheckError
	if errors.As(err, &check) {
		var lines []string
		for _, p := range check.Problems {
			lines = append(lines, p.String())
		}
		return lines
	}
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	if len(lines) > 1 && strings.HasSuffix(lines[0], ":") {
		lines = lines[1:] // a heading that counts the rest
	}
	return lines
}

func (i inspection) print(w io.Writer) {
	fmt.Fprintf(w, "%s\n", i.Folder)
	for _, row := range [][2]string{{"name", i.Name}, {"lineage", i.Lineage}, {"title", i.Title}, {"notice", i.Notice}} {
		if row[1] != "" {
			fmt.Fprintf(w, "%-8s %s\n", row[0], row[1])
		}
	}
	if len(i.Components) > 0 {
		fmt.Fprintf(w, "\n%-18s %8s %12s %10s  %s\n", "component", "tensors", "parameters", "bytes", "types, files")
	}
	for _, c := range i.Components {
		fmt.Fprintf(w, "%-18s %8d %12s %10s  %s, %s\n", c.Name, c.Tensors, millions(c.Parameters), size(c.Bytes),
			strings.Join(slices.Sorted(maps.Keys(c.DTypes)), " "), count(len(c.Files), "file"))
		for _, f := range c.Files {
			fmt.Fprintf(w, "  %s\n", f)
		}
	}
	if len(i.Memory) > 0 {
		fmt.Fprintln(w)
		printNeeds(w, i.Memory, func(m memoryNeed) string {
			if m.Precision == music3.BF16 && i.Floor == "fp32" {
				return "(raised to mixed: acoustic_precision is fp32)"
			}
			return ""
		})
	}
	for _, n := range i.Notes {
		fmt.Fprintf(w, "\nnote: %s\n", n)
	}
	if len(i.Tensors) > 0 {
		fmt.Fprintln(w)
	}
	for _, t := range i.Tensors {
		fmt.Fprintf(w, "%-18s %-52s %-5s %v\n", t.Component, t.Name, t.DType, t.Shape)
	}
	if len(i.Problems) > 0 {
		fmt.Fprintf(w, "\n%s:\n", count(len(i.Problems), "problem"))
	}
	for _, p := range i.Problems {
		fmt.Fprintf(w, "  %s\n", p)
	}
}

func millions(n int64) string { return fmt.Sprintf("%.2f M", float64(n)/1e6) }

// count is "1 file", "2 files".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
