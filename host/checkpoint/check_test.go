package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestCheckEveryTensor removes, reshapes and retypes each tensor of the
// inventory, one after another, without files.
func TestCheckEveryTensor(t *testing.T) {
	config := sampleConfig()
	damages := []struct {
		kind   ProblemKind
		damage func(*Tensor)
	}{
		{Missing, nil},
		{WrongShape, func(x *Tensor) { x.Shape = append(slices.Clone(x.Shape), 1) }},
		{WrongDType, func(x *Tensor) { x.DType = I32 }},
	}
	c := openGood(t, writeSample(t, config))
	count := 0
	for _, spec := range Inventory(config) {
		part := c.components[spec.Component]
		good := part.tensors[spec.Name]
		for _, d := range damages {
			if d.damage == nil {
				delete(part.tensors, spec.Name)
				part.names = slices.DeleteFunc(part.names, func(name string) bool { return name == spec.Name })
			} else {
				bad := good
				d.damage(&bad)
				part.tensors[spec.Name] = bad
			}
			var check *CheckError
			if err := c.Check(); !errors.As(err, &check) {
				t.Fatalf("%s %s %s: %v", d.kind, spec.Component, spec.Name, err)
			}
			got := check.Problems
			if len(got) != 1 || got[0].Kind != d.kind || got[0].Component != spec.Component || got[0].Tensor != spec.Name {
				t.Errorf("%s %s %s: %v", d.kind, spec.Component, spec.Name, got)
			}
			part.tensors[spec.Name] = good
			if d.damage == nil {
				part.names = append(part.names, spec.Name)
			}
			count++
		}
	}
	t.Logf("%d damages found", count)
}

func TestCheckListsAllProblems(t *testing.T) {
	dir := writeSample(t, sampleConfig())
	tensors := sampleTensors(sampleConfig(), vocoder)
	tensors[0].Name = "other.weight"        // dec_in_proj.weight
	tensors[1].DType = U32                  // dec_in_proj.bias
	tensors[3].Shape = []int{3, 13, 7}      // conv_in.weight_v
	tensors[4].Data = tensors[4].Data[:2*4] // conv_in.bias
	tensors[4].Shape = []int{2}
	writeWeights(t, dir, "vocoder/"+weightsOf(vocoder), tensors)
	remove(t, dir, tokenizerFile)
	err := openGood(t, dir).Check()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		"checkpoint sample: 6 problems\n",
		"\n  vocoder: missing: dec_in_proj.weight: expected [3 5 1]\n",
		"\n  vocoder: wrong dtype: dec_in_proj.bias: U32, expected one of [F32 BF16 F16 F64 F8_E4M3 F8_E5M2]\n",
		"\n  vocoder: wrong shape: conv_in.weight_v: [3 13 7], expected [13 3 7] by the config\n",
		"\n  vocoder: wrong shape: conv_in.bias: [2], expected [13] by the config\n",
		"\n  vocoder: extra: other.weight: F32 [3 5 1] in ",
		"\n  tokenizer: missing: tokenizer/tokenizer.json: expected the file",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\n  lacks %q", err, want)
		}
	}
}

// TestTiedEmbeddings covers a language model without lm_head, one with a copy of
// the embeddings, and one that contradicts itself.
func TestTiedEmbeddings(t *testing.T) {
	config := sampleConfig()
	config.LanguageModel.TieWordEmbeddings = true
	tensors := sampleTensors(config, languageModel)
	head := tensors[0] // embed_tokens
	head.Name = lmHead
	different := head
	different.Data = bytes.Clone(head.Data)
	different.Data[len(different.Data)-1] ^= 1
	retyped := head
	retyped.DType = U32
	for _, test := range []struct {
		name   string
		heads  []Tensor
		notes  int
		expect string
	}{
		{"absent", nil, 0, ""},
		{"equal", []Tensor{head}, 1, ""},
		{"different", []Tensor{different}, 1, "wrong value: lm_head.weight: differs from model.embed_tokens.weight, but tie_word_embeddings"},
		{"of another type", []Tensor{retyped}, 1, "wrong value: lm_head.weight"},
	} {
		dir := writeSample(t, config)
		writeWeights(t, dir, "language_model/model.safetensors", slices.Concat(tensors, test.heads))
		c := openGood(t, dir)
		err := c.Check()
		if test.expect == "" && err != nil || test.expect != "" && !strings.Contains(fmt.Sprint(err), test.expect) {
			t.Errorf("%s: %v, want %q", test.name, err, test.expect)
		}
		if notes := c.Summary().Notes; len(notes) != test.notes {
			t.Errorf("%s: notes %q", test.name, notes)
		}
	}

	// Untied, it is needed.
	config.LanguageModel.TieWordEmbeddings = false
	dir := writeSample(t, config)
	writeWeights(t, dir, "language_model/model.safetensors", tensors)
	if err := openGood(t, dir).Check(); err == nil || !strings.Contains(err.Error(), "missing: lm_head.weight: expected [61 15]") {
		t.Error(err)
	}
}
