package checkpoint

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

const (
	embedTokens   = "model.embed_tokens.weight"
	lmHead        = "lm_head.weight"
	tokenizerFile = "tokenizer/tokenizer.json"
)

// CheckError lists everything by which a checkpoint differs from the inventory of
// its config.
type CheckError struct {
	Name     string // of the checkpoint
	Problems []Problem
}

// Problem is one difference.
type Problem struct {
	Component string
	Tensor    string // or the name of a file
	Kind      ProblemKind
	Text      string // found and expected
}

// ProblemKind says in what way a tensor differs.
type ProblemKind string

// Kinds of problems.
const (
	Missing    ProblemKind = "missing"
	Extra      ProblemKind = "extra"
	WrongShape ProblemKind = "wrong shape"
	WrongDType ProblemKind = "wrong dtype"
	WrongValue ProblemKind = "wrong value"
)

func (p Problem) String() string {
	return fmt.Sprintf("%s: %s: %s: %s", p.Component, p.Kind, p.Tensor, p.Text)
}

// Error gives a first line with the count and then one line for each problem.
func (e *CheckError) Error() string {
	var b strings.Builder
	noun := "problems"
	if len(e.Problems) == 1 {
		noun = "problem"
	}
	fmt.Fprintf(&b, "checkpoint %s: %d %s", e.Name, len(e.Problems), noun)
	for _, p := range e.Problems {
		fmt.Fprintf(&b, "\n  %v", p)
	}
	return b.String()
}

// Check compares the tensors with the inventory of the config, by name, shape and
// dtype, and looks for the tokenizer. The error, a [*CheckError], lists every
// tensor that is missing, extra, misshapen or of a wrong dtype.
//
// A language model with tied embeddings may hold an lm_head all the same, as long
// as it equals the embeddings: transformers would use one that differs, against
// the config.
func (c *Checkpoint) Check() error {
	e := &CheckError{Name: c.Name}
	add := func(component, tensor string, kind ProblemKind, format string, args ...any) {
		e.Problems = append(e.Problems, Problem{component, tensor, kind, fmt.Sprintf(format, args...)})
	}
	known := map[string]map[string]bool{}
	for _, component := range Components() {
		known[component] = map[string]bool{}
	}
	for _, spec := range Inventory(c.Config) {
		known[spec.Component][spec.Name] = true
		t, ok := c.Tensor(spec.Component, spec.Name)
		if !ok {
			add(spec.Component, spec.Name, Missing, "expected %v", spec.Shape)
			continue
		}
		if !slices.Equal(t.Shape, spec.Shape) {
			add(spec.Component, spec.Name, WrongShape, "%v, expected %v by the config", t.Shape, spec.Shape)
		}
		if !slices.Contains(spec.DTypes, t.DType) {
			add(spec.Component, spec.Name, WrongDType, "%s, expected one of %v", t.DType, spec.DTypes)
		}
	}
	if head, ok := c.ignoredHead(); ok {
		known[languageModel][lmHead] = true
		embed, _ := c.Tensor(languageModel, embedTokens)
		if head.DType != embed.DType || !bytes.Equal(head.Data, embed.Data) {
			add(languageModel, lmHead, WrongValue, "differs from %s, but tie_word_embeddings in %s is true: "+
				"set it to false, or remove the tensor", embedTokens, languageModelConfig)
		}
	}
	for _, component := range Components() {
		for _, name := range c.Names(component) {
			if !known[component][name] {
				t, _ := c.Tensor(component, name)
				add(component, name, Extra, "%s %v in %s", t.DType, t.Shape, t.File)
			}
		}
	}
	if exists, err := c.exists(tokenizerFile); err != nil {
		add("tokenizer", tokenizerFile, Missing, "%v", err)
	} else if !exists {
		add("tokenizer", tokenizerFile, Missing, "expected the file")
	}
	if len(e.Problems) > 0 {
		return e
	}
	return nil
}

// ignoredHead returns the lm_head of a language model with tied embeddings, which
// is not used.
func (c *Checkpoint) ignoredHead() (Tensor, bool) {
	if !c.Config.LanguageModel.TieWordEmbeddings {
		return Tensor{}, false
	}
	return c.Tensor(languageModel, lmHead)
}
